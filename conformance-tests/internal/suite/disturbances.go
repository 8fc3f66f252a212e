package suite

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"syscall"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/environment"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/pki"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/scripted"
)

// effect is what a fault must do to writing.
type effect int

const (
	refuses effect = iota // some record must be refused: else a lease was used beyond its end, or the fault was not felt
	goesOn                // none may be
	either                // it depends on the moment
)

// disturbance is a fault that comes and goes while a producer of each driver runs.
type disturbance struct {
	name     string
	script   scripted.Script              // what the scripted key service answers meanwhile; nil: as ever
	begin    func(*underLoad) error       // what else happens
	end      func(*underLoad) error       // when it returns, the fault is over
	effect   effect                       //
	real     bool                         // with the real key service: two replicas on a Vault
	lost     bool                         // what was written before may be unreadable for good
	clocks   bool                         // befalls the clocks of drivers: only those that have one
	outlives bool                         // leases do not end meanwhile
	settings func(*Run) map[string]string // in place of those of the client
}

// disturbances are all faults that this environment can have, and why it cannot have the others.
func (r *Run) disturbances(key dataKey) (all []disturbance, missing map[string]error, err error) {
	next, err := newDataKey(r.random("faults rotated"))
	if err != nil {
		return nil, nil, err
	}
	missing = map[string]error{}
	all = append(r.scripted(key, next), replicaFaults()...)
	all = append(all, oneBroker()...)
	all = append(all, clockFaults()...)
	for _, f := range brokerFaults() {
		if r.Environment.Kind == environment.Cluster {
			all = append(all, f)
		} else {
			missing[f.name] = errors.New("one broker only: --environment cluster")
		}
	}
	network, noNetwork := r.Environment.Network()
	for _, f := range networkFaults(network) {
		if noNetwork == nil {
			all = append(all, f)
		} else {
			missing[f.name] = noNetwork
		}
	}
	return all, missing, nil
}

// scripted are faults of a key service that says what the runner has it say: those of the leak suite that can pass, and more.
func (r *Run) scripted(key, next dataKey) []disturbance {
	var all []disturbance
	for _, f := range r.faults(key) {
		if f.script != nil {
			all = append(all, disturbance{name: f.name, script: f.script})
		}
	}
	foreign := next
	return append(all,
		disturbance{name: "foreign-key", script: keyed(dataKey{foreign.key, key.kid})},
		disturbance{name: "stopped", begin: stopScripted, end: restartScripted},
		disturbance{
			name: "expired-certificate", begin: func(u *underLoad) error { return u.Service.Show(pki.Expired) },
			end: func(u *underLoad) error { return u.Service.Show(pki.Sound) },
		},
		disturbance{name: "slow-but-in-time", effect: goesOn, script: delayed(300*time.Millisecond, keyed(key))},
		disturbance{name: "first-of-two-addresses-down", effect: goesOn, settings: func(r *Run) map[string]string {
			return map[string]string{"cipherlane.keyservice.urls": "https://127.0.0.1:1," + r.Service.URL}
		}},
		disturbance{name: "key-rotated", effect: goesOn, script: keyed(next)},
	)
}

func stopScripted(u *underLoad) error {
	u.Service.Stop()
	return nil
}

func restartScripted(u *underLoad) error { return u.Service.Restart() }

func delayed(by time.Duration, script scripted.Script) scripted.Script {
	return func(call scripted.Call) scripted.Reply {
		time.Sleep(by)
		return script(call)
	}
}

