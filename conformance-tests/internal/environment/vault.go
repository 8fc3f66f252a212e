package environment

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

const (
	vaultTimeout = 60 * time.Second
	vaultNodes   = 3

	vaultConfig = `
disable_mlock = true
ui            = false
api_addr      = "http://127.0.0.1:%[2]d"
cluster_addr  = "https://127.0.0.1:%[3]d"
storage "raft" {
  path                   = %[4]q
  node_id                = "node-%[1]d"
  performance_multiplier = 1
}
listener "tcp" {
  address         = "127.0.0.1:%[2]d"
  cluster_address = "127.0.0.1:%[3]d"
  tls_disable     = true
}
`
	// What the key service may do: everything in its two engines, nothing elsewhere.
	vaultPolicy = `path "cipherlane-transit/*" { capabilities = ["create", "update", "read"] }
path "cipherlane/*" { capabilities = ["create", "update", "read", "list"] }
path "auth/token/lookup-self" { capabilities = ["read"] }
path "auth/token/renew-self" { capabilities = ["update"] }
`
)

// Vault is a real one: three nodes with Raft, unsealed, with the engines of the key service; or one in a container.
type Vault struct {
	nodes     []*vaultNode
	root      string // token
	unsealKey string
	container *contained // in place of the nodes' processes
}

type vaultNode struct {
	address, log, config, binary string

	process *child
}

func startVault(folder, binary string) (*Vault, error) {
	v := &Vault{}
	for number := range vaultNodes {
		node, err := newVaultNode(folder, binary, number)
		if err != nil {
			return v, err
		}
		v.nodes = append(v.nodes, node)
	}
	if err := v.form(); err != nil {
		return v, fmt.Errorf("vault: %w", err)
	}
	err := v.mount()
	return v, err
}

func newVaultNode(folder, binary string, number int) (*vaultNode, error) {
	dir := filepath.Join(folder, fmt.Sprint("vault-", number))
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	clusterPort, err := freePort()
	if err != nil {
		return nil, err
	}
	n := &vaultNode{
		address: fmt.Sprintf("http://127.0.0.1:%d", port), log: dir + ".log", config: filepath.Join(dir, "vault.hcl"), binary: binary,
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(n.config, fmt.Appendf(nil, vaultConfig, number, port, clusterPort, dir), 0o600); err != nil {
		return nil, err
	}
	err = n.start()
	return n, err
}

func (n *vaultNode) start() (err error) {
	n.process, err = launch(n.log, n.binary, "server", "-config="+n.config)
	if err != nil {
		return err
	}
	go func(p *child) { _, _ = io.Copy(io.Discard, p.stdout) }(n.process)
	return within(func() error {
		answer, err := http.Get(n.address + "/v1/sys/health")
		if err == nil {
			err = answer.Body.Close()
		}
		return err
	})
}

// within repeats what must come to pass.
func within(test func() error) error {
	for until := time.Now().Add(vaultTimeout); ; time.Sleep(100 * time.Millisecond) {
		err := test()
		if err == nil || time.Now().After(until) {
			return err
		}
	}
}

// form makes a cluster of the nodes.
func (v *Vault) form() error {
	var made struct {
		Keys      []string `json:"keys_base64"`
		RootToken string   `json:"root_token"`
	}
	if err := v.call(v.nodes[0], http.MethodPut, "sys/init", map[string]int{"secret_shares": 1, "secret_threshold": 1}, &made); err != nil {
		return err
	}
	v.root, v.unsealKey = made.RootToken, made.Keys[0]
	for i, node := range v.nodes {
		if i > 0 {
			if err := v.call(node, http.MethodPut, "sys/storage/raft/join", map[string]string{"leader_api_addr": v.nodes[0].address}, nil); err != nil {
				return err
			}
		}
		if err := v.unseal(node); err != nil {
			return err
		}
		if i == 0 {
			if err := v.awaitLeader(); err != nil {
				return err
			}
			if err := v.call(node, http.MethodPost, "sys/storage/raft/autopilot/configuration", map[string]string{"server_stabilization_time": "1s"}, nil); err != nil {
				return err
			}
		}
	}
	return within(v.threeVote)
}

func (v *Vault) threeVote() error {
	var state struct {
		Data struct {
			Voters    []string `json:"voters"`
			Tolerance int      `json:"failure_tolerance"`
		} `json:"data"`
	}
	err := v.call(v.nodes[0], http.MethodGet, "sys/storage/raft/autopilot/state", nil, &state)
	if err == nil && (len(state.Data.Voters) != vaultNodes || state.Data.Tolerance != 1) {
		err = fmt.Errorf("%d nodes vote", len(state.Data.Voters))
	}
	return err
}

func (v *Vault) mount() error {
	leader, err := v.leader()
	if err != nil {
		return err
	}
	return errors.Join(
		v.call(leader, http.MethodPost, "sys/mounts/cipherlane-transit", map[string]string{"type": "transit"}, nil),
		v.call(leader, http.MethodPost, "sys/mounts/cipherlane", map[string]any{"type": "kv", "options": map[string]string{"version": "2"}}, nil),
		v.call(leader, http.MethodPut, "sys/policies/acl/keyservice", map[string]string{"policy": vaultPolicy}, nil),
	)
}

// token makes a file with one for the key service.
func (v *Vault) token(path string) error {
	leader, err := v.leader()
	if err != nil {
		return err
	}
	var made struct {
		Auth struct {
			Token string `json:"client_token"`
		} `json:"auth"`
	}
	if err := v.call(leader, http.MethodPost, "auth/token/create-orphan", map[string]any{"policies": []string{"keyservice"}, "period": "24h"}, &made); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(made.Auth.Token+"\n"), 0o600)
}

