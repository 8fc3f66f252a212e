// A broker on the Java transport shim, and clients that are neither Java's nor ours: franz-go and librdkafka. No sidecar is between them.

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// shimBroker starts a broker that has its certificate from the key service, with one listener for each version of TLS.
func shimBroker(t *testing.T, a *testservice.Authority) *testservice.Broker {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	a.Token(t, token, "spiffe://example.org/kafka")
	options := []string{"--topics", "franz-go:1,librdkafka:1", "--listener", "TLS12:SSL", "--listener", "TLS13:SSL"}
	for _, setting := range []string{
		"ssl.engine.factory.class=dev.cipherlane.transport.CipherlaneSslEngineFactory",
		"principal.builder.class=dev.cipherlane.transport.SpiffePrincipalBuilder",
		"num.network.threads=1", // each has sessions of its own
		"listener.name.tls12.ssl.enabled.protocols=TLSv1.2",
		"listener.name.tls13.ssl.enabled.protocols=TLSv1.3",
		"cipherlane.keyservice.urls=" + a.URL,
		"cipherlane.keyservice.tls.ca=" + a.PKI.CA,
		"cipherlane.identity.token.file=" + token,
		"cipherlane.tls.server.names=127.0.0.1",
	} {
		options = append(options, "--set", setting)
	}
	return testservice.RunBrokerWith(t, shimJars(t), options...)
}

// shimJars are what the broker needs beside its own.
func shimJars(t *testing.T) (all []string) {
	t.Helper()
	for _, name := range []string{"cipherlane-core", "cipherlane-transport", "gson"} {
		jars, err := filepath.Glob("../../../java/benchmarks/target/lib/" + name + "-*[0-9T].jar")
		if err != nil || len(jars) != 1 {
			t.Fatalf("run make test, which builds the Java SDK: %s: %v %v", name, jars, err)
		}
		all = append(all, jars[0])
	}
	return all
}

// clientTLS are settings for mutual TLS with the certificate of a key store.
func clientTLS(t *testing.T, store, cas string) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(store, store)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(cas) // #nosec G304 -- of this test
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return &tls.Config{Certificates: []tls.Certificate{pair}, RootCAs: roots, MinVersion: tls.VersionTLS12}
}

// [CL-IDN-040] [CL-IDN-041] Clients with certificates of the key service write and read over TLS 1.2 and 1.3, and resume sessions; nobody
// else gets in.
func TestShimAndOtherClients(t *testing.T) {
	a := testservice.StartAuthority(t, 10*time.Minute)
	broker := shimBroker(t, a)
	store, cas := a.KeyStore(t, "client")
	for listener, version := range map[string]uint16{"TLS12": tls.VersionTLS12, "TLS13": tls.VersionTLS13} {
		at := broker.Listeners[listener]
		t.Run("franz-go "+listener, func(t *testing.T) { franzGo(t, at, clientTLS(t, store, cas), version) })
		t.Run("librdkafka "+listener, func(t *testing.T) { librdkafka(t, at, listener, store, cas) })
		t.Run("refused "+listener, func(t *testing.T) { refusedByShim(t, at, clientTLS(t, store, cas), version) })
	}
}

func franzGo(t *testing.T, bootstrap string, config *tls.Config, version uint16) {
	t.Helper()
	var resumed atomic.Int32
	config.ClientSessionCache = tls.NewLRUClientSessionCache(8)
	config.VerifyConnection = func(state tls.ConnectionState) error {
		if state.Version != version {
			return fmt.Errorf("version %x", state.Version)
		}
		if state.DidResume {
			resumed.Add(1)
		}
		return nil
	}
	run := strconv.Itoa(int(version))
	for i := range 2 {
		c := kafkaClient(t, bootstrap, kgo.DialTLSConfig(config))
		records := make([]*kgo.Record, 200)
		for j := range records {
			records[j] = kgo.KeyStringRecord(run, fmt.Sprintf("%s-%d-%d", run, i, j))
			records[j].Topic = "franz-go"
		}
		if err := c.ProduceSync(within(t, time.Minute), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	c := kafkaClient(t, bootstrap, kgo.DialTLSConfig(config), kgo.ConsumeTopics("franz-go"))
	seen := consume(t, c, 400)
	if seen[run+"-1-199"] != 1 {
		t.Errorf("of %d records the last one came %d times", len(seen), seen[run+"-1-199"])
	}
	if resumed.Load() == 0 {
		t.Error("no session was resumed")
	}
}

// librdkafka takes part as kcat.
func librdkafka(t *testing.T, bootstrap, prefix, store, cas string) {
	t.Helper()
	program := testservice.Installed(t, "kcat")
	with := []string{
		"-b", bootstrap, "-t", "librdkafka", "-X", "security.protocol=ssl", "-X", "ssl.ca.location=" + cas,
		"-X", "ssl.certificate.location=" + store, "-X", "ssl.key.location=" + store,
	}
	runProgram(t, lines(prefix, 500), program, append(with, "-P")...)
	checkLines(t, runProgram(t, "", program, append(with, "-C", "-o", "beginning", "-e", "-q")...), prefix, 500)
}

func refusedByShim(t *testing.T, bootstrap string, good *tls.Config, version uint16) {
	t.Helper()
	another := testservice.NewPKI(t).Issue(t, "client", "spiffe://example.org/client", time.Hour)
	stranger, err := tls.LoadX509KeyPair(another.Certificate, another.Key)
	if err != nil {
		t.Fatal(err)
	}
	none, other, wrongVersion := good.Clone(), good.Clone(), good.Clone()
	none.Certificates = nil
	other.Certificates = []tls.Certificate{stranger}
	wrongVersion.MinVersion = tls.VersionTLS12 + tls.VersionTLS13 - version
	wrongVersion.MaxVersion = wrongVersion.MinVersion
	for name, config := range map[string]*tls.Config{"no certificate": none, "a certificate of another CA": other, "another version of TLS": wrongVersion} {
		c := kafkaClient(t, bootstrap, kgo.DialTLSConfig(config), kgo.RetryTimeout(time.Second))
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		if err := c.Ping(ctx); err == nil || errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s is not refused: %v", name, err)
		}
		cancel()
	}
	if err := kafkaClient(t, bootstrap, kgo.DialTLSConfig(good)).Ping(within(t, time.Minute)); err != nil {
		t.Errorf("after that nobody gets in: %v", err)
	}
}
