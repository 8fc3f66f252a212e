package config

import (
	"strings"
	"testing"
	"time"
)

func TestTunnels(t *testing.T) {
	for text, want := range map[string]Tunnels{
		"side: client\n" + kafka + pem + "tunnels: {}\n": {100, 4, Own, 1 << 20, 10 * time.Second},
		"side: client\n" + kafka + pem + "tunnels: {streams: 7, connections: 2, unsupported: refuse, own: {bytes: 65536, within: 1m}}\n": {
			7, 2, Refuse, 65536, time.Minute,
		},
		"side: client\n" + kafka + pem + "tunnels: {own: {within: 2s}}\n": {100, 4, Own, 1 << 20, 2 * time.Second},
		"side: broker\n" + kafka + pem + "tunnels: {streams: 120}\n":      {Streams: 120},
	} {
		c, err := read(t, text)
		if err != nil || c.Tunnels == nil || *c.Tunnels != want {
			t.Errorf("%s: %+v, %v", text, c.Tunnels, err)
		}
	}
	if c, err := read(t, "side: client\n"+kafka+pem); err != nil || c.Tunnels != nil {
		t.Error("they are not off by default:", c.Tunnels, err)
	}
}

func TestBadTunnels(t *testing.T) {
	client := "side: client\n" + kafka + pem
	for text, want := range map[string]string{
		client + "tunnels: {streams: 0}\n":                                                               "not within",
		client + "tunnels: {streams: 121}\n":                                                             "not within",
		client + "tunnels: {connections: 65}\n":                                                          "not within",
		client + "tunnels: {own: {bytes: 1}}\n":                                                          "not within",
		client + "tunnels: {own: {within: 1ms}}\n":                                                       "not within",
		client + "tunnels: {unsupported: perhaps}\n":                                                     "not one of",
		client + "tunnels: {window: 5}\n":                                                                "unknown",
		client + "tunnels: yes\n":                                                                        "",
		"side: broker\n" + kafka + pem + "tunnels: {connections: 4}\n":                                   "side: client",
		"side: broker\n" + kafka + pem + "tunnels: {unsupported: own}\n":                                 "side: client",
		"side: broker\n" + kafka + pem + "tunnels: {own: {bytes: 65536}}\n":                              "side: client",
		"side: client\ntcp: [{name: a, listen: '[::1]:0', upstream: ['b:1']}]\n" + pem + "tunnels: {}\n": "go with kafka",
		"side: client\ntransparent: {listen: '127.0.0.1:15001', kafka: false}\n" + pem + "tunnels: {}\n": "go with kafka",
	} {
		if _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, not %q", text, err, want)
		}
	}
}
