package environment

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"strings"
)

// Network is the loopback of a network namespace that belongs to the runner and its children alone (`make faults` makes one), so
// that packets may be lost there.
type Network struct{}

// Network gives it, or says why there is none.
func (e *Environment) Network() (*Network, error) {
	if !e.OwnNetwork {
		return nil, errors.New("the runner has no network namespace of its own: see `make faults`")
	}
	if _, err := exec.LookPath("nft"); err != nil {
		return nil, errors.New("nft is missing: install nftables")
	}
	return &Network{}, nil
}

// Lose loses a share, in per cent, of the packets from and to addresses ("host:port" or URLs), until Restore.
func (n *Network) Lose(percent int, addresses ...string) error {
	var ports []string
	for _, address := range addresses {
		ports = append(ports, portOf(address))
	}
	condition := ""
	if percent < 100 {
		condition = fmt.Sprintf("numgen random mod 100 < %d", percent)
	}
	list := strings.Join(ports, ", ")
	return nft(fmt.Sprintf(`table inet faults {
	chain input {
		type filter hook input priority 0
		tcp dport { %[1]s } %[2]s drop
		tcp sport { %[1]s } %[2]s drop
	}
}`, list, condition))
}

// Restore loses nothing any more.
func (n *Network) Restore() error { return nft("delete table inet faults") }

func portOf(address string) string {
	if parsed, err := url.Parse(address); err == nil && parsed.Port() != "" {
		return parsed.Port()
	}
	return address[strings.LastIndex(address, ":")+1:]
}

func nft(rules string) error {
	command := exec.Command("nft", "-f", "-")
	command.Stdin = strings.NewReader(rules)
	if out, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("nft: %w: %s", err, out)
	}
	return nil
}