// replicaFaults are faults of two real key services and of their Vault.
func replicaFaults() []disturbance {
	signal := func(n int, signal syscall.Signal) func(*underLoad) error {
		return func(u *underLoad) error { return u.replicas.Signal(n, signal) }
	}
	kill := func(n int) func(*underLoad) error { return func(u *underLoad) error { return u.replicas.Kill(n) } }
	revive := func(n int) func(*underLoad) error { return func(u *underLoad) error { return u.replicas.Revive(n) } }
	fill := func(n int, full bool) func(*underLoad) error {
		return func(u *underLoad) error { return u.replicas.FillDisk(n, full) }
	}
	vault := func(do func(*environment.Vault) error) func(*underLoad) error {
		return func(u *underLoad) error { return do(u.replicas.Vault) }
	}
	return []disturbance{
		{name: "one-replica-killed", real: true, effect: goesOn, begin: kill(1), end: revive(1)},
		{name: "all-replicas-killed", real: true, begin: kill(2), end: revive(2)},
		{name: "one-replica-paused", real: true, effect: goesOn, begin: signal(1, syscall.SIGSTOP), end: signal(1, syscall.SIGCONT)},
		{name: "all-replicas-paused", real: true, begin: signal(2, syscall.SIGSTOP), end: signal(2, syscall.SIGCONT)},
		{name: "audit-disk-of-one-replica-full", real: true, effect: goesOn, begin: fill(1, true), end: fill(1, false)},
		{name: "audit-disks-full", real: true, begin: fill(2, true), end: fill(2, false)},
		{name: "vault-sealed", real: true, begin: vault((*environment.Vault).Seal), end: vault((*environment.Vault).Unseal)},
		{name: "vault-leader-killed", real: true, effect: either, begin: vault((*environment.Vault).KillLeader), end: vault((*environment.Vault).Revive)},
		{name: "key-rotated-by-the-operator", real: true, effect: goesOn, begin: (*underLoad).rotateAll},
		{name: "key-destroyed-by-the-operator", real: true, effect: goesOn, lost: true, begin: (*underLoad).destroyAll},
	}
}

func oneBroker() []disturbance {
	return []disturbance{{
		name: "brokers-paused", effect: goesOn, begin: func(u *underLoad) error { return u.broker.Pause() },
		end: func(u *underLoad) error { return u.broker.Resume() },
	}}
}

// brokerFaults befall the first node, which leads what the drivers write to.
func brokerFaults() []disturbance {
	signal := func(signal syscall.Signal) func(*underLoad) error {
		return func(u *underLoad) error { return u.broker.Signal(0, signal) }
	}
	restart := func(u *underLoad) error { return u.broker.Restart(0) }
	lead := func(first int) func(*underLoad) error {
		return func(u *underLoad) error {
			var topics []string
			for _, d := range u.Drivers {
				topics = append(topics, u.topicOf(d))
			}
			return u.broker.Lead(first, topics...)
		}
	}
	return []disturbance{
		{name: "leader-moved", effect: goesOn, begin: lead(1), end: lead(0)},
		{name: "leader-paused", effect: goesOn, begin: signal(syscall.SIGSTOP), end: signal(syscall.SIGCONT)},
		{name: "leader-restarted", effect: goesOn, begin: signal(syscall.SIGTERM), end: restart},
		{name: "leader-killed", effect: goesOn, begin: signal(syscall.SIGKILL), end: restart},
	}
}

func networkFaults(network *environment.Network) []disturbance {
	lose := func(percent int, addresses func(*underLoad) []string) func(*underLoad) error {
		return func(u *underLoad) error { return network.Lose(percent, addresses(u)...) }
	}
	restore := func(*underLoad) error { return network.Restore() }
	service := func(u *underLoad) []string { return []string{u.Service.URL} }
	brokers := func(u *underLoad) []string { return u.broker.Seeds() }
	both := func(u *underLoad) []string { return append(service(u), brokers(u)...) }
	return []disturbance{
		{name: "key-service-cut-off", begin: lose(100, service), end: restore},
		{name: "brokers-cut-off", effect: goesOn, begin: lose(100, brokers), end: restore},
		{name: "one-packet-in-ten-lost", effect: either, begin: lose(10, both), end: restore},
	}
}

// operate makes an operator's call for the scope of each driver's topic.
func (u *underLoad) operate(call string, body, ok any) error {
	for _, d := range u.Drivers {
		if err := u.replicas.Operate(http.MethodPost, fmt.Sprintf("/v1/scopes/%s/%s", u.topicOf(d), call), body, ok); err != nil {
			return err
		}
	}
	return nil
}

func (u *underLoad) rotateAll() error { return u.operate("rotate", nil, nil) }

// destroyAll destroys every key of the scopes but a new one, in two steps.
func (u *underLoad) destroyAll() error {
	for _, d := range u.Drivers {
		path := fmt.Sprintf("/v1/scopes/%s/destroy", u.topicOf(d))
		body := map[string]any{"all": true}
		var first struct{ Confirm string }
		if err := u.replicas.Operate(http.MethodPost, path, body, &first); err != nil {
			return err
		}
		body = maps.Clone(body)
		body["confirm"] = first.Confirm
		if err := u.replicas.Operate(http.MethodPost, path, body, nil); err != nil {
			return err
		}
	}
	return nil
}
