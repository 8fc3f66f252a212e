package gateway

import (
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
)

// [CL-SDC-021] Connections that began together end at times all over the last fifth of what was left, and none after it: their clients do not all come
// back at once.
func TestEndsAreSpread(t *testing.T) {
	const draws, parts, left = 2000, 10, time.Hour
	var counts [parts]int
	different := map[time.Duration]bool{}
	for range draws {
		d := early(left)
		if d < left*4/5 || d > left {
			t.Fatalf("%s of %s", d, left)
		}
		counts[min(parts-1, int((d-left*4/5)*parts/(left/5)))]++
		different[d] = true
	}
	if len(different) < draws*99/100 {
		t.Errorf("%d draws give %d times", draws, len(different))
	}
	for i, n := range counts { // 200 are to be expected, with a deviation of 13
		if n < draws/parts/2 || n > draws/parts*2 {
			t.Errorf("%d of %d are in part %d of %d: %v", n, draws, i, parts, counts)
		}
	}
}

// [CL-SDC-021] Of several certificates the one that ends first counts, early; one that has ended ends the connection at once.
func TestEndsWithTheFirstCertificate(t *testing.T) {
	for range 100 {
		var conn flow.Conn
		began := time.Now()
		endWith(&conn, began.Add(10*time.Hour))
		endWith(&conn, began.Add(time.Hour))
		endWith(&conn, began.Add(10*time.Hour))
		if at, reason := conn.End(); at.Before(began.Add(48*time.Minute)) || at.After(began.Add(time.Hour)) || reason != "certificate" {
			t.Fatalf("%s after the beginning, for %q", at.Sub(began), reason)
		}
		endWith(&conn, began.Add(-time.Hour))
		if at, _ := conn.End(); at.After(time.Now()) {
			t.Fatalf("%s from now, with a certificate that has ended", time.Until(at))
		}
	}
}
