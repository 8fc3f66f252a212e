package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// inNamespace runs this test again in a network namespace of its own, where it may change the rules of the firewall. It tells whether
// it is there already.
func inNamespace(t *testing.T) bool {
	t.Helper()
	if os.Getenv("CIPHERLANE_TEST_NAMESPACE") != "" {
		return true
	}
	_, noNFT := exec.LookPath("nft")
	unshare, noUnshare := exec.LookPath("unshare")
	if noNFT != nil || noUnshare != nil || os.Geteuid() != 0 {
		t.Skip("NOT TESTED: transparent mode needs root, nft and unshare")
	}
	cmd := exec.CommandContext(t.Context(), unshare, "--net", os.Args[0], "-test.run", "^"+t.Name()+"$", "-test.v", "-test.count=1")
	cmd.Env = append(os.Environ(), "CIPHERLANE_TEST_NAMESPACE=1")
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "--- PASS: "+t.Name()) {
		t.Fatalf("in a network namespace: %v\n%s", err, out)
	}
	return false
}

func sh(t *testing.T, script string) {
	t.Helper()
	if out, err := exec.CommandContext(t.Context(), "sh", "-ec", script).CombinedOutput(); err != nil {
		t.Fatalf("%s: %v %s", script, err, out)
	}
}

// [CL-SDC-004] A program that connects to a broker's own address is redirected into the sidecar, which goes on to that address over
// TLS; one that connects to the sidecar itself is refused.
func TestTransparent(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	sh(t, "ip link set lo up; ip addr add 10.77.0.1/32 dev lo; ip addr add 10.77.0.2/32 dev lo")
	pki := testservice.NewPKI(t)
	plaintext := echo(t, "10.77.0.1:0")
	brokerSide := testservice.StartSidecar(t, fmt.Sprintf("side: broker\ntcp: [{name: echo, listen: '10.77.0.2:9093', upstream: ['%s']}]\nadmin_listen: 127.0.0.1:0\n%s",
		plaintext, tlsPart(t, pki, "broker-side")))
	clientSide := testservice.StartSidecar(t, "side: client\ntransparent: {listen: '127.0.0.1:15001', port: 9093, kafka: false}\nadmin_listen: 127.0.0.1:0\n"+
		tlsPart(t, pki, "client-side"))
	sh(t, `nft -f - <<'END'
table ip sidecar {
	chain output {
		type nat hook output priority -100;
		ip daddr 10.77.0.2 tcp dport 9092 redirect to :15001
	}
}
END`)
	c, err := net.Dial("tcp", "10.77.0.2:9092") // where nothing listens
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fmt.Fprintln(c, "through TLS")
	if line, err := bufio.NewReader(c).ReadString('\n'); err != nil || line != "through TLS\n" {
		t.Fatal(line, err, clientSide.Log, brokerSide.Log)
	}
	direct, err := net.Dial("tcp", "127.0.0.1:15001")
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Close()
	if _, err := direct.Read(make([]byte, 1)); err == nil {
		t.Fatal("a connection that was not redirected was taken")
	}
}

// echo runs a server that sends back what it gets.
func echo(t *testing.T, address string) string {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return serve(t, l, func(c net.Conn) { _, _ = io.Copy(c, c) })
}
