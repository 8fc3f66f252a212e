package policy

import (
	"net/netip"
	"testing"
)

// [CL-IDN-026]
func TestServerNames(t *testing.T) {
	p := parse(t, head+`grants:
  - {principals: [b], actions: [certificate], server_names: ["*", "broker-?.example.org", "*.kafka.example.org", 10.0.0.7, "2001:db8::1"]}
  - {principals: [c], actions: [certificate]}
`)
	broker, err := p.Certificate(Asker{Principal: "b"})
	if err != nil {
		t.Fatal(err)
	}
	for name, allowed := range map[string]bool{
		"localhost": true, "broker-1.example.org": true, "x.kafka.example.org": true,
		"broker-12.example.org": false, "a.b.kafka.example.org": false, "kafka.example.org": false, "example.org": false,
		"": false, "*": false, "*.kafka.example.org": false, "Localhost": false, "10.0.0.7": false, "7": false, "a b": false,
		"-a": false, "a-": false, "a..b": false, ".a": false, "a.": false, "\u00e9": false,
	} {
		if got := broker.Servers.AllowsDNS(name); got != allowed {
			t.Errorf("%q: %v", name, got)
		}
	}
	for text, allowed := range map[string]bool{"10.0.0.7": true, "2001:db8:0::1": true, "10.0.0.8": false, "::": false, "2001:db8::1%x": false} {
		if got := broker.Servers.AllowsAddress(netip.MustParseAddr(text)); got != allowed {
			t.Errorf("%s: %v", text, got)
		}
	}
	client, err := p.Certificate(Asker{Principal: "c"})
	if err != nil || client.Servers.AllowsDNS("localhost") || client.Servers.AllowsAddress(netip.MustParseAddr("10.0.0.7")) {
		t.Error("a grant without server_names allows one", err)
	}
}
