package config

import (
	"strings"
	"testing"
)

const (
	broker   = "side: broker\n" + kafka + pem
	asks     = "access: {urls: ['https://k:8443'], ca: ca.pem, audit: {file: a.jsonl}"
	programs = ", processes: [{principal: p, uid: 1001, executable: /usr/bin/app, sha256: ab}, {principal: q, uid: 0}]"
)

// [CL-ACC-015]
func TestAccess(t *testing.T) {
	t.Setenv("CIPHERLANE_TEST_LABEL", "x")
	for _, text := range []string{broker + asks + "}\n", "side: client\n" + kafka + pem + asks + programs + ", labels: [CIPHERLANE_TEST_LABEL]}\n"} {
		if c, err := read(t, text); err != nil || c.Access == nil || c.Access.Audit.MaxSize != 1<<30 {
			t.Errorf("%s: %v", text, err)
		}
	}
	for text, want := range map[string]string{
		broker + strings.Replace(asks, "https", "http", 1) + "}\n":                                 "https://host:port",
		broker + strings.Replace(asks, "ca: ca.pem, ", "", 1) + "}\n":                              `"ca" is missing`,
		broker + strings.Replace(asks, ", audit: {file: a.jsonl}", "", 1) + "}\n":                  `"audit" is missing`,
		broker + strings.Replace(asks, "file: a.jsonl", "max_size: 1048576", 1) + "}\n":            `"file" is missing`,
		broker + asks + programs + "}\n":                                                           "side: client",
		"side: client\n" + kafka + pem + asks + "}\n":                                              "goes by processes",
		"side: client\n" + kafka + pem + asks + ", processes: [{principal: p}]}\n":                 "fits every process",
		"side: client\n" + kafka + pem + asks + ", processes: [{uid: 1}]}\n":                       `"principal" is missing`,
		"side: client\n" + kafka + pem + asks + ", processes: [{principal: p, uid: -1}]}":          "not within",
		broker + asks + ", labels: [CIPHERLANE_TEST_NO_SUCH]}\n":                                   "no variable",
		"side: client\ntransparent: {listen: '127.0.0.1:15001'}\n" + pem + asks + programs + "}\n": "transparent",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
