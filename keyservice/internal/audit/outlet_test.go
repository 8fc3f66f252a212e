// Sinks beside the file. Syslog messages are read by an independent parser.

package audit

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leodido/go-syslog/v4"
	"github.com/leodido/go-syslog/v4/octetcounting"
	"github.com/leodido/go-syslog/v4/rfc5424"
)

// received collects the records of syslog messages.
type received struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *received) add(t *testing.T, m syslog.Message, err error) {
	t.Helper()
	got, ok := m.(*rfc5424.SyslogMessage)
	if err != nil || !ok || !got.Valid() || *got.Facility != 13 || *got.Severity != 6 || *got.Appname != appName || got.Timestamp == nil {
		t.Errorf("not an RFC 5424 message of the audit log: %+v, %v", m, err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text.WriteString(*got.Message + "\n")
}

func (r *received) lines() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return bytes.Count(r.text.Bytes(), []byte("\n"))
}

// whole sees that lines arrive and that they are the chain.
func (r *received) whole(t *testing.T, want int, head Head) {
	t.Helper()
	for deadline := time.Now().Add(5 * time.Second); r.lines() < want && time.Now().Before(deadline); {
		time.Sleep(10 * time.Millisecond)
	}
	path := filepath.Join(t.TempDir(), "copy")
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := os.WriteFile(path, r.text.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := verify(t, Expect{Copy: true, Head: &head}, path); !got.Whole() || got.Lines != uint64(want) {
		t.Errorf("%+v", got)
	}
}

func (r *received) stream(t *testing.T, l net.Listener) {
	t.Helper()
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go octetcounting.NewParser(syslog.WithListener(func(result *syslog.Result) {
			if !errors.Is(result.Error, io.EOF) {
				r.add(t, result.Message, result.Error)
			}
		})).Parse(bufio.NewReader(conn))
	}
}

func (r *received) packets(t *testing.T, conn net.PacketConn) {
	t.Helper()
	buffer := make([]byte, 64<<10)
	for {
		n, _, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		m, err := rfc5424.NewParser().Parse(buffer[:n])
		r.add(t, m, err)
	}
}

func certificate(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
}

// CL-AUD-005 What each kind of syslog gets is the chain.
func TestSyslog(t *testing.T) {
	serverTLS, clientTLS := certificate(t)
	for name, listen := range map[string]func(r *received) string{
		"unix": func(r *received) string {
			dir, err := os.MkdirTemp("", "log") //nolint:usetesting // a socket's path is at most 107 bytes
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			conn, err := net.ListenPacket("unixgram", dir+"/log")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			go r.packets(t, conn)
			return "unix://" + dir + "/log"
		},
		"udp": func(r *received) string {
			conn, err := net.ListenPacket("udp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = conn.Close() })
			go r.packets(t, conn)
			return "udp://" + conn.LocalAddr().String()
		},
		"tcp": func(r *received) string {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go r.stream(t, l)
			return "tcp://" + l.Addr().String()
		},
		"tls": func(r *received) string {
			l, err := tls.Listen("tcp", "127.0.0.1:0", serverTLS)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = l.Close() })
			go r.stream(t, l)
			return "tls://" + l.Addr().String()
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := &received{}
			l, err := Open(Options{Name: "test", Syslog: &Syslog{Address: listen(r), TLS: clientTLS}}, quiet())
			if err != nil {
				t.Fatal(err)
			}
			for range 10 {
				if err := l.Write(t.Context(), record("x")); err != nil {
					t.Fatal(err)
				}
			}
			r.whole(t, 11, l.Head())
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// CL-AUD-005 A syslog server that is away is waited for where it must accept, and gets what it missed when it is back.
func TestSyslogAway(t *testing.T) {
	for _, required := range []bool{false, true} {
		first, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		address := first.Addr().String()
		_ = first.Close()
		o := Options{Name: "test", File: filepath.Join(t.TempDir(), "audit.jsonl"), Syslog: &Syslog{Address: "tcp://" + address}, RequireSyslog: required}
		l, err := Open(o, quiet())
		if required {
			if !errors.Is(err, errSlow) {
				t.Fatalf("opened without a sink that must accept: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Write(t.Context(), record("missed")); err != nil {
			t.Fatal(err)
		}
		again, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		r := &received{}
		go r.stream(t, again)
		r.whole(t, 2, l.Head())
		if err := errors.Join(l.Close(), again.Close()); err != nil {
			t.Error(err)
		}
	}
}

func TestSyslogTrustsOnlyItsCA(t *testing.T) {
	serverTLS, _ := certificate(t)
	_, otherTLS := certificate(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", serverTLS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for conn, err := l.Accept(); err == nil; conn, err = l.Accept() {
			if n, _ := conn.Read(make([]byte, 1)); n > 0 {
				t.Error("a stranger got a record")
			}
		}
	}()
	if _, err := Open(Options{Name: "test", Syslog: &Syslog{Address: "tls://" + l.Addr().String(), TLS: otherTLS}}, quiet()); !errors.Is(err, errSlow) {
		t.Errorf("sent to a stranger: %v", err)
	}
	if _, err := Open(Options{Name: "test", Syslog: &Syslog{Address: "tls://127.0.0.1:1"}}, quiet()); err == nil {
		t.Error("TLS without a CA")
	}
}

func TestSyslogAddress(t *testing.T) {
	for _, good := range []string{"unix:///dev/log", "udp://logs:514", "tcp://[::1]:601", "tls://logs.example.org:6514"} {
		if err := CheckSyslogAddress(good); err != nil {
			t.Error(err)
		}
	}
	for _, bad := range []string{"", "/dev/log", "unix:", "unix://host/dev/log", "udp://logs", "tcp://:514", "tls://logs:6514/x", "http://logs:80", "tcp://lo gs:1"} {
		if err := CheckSyslogAddress(bad); err == nil {
			t.Errorf("%q", bad)
		}
	}
}

// CL-AUD-005 Stdout beside the file gets the same lines; without any sink nothing opens.
func TestStdout(t *testing.T) {
	if _, err := Open(Options{Name: "test"}, quiet()); err == nil || !strings.Contains(err.Error(), "goes nowhere") {
		t.Errorf("%v", err)
	}
	dir := t.TempDir()
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	l, err := Open(Options{Name: "test", File: filepath.Join(dir, "audit.jsonl"), Stdout: out, RequireStdout: true}, quiet())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.Write(t.Context(), record("x")), l.Rotate(), l.Write(t.Context(), record("y")), l.Close(), out.Close()); err != nil {
		t.Fatal(err)
	}
	head := l.Head()
	if r := verify(t, Expect{Copy: true, Head: &head}, out.Name()); !r.Whole() || r.Lines != 4 {
		t.Errorf("%+v", r)
	}
}
