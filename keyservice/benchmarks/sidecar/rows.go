// What is compared, and the broker behind it.

package main

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const (
	plaintextRow = "plaintext"
	baselineRow  = "jdk-tls"
	javaJars     = "../java/benchmarks/target/lib/"
	javaLib      = javaJars + "*:../java/benchmarks/target/cipherlane-benchmarks.jar"
	brokerLib    = "../java/broker/target/lib/*"

	shimRow        = "cipherlane-tls"
	factorySetting = "ssl.engine.factory.class"
	shimFactory    = "dev.cipherlane.transport.CipherlaneSslEngineFactory"
)

// shimLib is what a broker needs for the shim beside its own.
var shimLib = []string{"cipherlane-core-", "cipherlane-transport-", "netty-", "bcp", "gson-"}

// row is one way from a client to the broker, which has a listener for each that it tells clients the address of.
type row struct {
	name    string
	at      string // where clients connect
	topic   string
	proxies []int    // processes
	admins  []string // addresses of our sidecars' metrics

	java string // a client's settings for TLS
}

// way is what a row's maker gets.
type way struct {
	*bench

	dir        string
	pki        *testservice.PKI
	pair       testservice.Pair // of client sides, server sides and the broker
	combined   string           // certificate and key in one file
	clientPort int              // where clients connect
	middlePort int              // between the two proxies
	broker     string           // the broker's plaintext listener of this row
	brokerTLS  string           // the broker's TLS listener
}

// maker starts a row's proxies. An error tells why the row cannot be had.
type maker func(w *way, r *row) error

var makers = map[string]maker{
	plaintextRow:     func(*way, *row) error { return nil },
	baselineRow:      jdkTLS,
	shimRow:          shim,
	"sidecar-pair":   sidecarPair,
	"sidecar-direct": sidecarDirect,
	"sidecar-tunnel": sidecarTunnel,
	"envoy":          envoy,
	"ghostunnel":     ghostunnel,
	"haproxy":        haproxy,
}

// order is that of the report.
// peerRows are proxies of others whose cost ours is held against.
var peerRows = []string{"ghostunnel", "envoy"}

var order = []string{plaintextRow, baselineRow, shimRow, "sidecar-pair", "sidecar-direct", "sidecar-tunnel", "envoy", "ghostunnel", "haproxy"}

func jdkTLS(w *way, r *row) error {
	r.at = w.brokerTLS
	r.java = fmt.Sprintf("security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location=%s\nssl.truststore.type=PEM\nssl.truststore.location=%s\n", w.combined, w.pki.CA)
	return nil
}

// shim is our TLS in broker and clients.
func shim(w *way, r *row) error {
	if _, err := shimPath(); err != nil {
		return err
	}
	r.at = w.broker
	r.java = "security.protocol=SSL\n"
	for name, value := range shimSettings(w.pair, w.pki.CA) {
		r.java += name + "=" + value + "\n"
	}
	return nil
}

// shimSettings have the certificate taken from its files: no key service is asked.
func shimSettings(pair testservice.Pair, ca string) map[string]string {
	return map[string]string{
		factorySetting: shimFactory, "cipherlane.keyservice.urls": "https://127.0.0.1:1",
		"cipherlane.keyservice.tls.ca": ca, "cipherlane.keyservice.tls.certificate": pair.Certificate, "cipherlane.keyservice.tls.key": pair.Key,
	}
}

// shimPath gives the class path of shimLib.
func shimPath() (string, error) {
	var all []string
	for _, name := range shimLib {
		jars, err := filepath.Glob(javaJars + name + "*.jar")
		if err != nil {
			return "", err
		}
		all = append(all, slices.DeleteFunc(jars, func(jar string) bool { return strings.HasSuffix(jar, "-tests.jar") })...)
	}
	if !slices.ContainsFunc(all, func(jar string) bool { return strings.Contains(jar, "cipherlane-transport-") }) {
		return "", errors.New("the module transport is missing: make -C java")
	}
	return strings.Join(all, ":"), nil
}

