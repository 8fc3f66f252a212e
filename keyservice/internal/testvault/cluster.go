// Three nodes with Raft, for fail-over.

package testvault

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/vault/api"
)

// Cluster is three nodes with Raft storage, each a process of its own.
type Cluster struct{ Nodes []*Server }

const nodeConfig = `
disable_mlock = true
ui            = false
api_addr      = "http://127.0.0.1:%[2]d"
cluster_addr  = "https://127.0.0.1:%[3]d"
storage "raft" {
  path                   = "%[4]s"
  node_id                = "node-%[1]d"
  performance_multiplier = 1
}
listener "tcp" {
  address         = "127.0.0.1:%[2]d"
  cluster_address = "127.0.0.1:%[3]d"
  tls_disable     = true
}
`

// Raft starts a cluster, joined and unsealed. The first node is active.
func Raft(t testing.TB) *Cluster {
	t.Helper()
	c := &Cluster{}
	for i := range 3 {
		c.Nodes = append(c.Nodes, startNode(t, i))
	}
	first := c.Nodes[0]
	made, err := first.Root.Sys().Init(&api.InitRequest{SecretShares: 1, SecretThreshold: 1})
	if err != nil {
		t.Fatal(err)
	}
	for i, node := range c.Nodes {
		node.unsealKey = made.KeysB64[0]
		if i > 0 {
			node.join(t, first.Address)
		}
		node.Root.SetToken(made.RootToken)
		if _, err := node.Root.Sys().Unseal(node.unsealKey); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first.waitActive(t)
			first.Write(t, "sys/storage/raft/autopilot/configuration", map[string]any{"server_stabilization_time": "1s"})
		}
	}
	c.waitForVoters(t)
	return c
}

func startNode(t testing.TB, number int) *Server {
	t.Helper()
	dir, port, clusterPort := t.TempDir(), FreePort(t), FreePort(t)
	config := filepath.Join(dir, "vault.hcl")
	if err := os.WriteFile(config, fmt.Appendf(nil, nodeConfig, number, port, clusterPort, dir), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{Address: fmt.Sprintf("http://127.0.0.1:%d", port)}
	s.process = startProcess(t, Binary(t), dir, "server", "-config="+config)
	s.process.wait(t, "server started!")
	s.Root = s.client(t, "")
	return s
}

func (s *Server) join(t testing.TB, leader string) {
	t.Helper()
	joined, err := s.Root.Sys().RaftJoin(&api.RaftJoinRequest{LeaderAPIAddr: leader})
	if err != nil || !joined.Joined {
		t.Fatal("a node does not join", err)
	}
}

// waitForVoters waits until the cluster survives the loss of a node.
func (c *Cluster) waitForVoters(t testing.TB) {
	t.Helper()
	Eventually(t, "three nodes vote", func() bool {
		state, err := c.Nodes[0].Root.Sys().RaftAutopilotState()
		return err == nil && state != nil && len(state.Voters) == 3 && state.FailureTolerance == 1
	})
}

// Addresses gives those of all nodes.
func (c *Cluster) Addresses() []string {
	var all []string
	for _, node := range c.Nodes {
		all = append(all, node.Address)
	}
	return all
}

// Active gives the node that leads.
func (c *Cluster) Active(t testing.TB) *Server {
	t.Helper()
	var active *Server
	Eventually(t, "a node is active", func() bool {
		for _, node := range c.Nodes {
			if leader, err := node.Root.Sys().Leader(); err == nil && leader.IsSelf {
				active = node
				return true
			}
		}
		return false
	})
	return active
}
