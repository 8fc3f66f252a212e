package service

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/embedded/embeddedtest"
)

func withFaults(t *testing.T) (*fixture, *faulty) {
	t.Helper()
	faults := &faulty{older: map[datakey.ID]time.Duration{}}
	return newFixture(t, embeddedtest.New(t), func(s store.Store) store.Store {
		faults.Store = s
		return faults
	}), faults
}

// [CL-OPR-006] Many producers meet a key that is too old: one new one is made, and the audit log has one rotation.
func TestRotationByTime(t *testing.T) {
	f, faults := withFaults(t)
	old := f.key(t, "claims", nil)
	faults.older[old] = 24*time.Hour - time.Minute
	if f.key(t, "claims", nil) != old {
		t.Fatal("replaced before its time")
	}
	faults.older[old] = 24 * time.Hour
	kids := make(chan datakey.ID, 200)
	var wait sync.WaitGroup
	for range cap(kids) {
		wait.Go(func() { kids <- f.key(t, "claims", nil) })
	}
	wait.Wait()
	close(kids)
	different := map[datakey.ID]bool{}
	for kid := range kids {
		different[kid] = true
	}
	if len(different) != 1 || different[old] {
		t.Errorf("%d keys: %v", len(different), different)
	}
	if rotations := rotations(t, f); !slices.Equal(rotations, []string{"rotate begun", "rotate allowed"}) {
		t.Error(rotations)
	}
}

// [CL-OPR-006] A call that saw the old key and comes late gets the new one, and the audit log still has one rotation.
func TestRotationMetLate(t *testing.T) {
	f, _ := withFaults(t)
	f.key(t, "claims", nil)
	old, err := f.Store.Current(t.Context(), "claims")
	if err != nil {
		t.Fatal(err)
	}
	var made [2]store.Record
	for i := range made {
		if made[i], err = f.replace(t.Context(), as("producer"), old); err != nil {
			t.Fatal(err)
		}
	}
	if made[0].ID != made[1].ID || made[0].ID == old.ID {
		t.Error(made[0].ID, made[1].ID)
	}
	if rotations := rotations(t, f); !slices.Equal(rotations, []string{"rotate begun", "rotate allowed"}) {
		t.Error(rotations)
	}
}

func rotations(t *testing.T, f *fixture) []string {
	t.Helper()
	return slices.DeleteFunc(f.lines(t), func(l string) bool { return !strings.HasPrefix(l, "rotate") })
}

// [CL-OPR-006] A rotation that fails never goes on with the key that is used up, and what failed can be done later.
func TestRotationFails(t *testing.T) {
	f, faults := withFaults(t)
	old := f.key(t, "claims", nil)
	faults.older[old] = 25 * time.Hour
	for want, fault := range map[refusal.Code]error{refusal.Unavailable: store.ErrUnavailable, refusal.Internal: errors.New("broken")} {
		faults.replace = fault
		for range 3 {
			k, err := f.EncryptionKey(t.Context(), as("producer"), "claims", nil)
			if k.Key != nil || codeOf(t, err) != want {
				t.Fatal(k.Kid, err)
			}
		}
	}
	lines := f.lines(t)
	if lines[len(lines)-1] != "encrypt refused internal" && lines[len(lines)-1] != "encrypt refused key-service-unavailable" {
		t.Error(lines)
	}
	faults.replace = nil
	if f.key(t, "claims", nil) == old {
		t.Error("the old key is given out")
	}
}

// [CL-OPR-006] What was counted decides, with the report of this very call; when it cannot be read, no key is given.
func TestRotationByRecords(t *testing.T) {
	f, faults := withFaults(t)
	old := f.key(t, "t-x", nil)
	if f.key(t, "t-x", &Usage{old, 100, 1}) != old {
		t.Fatal("a key younger than a second was replaced for what was counted")
	}
	faults.older[old] = 2 * time.Second
	if next := f.key(t, "t-x", nil); next == old {
		t.Fatal("not replaced for what was counted before")
	} else {
		old = next
	}
	faults.older[old] = 2 * time.Second
	if f.key(t, "t-x", &Usage{old, 9, 1}) != old {
		t.Fatal("replaced before the limit")
	}
	foreign := f.key(t, "claims", nil)
	for _, other := range []datakey.ID{{1}, foreign} {
		if f.key(t, "t-x", &Usage{other, 1000, 1}) != old {
			t.Fatal("replaced for another key's count")
		}
	}
	if f.key(t, "t-x", &Usage{old, 1, 1}) == old {
		t.Fatal("not replaced at the limit")
	}
	faults.read = store.ErrUnavailable
	if k, err := f.EncryptionKey(t.Context(), as("producer"), "t-unread", nil); k.Key != nil || codeOf(t, err) != refusal.Unavailable {
		t.Error(k.Kid, err)
	}
}

// A report is counted when the call is answered, and not when it was refused: the client reports it again then.
func TestReportOfARefusedCall(t *testing.T) {
	f, _ := withFaults(t)
	kid := f.key(t, "claims", nil)
	if err := f.auditLog.Close(); err != nil {
		t.Fatal(err)
	}
	k, err := f.EncryptionKey(t.Context(), as("producer"), "claims", &Usage{kid, 5, 5})
	if k.Key != nil || codeOf(t, err) != refusal.AuditUnavailable {
		t.Fatal(err)
	}
	if total, err := f.Usage.Total(t.Context(), "claims", kid); err != nil || total.Records != 0 {
		t.Error(total, err)
	}
}