// prepare starts broker and rows. A row that cannot be had is told.
func (b *bench) prepare(wanted []string) {
	for _, name := range wanted {
		if makers[name] == nil {
			b.Fatalf("there is no row %q, but %s", name, strings.Join(names(), ", "))
		}
	}
	pki := testservice.NewPKI(b)
	pair := pki.Issue(b, "bench", "spiffe://bench.cipherlane/bench", 24*time.Hour)
	dir := b.TempDir()
	combined := filepath.Join(dir, "combined.pem")
	rig.Check(os.WriteFile(combined, append(rig.Must(os.ReadFile(pair.Key)), rig.Must(os.ReadFile(pair.Certificate))...), 0o600)) // #nosec G703 -- our own folder
	ports := freePorts(2 + 3*len(order))
	tlsAt := fmt.Sprintf("127.0.0.1:%d", ports[1])
	ways, listeners := map[string]*way{}, map[string][2]int{}
	for i, name := range order {
		p := ports[2+3*i:]
		ways[name] = &way{bench: b, dir: dir, pki: pki, pair: pair, combined: combined, clientPort: p[0], middlePort: p[1], broker: fmt.Sprintf("127.0.0.1:%d", p[2]), brokerTLS: tlsAt}
		listeners[name] = [2]int{p[2], p[0]}
		if name == plaintextRow || name == shimRow || strings.HasPrefix(name, "sidecar-") { // they tell clients addresses of their own
			listeners[name] = [2]int{p[2], p[2]}
		}
	}
	b.startBroker(dir, ports[0], ports[1], listeners, pki.CA, combined, pair)
	b.startRows(ways, wanted)
}

// startRows starts what stands between the clients and the broker; without any wanted, all of it.
func (b *bench) startRows(ways map[string]*way, wanted []string) {
	for _, name := range order {
		if len(wanted) > 0 && name != baselineRow && !slices.Contains(wanted, name) {
			continue
		}
		w := ways[name]
		r := &row{name: name, at: fmt.Sprintf("127.0.0.1:%d", w.clientPort), topic: "bench-" + name}
		if name == plaintextRow {
			r.at = w.broker
		}
		if err := makers[name](w, r); err != nil {
			fmt.Fprintf(os.Stderr, "row %s left out: %v\n", name, err)
			continue
		}
		b.await(r.at)
		b.rows = append(b.rows, r)
	}
	slices.SortStableFunc(b.rows, func(x, y *row) int { return slices.Index(order, x.name) - slices.Index(order, y.name) })
}

