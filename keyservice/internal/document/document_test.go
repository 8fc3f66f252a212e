package document

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded/embeddedtest"
)

type counter struct {
	Count int    `json:"count"`
	Text  string `json:"text,omitzero"`
}

func increment(c *counter) error { c.Count++; return nil }

// Nobody's change is lost.
func TestUpdate(t *testing.T) {
	s := embeddedtest.New(t)
	var wait sync.WaitGroup
	for range 8 {
		wait.Go(func() {
			for range 20 {
				for {
					_, _, err := Update(t.Context(), s, "test", "one", increment)
					if err == nil {
						break
					}
					if !errors.Is(err, store.ErrConflict) { // sixteen times somebody else was faster
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wait.Wait()
	c, version, err := Read[counter](t.Context(), s, "test", "one")
	if err != nil || c.Count != 160 || version != 160 {
		t.Error(c, version, err)
	}
}

func TestUpdateThatDoesNothing(t *testing.T) {
	s := embeddedtest.New(t)
	if c, version, err := Read[counter](t.Context(), s, "test", "one"); err != nil || version != 0 || c != (counter{}) {
		t.Fatal(c, version, err)
	}
	if _, version, err := Update(t.Context(), s, "test", "one", func(*counter) error { return Unchanged }); err != nil || version != 0 {
		t.Fatal(version, err)
	}
	own := errors.New("own")
	if _, _, err := Update(t.Context(), s, "test", "one", func(c *counter) error { c.Count = 9; return own }); !errors.Is(err, own) {
		t.Fatal(err)
	}
	if _, _, err := Update(t.Context(), s, "test", "one", func(c *counter) error {
		c.Text = strings.Repeat("x", store.MaxDocument)
		return nil
	}); !errors.Is(err, ErrTooLarge) {
		t.Fatal(err)
	}
	if _, version, err := Read[counter](t.Context(), s, "test", "one"); err != nil || version != 0 {
		t.Fatal("written all the same", version, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := Update(ctx, s, "test", "one", increment); err == nil {
		t.Fatal("went on after its end")
	}
}

// What this version does not know must not be lost by writing it again.
func TestUpdateOfWhatIsNotKnown(t *testing.T) {
	s := embeddedtest.New(t)
	for i, text := range []string{`{"count":1,"added":true}`, `{"count":"1"}`, `{"count":1,"count":2}`, `nothing`} {
		if err := s.WriteDocument(t.Context(), "test", "one", i, []byte(text)); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Update(t.Context(), s, "test", "one", increment); err == nil {
			t.Error(text, "was overwritten")
		}
	}
}
