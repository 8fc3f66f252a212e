// The section about access: who decides, what is recorded, and who local processes are.

package config

import (
	"errors"
	"os"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/process"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Access says how requests are authorised.
type Access struct {
	URLs      []string // of the key service
	CA        string   // of its certificate, PEM
	Audit     Audit
	Processes []process.Rule
	Labels    map[string]string // of local processes
}

// Audit says where the sidecar's audit log is.
type Audit struct {
	File    string
	Name    string // of the chain; empty: the host's
	MaxSize int    // bytes
}

const maxLabels = 16

func (c *Config) accessField() field {
	return field{Read: func(n node) error {
		a := &Access{Audit: Audit{MaxSize: 1 << 30}, Labels: map[string]string{}}
		c.Access = a
		return n.Members(fields{
			"urls": {Required: true, Read: func(n node) error { return keyServices(n, &a.URLs) }},
			"ca":   strictyaml.Must(strictyaml.TextInto(&a.CA)),
			"audit": {Required: true, Read: func(n node) error {
				return n.Members(fields{
					"file":     strictyaml.Must(strictyaml.TextInto(&a.Audit.File)),
					"name":     strictyaml.TextInto(&a.Audit.Name),
					"max_size": strictyaml.IntegerInto(&a.Audit.MaxSize, 1<<20, 1<<50),
				})
			}},
			"processes": {Read: a.readProcesses},
			"labels":    {Read: a.readLabels},
		})
	}}
}

func (a *Access) readProcesses(n node) error {
	_, err := n.List(func(item node) error {
		var r process.Rule
		uid := -1
		err := item.Members(fields{
			"principal":  strictyaml.Must(strictyaml.TextInto(&r.Principal)),
			"uid":        strictyaml.IntegerInto(&uid, 0, 1<<32-1),
			"executable": strictyaml.TextInto(&r.Executable),
			"sha256":     strictyaml.TextInto(&r.SHA256),
		})
		if uid >= 0 {
			id := uint32(uid) // #nosec G115 -- within its limits
			r.UID = &id
		}
		if err == nil && names.CheckPrincipal(r.Principal) != nil {
			err = item.Errorf("principal: %v", names.CheckPrincipal(r.Principal))
		}
		if err == nil && r.UID == nil && r.Executable == "" && r.SHA256 == "" {
			err = item.Errorf("a rule that fits every process names none: give uid, executable or sha256")
		}
		a.Processes = append(a.Processes, r)
		return err
	})
	return err
}

// readLabels takes names of variables of the sidecar's environment: what they hold is told to the policy and the audit log.
func (a *Access) readLabels(n node) error {
	var variables []string
	if err := texts(n, &variables); err != nil {
		return err
	}
	for _, name := range variables {
		value := os.Getenv(name)
		if value == "" || len(value) > names.MaxPrincipal || names.CheckPrincipal(name) != nil {
			return n.Errorf("the environment has no variable %q of 1 to %d bytes", name, names.MaxPrincipal)
		}
		a.Labels[name] = value
	}
	if len(a.Labels) > maxLabels {
		return n.Errorf("%d labels are more than %d", len(a.Labels), maxLabels)
	}
	return nil
}

// checkAccess refuses what would authorise nobody, or somebody else.
func (c *Config) checkAccess() error {
	switch a := c.Access; {
	case a == nil:
		return nil
	case c.Side == Client && len(a.Processes) == 0:
		return errors.New("access on the client side goes by processes: list them in access.processes")
	case c.Transparent != nil:
		return errors.New("access does not go with transparent: a redirected connection does not say which process it is of")
	case c.Side == Broker && len(a.Processes) > 0:
		return errors.New("access.processes goes with side: client: on the broker side clients are who their certificates say")
	}
	return nil
}