// startBroker runs Kafka with a TLS listener and, for each row, a plaintext one with the port that clients are told.
func (b *bench) startBroker(dir string, controller, tlsPort int, listeners map[string][2]int, ca, combined string, pair testservice.Pair) {
	var listen, told, protocols []string
	add := func(name string, port, toldPort int, protocol string) {
		listen = append(listen, fmt.Sprintf("%s://127.0.0.1:%d", name, port))
		told = append(told, fmt.Sprintf("%s://127.0.0.1:%d", name, toldPort))
		protocols = append(protocols, name+":"+protocol)
	}
	add("TLS", tlsPort, tlsPort, "SSL")
	classPath, shimmed := brokerLib, false
	if own, err := shimPath(); err == nil {
		classPath, shimmed = classPath+":"+own, true
	}
	for name, ports := range listeners {
		protocol := "PLAINTEXT"
		if name == shimRow && shimmed {
			protocol = "SSL"
		}
		add(listenerOf(name), ports[0], ports[1], protocol)
	}
	settings := map[string]string{
		"process.roles": "broker,controller", "node.id": "1", "controller.quorum.voters": fmt.Sprintf("1@127.0.0.1:%d", controller),
		"listeners":                      strings.Join(listen, ",") + fmt.Sprintf(",CONTROLLER://127.0.0.1:%d", controller),
		"advertised.listeners":           strings.Join(told, ","),
		"listener.security.protocol.map": strings.Join(append(protocols, "CONTROLLER:PLAINTEXT"), ","),
		"controller.listener.names":      "CONTROLLER", "inter.broker.listener.name": listenerOf(plaintextRow),
		"log.dirs": filepath.Join(dir, "log"), "auto.create.topics.enable": "true", "offsets.topic.replication.factor": "1",
		// Shortened all the time, as ShortLog of Java's benchmarks says why.
		"log.segment.bytes": "67108864", "log.retention.bytes": "67108864", "log.initial.task.delay.ms": "500", "log.retention.check.interval.ms": "500", "log.segment.delete.delay.ms": "100",
		"listener.name.tls.ssl.keystore.type": "PEM", "listener.name.tls.ssl.keystore.location": combined,
		"listener.name.tls.ssl.truststore.type": "PEM", "listener.name.tls.ssl.truststore.location": ca, "listener.name.tls.ssl.client.auth": "required",
	}
	if shimmed { // the factory for its own listener only; settings of a factory are those of the broker
		maps.Copy(settings, shimSettings(pair, ca))
		delete(settings, factorySetting)
		settings["listener.name."+strings.ToLower(listenerOf(shimRow))+"."+factorySetting] = shimFactory
	}
	var text strings.Builder
	for name, value := range settings {
		fmt.Fprintf(&text, "%s=%s\n", name, value)
	}
	file := filepath.Join(dir, "broker.properties")
	rig.Check(os.WriteFile(file, []byte(text.String()), 0o600))
	format := exec.CommandContext(b.Context(), "java", "-cp", classPath, "kafka.tools.StorageTool", "format", "-t", "MkU3OEVBNTcwNTJENDM2Qg", "-c", file) // #nosec G204 -- constants
	if out, err := format.CombinedOutput(); err != nil {
		b.Fatalf("format: %v: %s", err, out)
	}
	b.broker = b.start(filepath.Join(dir, "broker.log"), "java", "-Xms1g", "-Xmx1g", "-XX:+UseG1GC", "-XX:-UseDynamicNumberOfCompilerThreads", "-cp", classPath, "kafka.Kafka", file)
	b.await(fmt.Sprintf("127.0.0.1:%d", tlsPort))
}

func listenerOf(row string) string { return strings.ToUpper(strings.ReplaceAll(row, "-", "_")) }

// start runs a program that is stopped at the end, and gives its process.
func (b *bench) start(log, name string, arguments ...string) int {
	b.logs = append(b.logs, log)
	out := rig.Must(os.Create(log))                             // #nosec G304 -- in our own folder
	cmd := exec.CommandContext(b.Context(), name, arguments...) // #nosec G204 -- what is compared
	cmd.Stdout, cmd.Stderr = out, out
	rig.Check(cmd.Start())
	b.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		timer := time.AfterFunc(15*time.Second, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
		_ = cmd.Wait()
		_ = out.Close()
	})
	return cmd.Process.Pid
}

const startTime = time.Minute

// await waits until something listens.
func (b *bench) await(address string) {
	for end := time.Now().Add(startTime); ; time.Sleep(50 * time.Millisecond) {
		c, err := net.Dial("tcp", address) //nolint:noctx // to this machine
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(end) {
			b.Fatalf("nothing listens at %s: %v\n%s", address, err, b.lastWords())
		}
	}
}

// lastWords gives the end of what each process has said.
func (b *bench) lastWords() string {
	var all strings.Builder
	for _, log := range b.logs {
		text, _ := os.ReadFile(log) // #nosec G304 -- in our own folder
		fmt.Fprintf(&all, "%s: %s\n", filepath.Base(log), text[max(0, len(text)-500):])
	}
	return all.String()
}

func freePorts(n int) []int {
	ports, listeners := make([]int, n), make([]net.Listener, n)
	for i := range n {
		listeners[i] = rig.Must(net.Listen("tcp", "127.0.0.1:0")) //nolint:noctx // to this machine
		if at, ok := listeners[i].Addr().(*net.TCPAddr); ok {
			ports[i] = at.Port
		}
	}
	for _, l := range listeners {
		rig.Check(l.Close())
	}
	return ports
}
