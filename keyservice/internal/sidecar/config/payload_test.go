package config

import (
	"path/filepath"
	"strings"
	"testing"
)

const (
	clientSide = "side: client\ntls: {ca: ca.pem, certificate: a.pem, key: a-key.pem}\n"
	listeners  = "kafka: {listen: '127.0.0.1:9092', upstream: ['broker:9094'], brokers: {base_port: 20000}}\n"
)

// [CL-SDC-114]
func TestPayload(t *testing.T) {
	if c, err := read(t, clientSide+listeners); err != nil || c.Payload != nil {
		t.Fatalf("off by default: %+v %v", c.Payload, err)
	}
	c, err := read(t, clientSide+listeners+"payload: {urls: ['https://a:8443', 'https://b:8443'], ca: ca.pem, record_key_topics: [claims, 'a.*', 'b?']}\n")
	if err != nil || c.Payload.FailureAction != "fail" || !filepath.IsAbs(c.Payload.CA) {
		t.Fatalf("%+v %v", c.Payload, err)
	}
	for topic, bound := range map[string]bool{"claims": true, "claims2": false, "a.b.c": true, "b1": true, "b": false, "b12": false} {
		if c.Payload.BindsKey(topic) != bound {
			t.Errorf("%s: bound is %v", topic, !bound)
		}
	}
	const good = "payload: {urls: ['https://a:8443'], ca: ca.pem}\n"
	for name, bad := range map[string]struct{ text, says string }{
		"no address":        {clientSide + listeners + "payload: {ca: ca.pem}\n", "urls"},
		"an empty list":     {clientSide + listeners + "payload: {urls: [], ca: ca.pem}\n", "empty"},
		"without TLS":       {clientSide + listeners + "payload: {urls: ['http://a:8443'], ca: ca.pem}\n", "https://"},
		"no CA":             {clientSide + listeners + "payload: {urls: ['https://a:8443']}\n", "ca"},
		"dead letters":      {clientSide + listeners + "payload: {urls: ['https://a:8443'], ca: ca.pem, failure_action: dead-letter}\n", "fail"},
		"a bad glob":        {clientSide + listeners + "payload: {urls: ['https://a:8443'], ca: ca.pem, record_key_topics: ['[a]']}\n", "[a]"},
		"the broker's side": {strings.Replace(clientSide, "client", "broker", 1) + listeners + good, "client only"},
		"a way past":        {clientSide + listeners + good + "tcp: [{name: a, listen: '127.0.0.1:1', upstream: ['b:1']}]\n", "as they are"},
		"another way past":  {clientSide + good + "transparent: {listen: '127.0.0.1:1', kafka: false}\n", "as they are"},
		"too much":          {clientSide + listeners + "payload: {urls: ['https://a:8443'], ca: ca.pem, max_plaintext_bytes: 1073741825}\n", "1073741824"},
	} {
		if _, err := read(t, bad.text); err == nil || !strings.Contains(err.Error(), bad.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