// call makes a request to a node and reads its answer into ok, which may be nil.
func (v *Vault) call(n *vaultNode, method, path string, body, ok any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return err
	}
	request, err := http.NewRequest(method, n.address+"/v1/"+path, bytes.NewReader(encoded))
	if err != nil {
		return err
	}
	request.Header.Set("X-Vault-Token", v.root)
	client := http.Client{Timeout: operatorTimeout}
	answer, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode/100 != 2 {
		return errors.Join(err, fmt.Errorf("%s %s: %d", method, path, answer.StatusCode))
	}
	if ok == nil {
		return nil
	}
	return json.Unmarshal(text, ok)
}

func (v *Vault) unseal(n *vaultNode) error {
	return within(func() error {
		return v.call(n, http.MethodPut, "sys/unseal", map[string]string{"key": v.unsealKey}, nil)
	})
}

func (v *Vault) awaitLeader() error {
	return within(func() error { _, err := v.leader(); return err })
}

// leader is the node that is active.
func (v *Vault) leader() (*vaultNode, error) {
	for _, node := range v.nodes {
		if answer, err := http.Get(node.address + "/v1/sys/health"); err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return node, nil
			}
		}
	}
	return nil, errors.New("no node of Vault is active")
}

// Seal seals the active node and the one that takes its place: the last one alone is none.
func (v *Vault) Seal() error {
	for range vaultNodes - 1 {
		if err := v.awaitLeader(); err != nil {
			return err
		}
		leader, err := v.leader()
		if err != nil {
			return err
		}
		if err := v.call(leader, http.MethodPut, "sys/seal", nil, nil); err != nil {
			return err
		}
	}
	return nil
}

// Unseal undoes Seal; Vault works when it returns.
func (v *Vault) Unseal() error {
	for _, node := range v.nodes {
		if err := v.unseal(node); err != nil {
			return err
		}
	}
	return v.awaitLeader()
}

// KillLeader ends the active node as a crash would.
func (v *Vault) KillLeader() error {
	leader, err := v.leader()
	if err != nil {
		return err
	}
	err = leader.process.kill()
	leader.process = nil
	return err
}

// Revive starts the nodes that were killed; Vault works when it returns.
func (v *Vault) Revive() error {
	for _, node := range v.nodes {
		if node.process != nil {
			continue
		}
		if err := node.start(); err != nil {
			return err
		}
	}
	return v.Unseal()
}

func (v *Vault) close() {
	if v.container != nil {
		v.container.close()
	}
	for _, node := range v.nodes {
		if node.process != nil {
			_ = node.process.kill()
		}
	}
}
