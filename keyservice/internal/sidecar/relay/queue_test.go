package relay

import (
	"math/rand/v2"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// TestQueueKeepsOrder adds and takes in a random order: what comes out is what went in, and memory does not grow with what has passed.
func TestQueueKeepsOrder(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0)) // #nosec G404 -- no secret
	const limit = 100
	q := newQueue(limit, wire.NewWriter(nil))
	added, taken := int32(0), int32(0)
	for range 100_000 {
		if waiting := added - taken; waiting == 0 || waiting < limit && random.IntN(2) == 0 {
			if err := q.push(t.Context(), entry{x: &flow.Exchange{CorrelationID: added}}); err != nil {
				t.Fatal(err)
			}
			added++
			continue
		}
		if x := q.head(); x == nil || x.CorrelationID != taken {
			t.Fatalf("seed %d: %+v, expected %d of %d", seed, x, taken, added)
		}
		if err := q.pop(); err != nil {
			t.Fatal(err)
		}
		taken++
	}
	if got := cap(q.memory); got > 4*limit {
		t.Fatalf("seed %d: memory for %d entries, but never more than %d waited", seed, got, limit)
	}
	for ; taken < added; taken++ {
		if err := q.pop(); err != nil {
			t.Fatal(err)
		}
	}
	if q.head() != nil || cap(q.memory) > keptEntries {
		t.Fatalf("seed %d: an empty queue keeps memory for %d entries", seed, cap(q.memory))
	}
}
