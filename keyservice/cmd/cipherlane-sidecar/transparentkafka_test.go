// Kafka through connections that the kernel redirects, IPv4 and IPv6.

package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const redirectBoth = `nft -f - <<'END'
table ip sidecar {
	chain output {
		type nat hook output priority -100;
		ip daddr 10.77.0.2 tcp dport 9092 redirect to :15001
	}
}
table ip6 sidecar {
	chain output {
		type nat hook output priority -100;
		ip6 daddr fd00:77::2 tcp dport 9092 redirect to :15001
	}
}
END`

// [CL-SDC-004] Clients that connect to the brokers' own addresses, where nothing listens, produce and consume with a group over TLS: the kernel redirects each
// connection into the sidecar, which asks it for the address.
func TestTransparentKafka(t *testing.T) {
	if !inNamespace(t) {
		return
	}
	sh(t, "ip link set lo up; ip addr add 10.77.0.2/32 dev lo; ip -6 addr add fd00:77::2/128 dev lo")
	pki := testservice.NewPKI(t)
	broker := testservice.StartBroker(t, "four:3,six:3")
	sh(t, redirectBoth)
	for _, c := range []struct{ topic, loopback, host string }{{"four", "127.0.0.1", "10.77.0.2"}, {"six", "[::1]", "[fd00:77::2]"}} {
		t.Run(c.topic, func(t *testing.T) {
			testservice.StartSidecar(t, fmt.Sprintf("side: broker\nkafka: {listen: '%s:9093', upstream: ['%s'], brokers: {host: '%s', port: 9092}}\nadmin_listen: 127.0.0.1:0\n%s",
				c.host, broker, strings.Trim(c.host, "[]"), tlsPart(t, pki, "far")))
			near := testservice.StartSidecar(t, fmt.Sprintf("side: client\ntransparent: {listen: '%s:15001', port: 9093}\nadmin_listen: 127.0.0.1:0\n%s", c.loopback, tlsPart(t, pki, "near")))
			address := c.host + ":9092"
			d := &dialed{all: map[string]bool{}}
			produce(t, kafkaClient(t, address, kgo.Dialer(d.dial)), c.topic, 100)
			group(t, pair{bootstrap: address}, c.topic, kgo.Dialer(d.dial), kgo.ConsumerGroup(c.topic))
			if !d.all[address] || len(d.all) != 1 {
				t.Errorf("connected to %v", d.all)
			}
			closed(t, dial(t, near.Listeners["transparent"])) // to the sidecar itself
			eventually(t, "the reason in the log", func() bool { return strings.Contains(near.Log.String(), "was not redirected") })
		})
	}
}
