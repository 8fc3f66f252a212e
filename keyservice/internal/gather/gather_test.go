package gather

import (
	"slices"
	"testing"
	"time"
)

const window = 10 * time.Second

var start = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

func TestTheFirstOfAWindowIsToldByItself(t *testing.T) {
	g := New[string](window, 10)
	if !g.Add("a", start) || g.Add("a", start) || g.Add("a", start.Add(time.Second)) || !g.Add("b", start) || !g.Add("", start) {
		t.Error("the first of a window is told by itself, and no other")
	}
	if due := g.Due(start.Add(window-1), false); len(due) != 0 {
		t.Errorf("too early: %v", due)
	}
	if due := g.Due(start.Add(window), false); !slices.Equal(due, []Counted[string]{{"a", 2}}) {
		t.Errorf("%v", due)
	}
	if !g.Add("a", start.Add(window)) || g.Add("a", start.Add(window)) {
		t.Error("no new window")
	}
	if due := g.Due(start.Add(window), true); !slices.Equal(due, []Counted[string]{{"a", 1}}) {
		t.Errorf("the rest at the end: %v", due)
	}
}

// Memory is bounded, however many kinds there are; those beyond the bound are told once too, none is lost, and old kinds make room.
func TestManyKinds(t *testing.T) {
	g := New[int](window, 100)
	told := 0
	for kind := 1; kind <= 150; kind++ {
		if g.Add(kind, start) {
			told++
		}
	}
	if told != 101 || len(g.kinds) != 100 {
		t.Errorf("%d are told, %d are remembered", told, len(g.kinds))
	}
	if due := g.Due(start.Add(window), false); !slices.Equal(due, []Counted[int]{{0, 49}}) {
		t.Errorf("%v", due)
	}
	if !g.Add(1000, start.Add(window)) || g.Add(1000, start.Add(window)) || len(g.kinds) != 1 {
		t.Errorf("those of the window before are not forgotten: %d", len(g.kinds))
	}
}

func TestNilGathersNothing(t *testing.T) {
	var none *Gatherer[string]
	for range 2 {
		if !none.Add("a", start) || none.Due(start, true) != nil {
			t.Error("a nil gatherer gathers")
		}
	}
}
