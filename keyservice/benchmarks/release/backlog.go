// Many decryption keys at once, cold and warm, from a service on a real Vault.

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

const (
	scopeOfBacklog = "claims" // what the example policy calls the scope of this topic
	oneCall        = 1000     // kids in a call, at most
	promiseCold    = oneCall / 100
	promiseBacklog = 5 * time.Second
)

const vaultStore = `  vault:
    addresses: [%q]
    transit: %s
    kv: %s
    login: {token: {file: %q}}
`

// onVault is a Vault with a place for the service's keys.
type onVault struct {
	vault *testvault.Server
	place testvault.Place
}

func (b *bench) startVault() *onVault {
	vault := testvault.Dev(b, false)
	return &onVault{vault, vault.NewPlace(b)}
}

// folder makes one for the dev command that reaches Vault at an address.
func (o *onVault) folder(b *bench, address string) string {
	return b.folder(fmt.Sprintf(vaultStore, address, o.place.Transit, o.place.KV, o.place.TokenFile))
}

func initialise(dir string) {
	out, err := exec.CommandContext(context.Background(), program, "init", "--config", filepath.Join(dir, "keyservice.yaml")).CombinedOutput() // #nosec G204 -- our own program
	if err != nil {
		panic(rig.Failure{Err: fmt.Errorf("init: %w: %s", err, out)})
	}
}

// fill writes a week's backlog into Vault by the store's own parts (a test of package vault) and gives the kids.
func (o *onVault) fill(b *bench) []string {
	out := filepath.Join(b.TempDir(), "kids")
	cmd := exec.CommandContext(context.Background(), "go", "test", "-count=1", "-run", "^TestFillForBenchmark$", "./internal/store/vault")
	cmd.Env = append(os.Environ(), "CIPHERLANE_FILL_OUT="+out, "CIPHERLANE_FILL_VAULT="+o.vault.Address, "CIPHERLANE_FILL_TRANSIT="+o.place.Transit,
		"CIPHERLANE_FILL_KV="+o.place.KV, "CIPHERLANE_FILL_TOKEN="+o.place.TokenFile, "CIPHERLANE_FILL_SCOPE="+scopeOfBacklog)
	if text, err := cmd.CombinedOutput(); err != nil {
		panic(rig.Failure{Err: fmt.Errorf("fill: %w: %s", err, text)})
	}
	return strings.Fields(string(rig.Must(os.ReadFile(out)))) // #nosec G304 -- a file of this benchmark
}

func measureBacklog(b *bench) {
	o := b.startVault()
	proxy := testvault.NewProxy(b, o.vault)
	direct, counted := o.folder(b, o.vault.Address), o.folder(b, proxy.Address)
	initialise(direct)
	kids := o.fill(b)
	b.roundTrips(counted, proxy, kids)
	var cold, warm rig.Series
	var service, vault rig.Series
	for range runs {
		one := b.release(direct, kids, o.vault.Pid())
		cold, warm = append(cold, millis(one.cold)), append(warm, millis(one.warm))
		service, vault = append(service, millis(one.serviceCPU)), append(vault, millis(one.vaultCPU))
	}
	name := fmt.Sprintf("backlog/%d/cold", len(kids))
	one := cold.Row(name, "cipherlane", "ms")
	one.Figures = b.splitOf(counted, proxy, o.place, kids)
	one.Figures["service_cpu_ms"], one.Figures["vault_cpu_ms"] = rig.Round(service.Median()), rig.Round(vault.Median())
	b.report.Add(one.Promised(fmt.Sprintf("at most %s", promiseBacklog), one.Value <= millis(promiseBacklog)))
	b.report.Add(warm.Row(fmt.Sprintf("backlog/%d/warm", len(kids)), "cipherlane", "ms"))
}

func millis(d time.Duration) float64 { return micros(d) / 1000 }

// roundTrips counts what a call for 1,000 keys costs Vault: those of the oldest, the newest, and some of every page.
func (b *bench) roundTrips(dir string, proxy *testvault.Proxy, kids []string) {
	var cold, warm, coldTime, warmTime rig.Series
	for _, part := range [][]string{kids[:oneCall], kids[len(kids)-oneCall:], every(kids, len(kids)/oneCall)[:oneCall]} {
		service := b.startService(dir)
		request := decryptionRequest(scopeOfBacklog, part)
		ask := func() (requests, took float64) {
			proxy.Take()
			began := time.Now()
			released(service.once("consumer", decryptPath, request), len(part))
			return float64(len(proxy.Take())), millis(time.Since(began))
		}
		requests, took := ask()
		cold, coldTime = append(cold, requests), append(coldTime, took)
		requests, took = ask()
		warm, warmTime = append(warm, requests), append(warmTime, took)
		service.stop()
	}
	one := cold.Row("batch/1000/cold", "cipherlane", "vault_round_trips")
	one.Figures = map[string]float64{"ms": rig.Round(coldTime.Median())}
	b.report.Add(one.Promised(fmt.Sprintf("at most %d", promiseCold), slices.Max(cold) <= promiseCold))
	one = warm.Row("batch/1000/warm", "cipherlane", "vault_round_trips")
	one.Figures = map[string]float64{"ms": rig.Round(warmTime.Median())}
	b.report.Add(one.Promised("none", slices.Max(warm) == 0))
}

func every(kids []string, n int) []string {
	var some []string
	for i := 0; i < len(kids); i += n {
		some = append(some, kids[i])
	}
	return some
}

// released sees that an answer has a key for every kid.
func released(answer []byte, kids int) {
	if got := strings.Count(string(answer), `"key":"`); got != kids {
		panic(rig.Failure{Err: fmt.Errorf("%d keys for %d kids: %.300s", got, kids, answer)})
	}
}

type released12k struct{ cold, warm, serviceCPU, vaultCPU time.Duration }

// release asks a service that has just started for all kids, 1,000 in a call, and then again.
func (b *bench) release(dir string, kids []string, vaultPid int) (r released12k) {
	service := b.startService(dir)
	defer service.stop()
	serviceCPU, vaultCPU := service.cpu(), rig.CPU(vaultPid)
	r.cold = service.askAll(kids)
	r.serviceCPU, r.vaultCPU = service.cpu()-serviceCPU, rig.CPU(vaultPid)-vaultCPU
	r.warm = service.askAll(kids)
	return r
}

func (s *server) askAll(kids []string) time.Duration {
	c := s.client("consumer", false)
	defer c.CloseIdleConnections()
	began := time.Now()
	for part := range slices.Chunk(kids, oneCall) {
		released(rig.Must(s.post(c, decryptPath, decryptionRequest(scopeOfBacklog, part))), len(part))
	}
	return time.Since(began)
}

// splitOf says, of one more cold run through the counting proxy, how long Vault took in which engine, and what is left.
func (b *bench) splitOf(dir string, proxy *testvault.Proxy, place testvault.Place, kids []string) map[string]float64 {
	service := b.startService(dir)
	defer service.stop()
	proxy.Take()
	before := proxy.Spent()
	all := millis(service.askAll(kids))
	spent := proxy.Spent()
	kv, transit := millis(spent[place.KV]-before[place.KV]), millis(spent[place.Transit]-before[place.Transit])
	return map[string]float64{
		"vault_round_trips": float64(len(proxy.Take())), "kv_ms": rig.Round(kv), "transit_ms": rig.Round(transit), "service_tls_json_audit_ms": rig.Round(all - kv - transit),
	}
}
