package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func read(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sidecar.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Read(path)
}

const (
	pem   = "tls: {ca: ca.pem, certificate: c.pem, key: k.pem}\n"
	kafka = "kafka: {listen: '127.0.0.1:9092', upstream: ['b:9093'], brokers: {base_port: 19000}}\n"
)

func TestGood(t *testing.T) {
	for _, text := range []string{
		"side: client\n" + kafka + pem,
		"side: broker\nkafka: {listen: '0.0.0.0:9093', upstream: ['127.0.0.1:9092'], brokers: {port: 9093}}\n" + pem,
		"side: client\ntcp: [{name: a, listen: '[::1]:0', upstream: ['b:1', 'c:2']}]\n" + pem,
		"side: client\ntransparent: {listen: '127.0.0.1:15001', port: 9093}\n" + pem,
		"side: client\n" + kafka + "identity: {urls: ['https://k:8443'], ca: ca.pem, token_file: t}\n",
		"side: client\n" + kafka + pem + "identity: {urls: ['https://k:8443'], ca: ca.pem}\n",
	} {
		c, err := read(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if c.TLS.CA != "" && !filepath.IsAbs(c.TLS.CA) {
			t.Error("the path is not taken from the file:", c.TLS.CA)
		}
	}
}

// [CL-SDC-002] and the rest of what does not go together.
func TestBad(t *testing.T) {
	for text, want := range map[string]string{
		"side: middle\n" + kafka + pem: "not one of",
		kafka + pem:                    `"side" is missing`,
		"side: client\n" + pem:         "nothing to do",
		"side: client\n" + kafka:       "are needed, or identity",
		"side: client\n" + kafka + "tls: {ca: ca.pem, certificate: c.pem}\n":                                               "go together",
		"side: client\n" + strings.Replace(kafka, "127.0.0.1:9092", "0.0.0.0:9092", 1) + pem:                               "not a loopback",
		"side: client\n" + strings.Replace(kafka, "base_port", "listen: 10.0.0.1, base_port", 1) + pem:                     "not a loopback",
		"side: client\ntcp: [{name: a, listen: '10.0.0.1:1', upstream: ['b:1']}]\n" + pem:                                  "not a loopback",
		"side: client\ntransparent: {listen: ':15001'}\n" + pem:                                                            "not a loopback",
		"side: broker\nadmin_listen: 0.0.0.0:9464\n" + kafka + pem:                                                         "not a loopback",
		"side: broker\ntransparent: {listen: '127.0.0.1:15001'}\n" + pem:                                                   "side: client",
		"side: client\ntransparent: {listen: '127.0.0.1:15001'}\n" + kafka + pem:                                           "without kafka",
		"side: client\n" + strings.Replace(kafka, "base_port: 19000", "base_port: 19000, port: 1", 1) + pem:                "not both",
		"side: client\n" + strings.Replace(kafka, "base_port: 19000", "forget: 5m", 1) + pem:                               "not both",
		"side: client\n" + strings.Replace(kafka, "base_port: 19000", "base_port: 65536", 1) + pem:                         "not within",
		"side: client\n" + strings.Replace(kafka, "'b:9093'", "'b'", 1) + pem:                                              "not host:port",
		"side: client\n" + strings.Replace(kafka, "'b:9093'", "'b:99999'", 1) + pem:                                        "not host:port",
		"side: client\n" + strings.Replace(kafka, "['b:9093']", "[]", 1) + pem:                                             "list is empty",
		"side: broker\nkafka: {listen: '0.0.0.0:9093', upstream: ['127.0.0.1:9092'], brokers: {base_port: 19000}}\n" + pem: "host is needed",
		"side: client\n" + kafka + pem + "limits: {frame: 1048576, memory: 4194303}\n":                                     "at least four times",
		"side: client\n" + kafka + pem + "unknown: 1\n":                                                                    "unknown member",
		"side: client\n" + kafka + strings.Replace(pem, "tls: {", "tls: {peers: ['spiffe://x/**/y'], ", 1):                 "**",
		"side: client\n" + kafka + "identity: {urls: ['http://k:8443'], ca: ca.pem, token_file: t}\n":                      "not https",
		"side: client\n" + kafka + "identity: {urls: ['https://k:8443'], ca: ca.pem}\n":                                    "first proof",
		"side: client\n" + kafka + pem + "identity: {urls: ['https://k:8443'], ca: ca.pem, token_file: t}\n":               "leave one out",
		"side: client\n" + kafka + "identity: {urls: ['https://k:8443'], ca: ca.pem, token_file: t, jwt_file: j}\n":        "leave one out",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "sidecar.yaml:") {
			t.Errorf("%s: %v; expected %q", text, err, want)
		}
	}
}
