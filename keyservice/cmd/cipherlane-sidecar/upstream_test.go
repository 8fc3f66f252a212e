// Brokers that speak TLS themselves, with certificates of the key service and no sidecar beside them.

package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// tlsBroker starts a broker with a listener for mutual TLS, whose certificate is the key service's, and gives that listener's address.
func tlsBroker(t *testing.T, a *testservice.Authority, topics string) string {
	t.Helper()
	store, cas := a.KeyStore(t, "kafka")
	options := []string{"--topics", topics, "--listener", "TLS:SSL"}
	for _, setting := range []string{
		"keystore.type=PEM", "keystore.location=" + store, "truststore.type=PEM", "truststore.location=" + cas, "client.auth=required",
	} {
		options = append(options, "--set", "listener.name.tls.ssl."+setting)
	}
	return testservice.RunBroker(t, options...).Listeners["TLS"]
}

// upstreamConfig is a client side straight before a broker's own listener.
func upstreamConfig(t *testing.T, a *testservice.Authority, name, upstream, more string) string {
	t.Helper()
	return fmt.Sprintf("side: client\nkafka: {listen: '127.0.0.1:0', upstream: ['%s'], brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\n%s%s",
		upstream, freeRange(t, 3), more, identityPart(t, a, name))
}

// [CL-SDC-003] [CL-SDC-011] A client in plaintext works with a broker whose own listener wants mutual TLS; a sidecar that expects another
// peer sends it nothing.
func TestBrokersOwnListener(t *testing.T) {
	a := testservice.StartAuthority(t, 10*time.Minute)
	upstream := tlsBroker(t, a, "claims:3")
	near := testservice.StartSidecar(t, upstreamConfig(t, a, "near", upstream, "tls: {peers: ['spiffe://example.org/kafka']}\n"))
	ready(t, near)
	d := &dialed{all: map[string]bool{}}
	produce(t, kafkaClient(t, near.Listeners["kafka"], kgo.Dialer(d.dial)), "claims", 300)
	group(t, pair{bootstrap: near.Listeners["kafka"]}, "claims", kgo.Dialer(d.dial), kgo.ConsumerGroup("direct"))
	if d.all[upstream] || len(d.all) != 2 {
		t.Errorf("connected to %v, of which the broker has %s", d.all, upstream)
	}
	picky := testservice.StartSidecar(t, upstreamConfig(t, a, "picky", upstream, "tls: {peers: ['spiffe://example.org/another']}\n"))
	ready(t, picky)
	c := kafkaClient(t, picky.Listeners["kafka"], kgo.RetryTimeout(time.Second))
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if err := c.Ping(ctx); err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("a broker with another name is used: %v", err)
	}
	if log := picky.Log.String(); !strings.Contains(log, "a connection was refused") || !strings.Contains(log, "spiffe://example.org/kafka") {
		t.Errorf("the log does not say why: %s", log)
	}
}
