package main

import (
	"fmt"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// identityPart is the section of a configuration for a certificate from the key service, by a token.
func identityPart(t *testing.T, a *testservice.Authority, name string) string {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	a.Token(t, token, "spiffe://example.org/"+name)
	return fmt.Sprintf("identity: {urls: ['%s'], ca: %s, token_file: %s, dns_names: ['127.0.0.1', localhost]}\n", a.URL, a.PKI.CA, token)
}

func ready(t *testing.T, s *testservice.Sidecar) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if status, _ := get(t, s, "/readyz"); status == http.StatusOK {
			return
		}
	}
	t.Fatal("not ready", s.Log)
}

// Both sidecars have certificates of the key service, from a token each, and speak with each other; no file of theirs holds a key.
func TestCertificatesFromTheKeyService(t *testing.T) {
	a := testservice.StartAuthority(t, 10*time.Minute)
	far := testservice.StartSidecar(t, fmt.Sprintf("side: broker\ntcp: [{name: echo, listen: '127.0.0.1:0', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\n%s",
		echo(t, "127.0.0.1:0"), identityPart(t, a, "broker-side")))
	near := testservice.StartSidecar(t, fmt.Sprintf("side: client\ntls: {peers: ['spiffe://example.org/broker-side']}\ntcp: [{name: echo, listen: '127.0.0.1:0', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\n%s",
		far.Listeners["echo"], identityPart(t, a, "client-side")))
	ready(t, far)
	ready(t, near)
	talk(t, dial(t, near.Listeners["echo"]))
	if log := near.Log.String() + far.Log.String(); strings.Contains(log, "clbt_") || strings.Contains(log, "PRIVATE") {
		t.Error("a secret is in the log")
	}
}

// [CL-SDC-021] [CL-SDC-022] Certificates of ten seconds come and go under load: connections end before theirs does, and no record is lost or
// comes twice.
func TestCertificatesAreRenewedUnderLoad(t *testing.T) {
	a := testservice.StartAuthority(t, 10*time.Second)
	broker := testservice.RunBroker(t, "--topics", "renewed:1")
	far := testservice.StartSidecar(t, fmt.Sprintf("side: broker\nkafka: {listen: '127.0.0.1:0', upstream: %s, brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\n%s",
		list(broker.Bootstrap), freeRange(t, 10), identityPart(t, a, "broker-side")))
	near := testservice.StartSidecar(t, fmt.Sprintf("side: client\nkafka: {listen: '127.0.0.1:0', upstream: %s, brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\n%s",
		list(far.Listeners["kafka"]), freeRange(t, 10), identityPart(t, a, "client-side")))
	ready(t, far)
	ready(t, near)
	stop := load(t, near.Listeners["kafka"], "renewed")
	time.Sleep(25 * time.Second) // two and a half certificates
	once(t, near.Listeners["kafka"], "renewed", stop())
	ended := 0
	for _, s := range []*testservice.Sidecar{near, far} {
		_, text := get(t, s, "/metrics")
		if found := endedByCertificate.FindStringSubmatch(text); found != nil {
			n, err := strconv.Atoi(found[1])
			if err != nil {
				t.Fatal(err)
			}
			ended += n
		}
		if strings.Count(s.Log.String(), "a new certificate is in use") < 3 {
			t.Errorf("too few certificates: %s", s.Log)
		}
	}
	if ended < 2 {
		t.Errorf("%d connections ended with their certificate", ended)
	}
}

var endedByCertificate = regexp.MustCompile(`cipherlane_sidecar_connections_ended_total\{[^}]*reason="certificate"[^}]*\} (\d+)`)

// While the key service is down a sidecar runs, is not ready, and takes nothing.
func TestKeyServiceDown(t *testing.T) {
	a := testservice.StartAuthority(t, 10*time.Minute)
	part := strings.Replace(identityPart(t, a, "client-side"), a.URL, "https://127.0.0.1:1", 1)
	s := testservice.StartSidecar(t, fmt.Sprintf("side: client\ntcp: [{name: echo, listen: '127.0.0.1:0', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\n%s",
		echo(t, "127.0.0.1:0"), part))
	if status, text := get(t, s, "/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(text, "certificate") {
		t.Fatal(status, text)
	}
	c := dial(t, s.Listeners["echo"])
	_, _ = c.Write([]byte("hello"))
	closed(t, c)
}

// [CL-SDC-020] A sidecar whose first proof is a JWT is not ready while that is not taken, and is as soon as the file holds a good one.
func TestCertificateByJWT(t *testing.T) {
	a := testservice.StartAuthority(t, 10*time.Minute)
	part := func() (section, file string) {
		file = filepath.Join(t.TempDir(), "jwt")
		return fmt.Sprintf("identity: {urls: ['%s'], ca: %s, jwt_file: %s, dns_names: ['127.0.0.1']}\n", a.URL, a.PKI.CA, file), file
	}
	farPart, farFile := part()
	nearPart, nearFile := part()
	a.JWT(t, farFile, "spiffe://example.org/far", "cipherlane")
	a.JWT(t, nearFile, "spiffe://example.org/near", "somebody else")
	far := testservice.StartSidecar(t, fmt.Sprintf("side: broker\ntls: {peers: ['spiffe://example.org/near']}\ntcp: [{name: echo, listen: '127.0.0.1:0', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\n%s",
		echo(t, "127.0.0.1:0"), farPart))
	near := testservice.StartSidecar(t, fmt.Sprintf("side: client\ntls: {peers: ['spiffe://example.org/far']}\ntcp: [{name: echo, listen: '127.0.0.1:0', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\n%s",
		far.Listeners["echo"], nearPart))
	ready(t, far)
	eventually(t, "the refusal of the JWT", func() bool { return strings.Contains(near.Log.String(), "there is no certificate") })
	if status, text := get(t, near, "/readyz"); status != http.StatusServiceUnavailable {
		t.Error(status, text)
	}
	c := dial(t, near.Listeners["echo"])
	_, _ = c.Write([]byte("hello"))
	closed(t, c)
	a.JWT(t, nearFile, "spiffe://example.org/near", "cipherlane")
	ready(t, near)
	talk(t, dial(t, near.Listeners["echo"]))
	if log := near.Log.String() + far.Log.String(); strings.Contains(log, "eyJ") {
		t.Error("a JWT is in the log")
	}
}
