package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

func TestMain(m *testing.M) {
	code := m.Run()
	testservice.Remove()
	os.Exit(code)
}

// tlsPart is the section of a configuration for a certificate that holds for an hour.
func tlsPart(t *testing.T, pki *testservice.PKI, name string) string {
	t.Helper()
	pair := pki.Issue(t, name, "spiffe://example.org/"+name, time.Hour)
	return fmt.Sprintf("tls: {ca: %s, certificate: %s, key: %s}\n", pki.CA, pair.Certificate, pair.Key)
}

// freeRange gives the first of n ports that are free and follow each other.
func freeRange(t *testing.T, n int) int {
	t.Helper()
	const below, ephemeral = 20_000, 32_768 // ports that no outgoing connection takes meanwhile
	for range 100 {
		if first := below + rand.IntN(ephemeral-below-n); allFree(first, n) {
			return first
		}
	}
	t.Fatal("no range of free ports")
	return 0
}

func allFree(first, n int) bool {
	for port := first; port < first+n; port++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return false
		}
		l.Close()
	}
	return true
}

// list makes a YAML list of "a,b".
func list(addresses string) string { return "[" + strings.ReplaceAll(addresses, ",", ", ") + "]" }

// pair is a sidecar beside clients and one before brokers.
type pair struct {
	client, broker *testservice.Sidecar
	bootstrap      string
	base           int // of the ports that clients are told
}

// startPair puts both before brokers in plaintext. Extra is added to both configurations.
func startPair(t *testing.T, pki *testservice.PKI, brokers, extra string) pair {
	t.Helper()
	return startTwo(t, pki, brokers, extra, extra)
}

// startTwo is startPair with something else for each side.
func startTwo(t *testing.T, pki *testservice.PKI, brokers, near, far string) pair {
	t.Helper()
	broker := testservice.StartSidecar(t, fmt.Sprintf("side: broker\nkafka: {listen: '127.0.0.1:0', upstream: %s, brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\n%s%s",
		list(brokers), freeRange(t, 10), tlsPart(t, pki, "broker-side"), far))
	base := freeRange(t, 10)
	client := startClientSide(t, pki, broker.Listeners["kafka"], base, near)
	return pair{client, broker, client.Listeners["kafka"], base}
}

func startClientSide(t *testing.T, pki *testservice.PKI, upstream string, base int, extra string) *testservice.Sidecar {
	t.Helper()
	return testservice.StartSidecar(t, fmt.Sprintf("side: client\nkafka: {listen: '127.0.0.1:0', upstream: %s, brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\n%s%s",
		list(upstream), base, tlsPart(t, pki, "client-side"), extra))
}
