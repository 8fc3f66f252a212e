// Clients that are newer than the sidecar.

package relay

import (
	"encoding/binary"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/protocol"
)

// [CL-SDC-016] Who asks for versions in a way that is yet to come is told which way is known, in its turn, and goes on. The broker hears nothing of it.
func TestNewerApiVersions(t *testing.T) {
	for version := protocol.Versions()[18] + 1; version > 0; version *= 2 {
		e := serve(t, options())
		send(t, e.client, heartbeat(1))
		receive(t, e.broker)
		p := request(kmsg.NewPtrApiVersionsRequest(), 2)
		binary.BigEndian.PutUint16(p[6:], uint16(version))
		send(t, e.client, p)
		send(t, e.broker, response(1))
		if first := receive(t, e.client); binary.BigEndian.Uint32(first) != 1 {
			t.Fatalf("version %d: %x", version, first)
		}
		answer := receive(t, e.client)
		got := kmsg.NewPtrApiVersionsResponse()
		if err := got.ReadFrom(answer[4:]); err != nil || binary.BigEndian.Uint32(answer) != 2 {
			t.Fatalf("version %d: %x: %v", version, answer, err)
		}
		if got.ErrorCode != 35 || len(got.ApiKeys) != 1 || got.ApiKeys[0].ApiKey != 18 || got.ApiKeys[0].MinVersion != 0 ||
			got.ApiKeys[0].MaxVersion != protocol.Versions()[18] {
			t.Fatalf("version %d: %+v", version, got)
		}
		exchange(t, e, 3)
	}
}
