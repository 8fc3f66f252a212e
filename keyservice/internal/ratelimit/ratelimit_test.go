package ratelimit

import (
	"strconv"
	"testing"
	"time"
)

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestBudget(t *testing.T) {
	l := New(10, 20)
	for i := range 20 {
		if _, ok := l.Take("a", 1, start); !ok {
			t.Fatalf("call %d of the burst", i)
		}
	}
	if wait, ok := l.Take("a", 1, start); ok || wait != 100*time.Millisecond {
		t.Errorf("%s %v", wait, ok)
	}
	if wait, ok := l.Take("a", 5, start); ok || wait != 500*time.Millisecond {
		t.Errorf("%s %v: what was refused was taken", wait, ok)
	}
	if _, ok := l.Take("b", 20, start); !ok {
		t.Error("another principal pays")
	}
	if _, ok := l.Take("a", 1, start.Add(100*time.Millisecond)); !ok {
		t.Error("the budget does not come back")
	}
	if _, ok := l.Take("c", 1000, start); !ok {
		t.Error("a call that costs more than the burst never gets through")
	}
	l.Take("", 20, start)
	if _, ok := l.Take("", 1, start); ok {
		t.Error("callers that are not known are not limited")
	}
	if _, ok := l.Take("d", 1, start); !ok {
		t.Error("a principal pays for those that are not known")
	}
	var none *Limiter
	if _, ok := none.Take("a", 1, start); !ok {
		t.Error("a nil limiter limits")
	}
}

// Memory is bounded, whoever calls; and those beyond the bound are limited too.
func TestManyPrincipals(t *testing.T) {
	l := New(1, 2)
	for i := range maxPrincipals + 5000 {
		l.Take(strconv.Itoa(i), 2, start)
	}
	if len(l.callers) > maxPrincipals {
		t.Fatalf("%d principals are remembered", len(l.callers))
	}
	if _, ok := l.Take("one more", 1, start); ok {
		t.Error("beyond the bound nobody is limited")
	}
	if _, ok := l.Take("later", 2, start.Add(time.Minute)); !ok || len(l.callers) > 2 {
		t.Errorf("those who were quiet are not forgotten: %d", len(l.callers))
	}
}
