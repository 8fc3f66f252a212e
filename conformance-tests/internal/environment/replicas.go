package environment

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const vaultStoreConfig = `tls: {certificate: server.pem, key: server-key.pem, client_ca: ca.pem}
policy: policy-of-the-run.yaml
audit: {file: audit.jsonl}
store:
  vault:
    addresses: [%s]
    timeout: 2s
    cache: {ttl: 0s}
    login: {token: {file: %q}}
`

// Replicas are two key services on one Vault, as they run where it matters.
type Replicas struct {
	Vault *Vault

	environment *Environment
	services    []*KeyService
}

// Replicas starts them and their Vault, once.
func (e *Environment) Replicas() (*Replicas, error) {
	if e.replicas != nil {
		return e.replicas, nil
	}
	vault, err := startVault(e.Paths.Folder, e.Paths.Vault)
	r := &Replicas{Vault: vault, environment: e}
	e.replicas = r // so that what was started is stopped
	if err != nil {
		return nil, err
	}
	token := filepath.Join(e.Paths.Folder, "vault-token")
	if err := vault.token(token); err != nil {
		return nil, err
	}
	for number := range 2 {
		service := &KeyService{Dir: filepath.Join(e.Paths.Folder, fmt.Sprint("replica-", number))}
		r.services = append(r.services, service)
		if err := r.prepare(number, token); err != nil {
			return nil, err
		}
		if err := service.start(e, "127.0.0.1:0"); err != nil {
			return nil, err
		}
	}
	e.Facts["key service"] = "real, two replicas on a real Vault (three nodes, Raft)"
	return r, nil
}

// HasReplicas says whether they were started.
func (e *Environment) HasReplicas() bool { return e.replicas != nil }

// prepare fills a replica's folder; the second one gets the certificates of the first, and finds its store made.
func (r *Replicas) prepare(number int, token string) error {
	service := r.services[number]
	if err := os.Mkdir(service.Dir, 0o700); err != nil {
		return err
	}
	config, err := r.Vault.configure(service.Dir, token)
	if err != nil {
		return err
	}
	if number > 0 {
		return copyCertificates(r.services[0].Dir, service.Dir)
	}
	return r.environment.initialize(config)
}

// configure writes the configuration of a key service on this Vault into its folder.
func (v *Vault) configure(folder, token string) (config string, err error) {
	var addresses []string
	for _, node := range v.nodes {
		addresses = append(addresses, strconv.Quote(node.address))
	}
	config = filepath.Join(folder, "keyservice.yaml")
	return config, os.WriteFile(config, fmt.Appendf(nil, vaultStoreConfig, strings.Join(addresses, ", "), token), 0o600)
}

// initialize makes the store and the certificates of a key service.
func (e *Environment) initialize(config string) error {
	if out, err := exec.Command(e.Paths.KeyService, "init", "--config", config).CombinedOutput(); err != nil {
		return fmt.Errorf("key service: init: %w: %s", err, out)
	}
	return nil
}

func copyCertificates(from, to string) error {
	files, err := filepath.Glob(filepath.Join(from, "*.pem"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, filepath.Base(file)), data, 0o600); err != nil {
			return err
		}
	}
	return err
}

// Settings are the cipherlane.… settings of a principal, with both addresses.
func (r *Replicas) Settings(principal string) map[string]string {
	settings := r.services[0].Settings(principal)
	settings["cipherlane.keyservice.urls"] = r.services[0].URL + "," + r.services[1].URL
	return settings
}

// Operate makes an operator's call to a replica; see KeyService.
func (r *Replicas) Operate(method, path string, body, ok any) error {
	return r.services[0].Operate(method, path, body, ok)
}

// Folders are those of the replicas, with their audit logs; Logs are what they print.
func (r *Replicas) Folders() (folders, logs []string) {
	for _, service := range r.services {
		folders = append(folders, service.Dir)
		logs = append(logs, r.environment.log(filepath.Base(service.Dir)))
	}
	return folders, logs
}

// PIDs are those of the replicas.
func (r *Replicas) PIDs() (pids []int) {
	for _, service := range r.services {
		pids = append(pids, service.PID())
	}
	return pids
}

// Kill ends the first n replicas as a crash would.
func (r *Replicas) Kill(n int) error {
	for _, service := range r.services[:n] {
		if err := service.process.kill(); err != nil {
			return err
		}
	}
	return nil
}

// Revive starts the first n replicas again, at their addresses.
func (r *Replicas) Revive(n int) error {
	for _, service := range r.services[:n] {
		if err := service.start(r.environment, strings.TrimPrefix(service.URL, "https://")); err != nil {
			return err
		}
	}
	return nil
}

// Signal sends a signal to the first n replicas.
func (r *Replicas) Signal(n int, signal syscall.Signal) error {
	for _, service := range r.services[:n] {
		if err := service.process.signal(signal); err != nil {
			return err
		}
	}
	return nil
}

// FillDisk makes each file of the first n replicas full (or not, at the end), the audit log among them: none grows beyond what
// it has.
func (r *Replicas) FillDisk(n int, full bool) error {
	for _, service := range r.services[:n] {
		limit := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
		if full {
			limit.Cur = 1
		}
		if err := unix.Prlimit(service.PID(), unix.RLIMIT_FSIZE, &limit, nil); err != nil {
			return err
		}
	}
	return nil
}

func (r *Replicas) close() {
	for _, service := range r.services {
		if service.process != nil {
			service.process.stop()
		}
	}
	if r.Vault != nil {
		r.Vault.close()
	}
}
