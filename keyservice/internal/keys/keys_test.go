package keys

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

const (
	refresh = 300 * time.Millisecond
	expires = 900 * time.Millisecond
)

// service answers with one key and the error of the moment.
type service struct {
	key   *datakey.Key
	kid   datakey.ID
	calls atomic.Int32
	slow  time.Duration

	mu     sync.Mutex
	err    error
	kids   []int // of each call
	usage  keyclient.Usage
	denied map[datakey.ID]error
}

func newService(t *testing.T) *service {
	t.Helper()
	s := &service{key: datakey.Generate(), denied: map[datakey.ID]error{}}
	var err error
	if s.kid, err = s.key.ID(); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s *service) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *service) EncryptionKey(_ context.Context, _ string, usage *keyclient.Usage) (*keyclient.Grant, error) {
	s.calls.Add(1)
	time.Sleep(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err != nil {
		return nil, s.err
	}
	if usage != nil {
		s.usage.Records += usage.Records
		s.usage.Bytes += usage.Bytes
	}
	return &keyclient.Grant{Mode: keyclient.Encrypt, Scope: "claims", Kid: s.kid, Key: s.key.Clone(), Lease: keyclient.Lease{Refresh: refresh, Expires: expires}}, nil
}

func (s *service) DecryptionKeys(_ context.Context, _ string, kids []datakey.ID) (*keyclient.Readable, error) {
	s.calls.Add(1)
	time.Sleep(s.slow)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kids = append(s.kids, len(kids))
	if s.err != nil {
		return nil, s.err
	}
	lease := keyclient.Lease{Refresh: refresh, Expires: expires}
	r := &keyclient.Readable{AcceptPlaintext: true, Lease: lease, Keys: map[datakey.ID]keyclient.Key{}}
	for _, kid := range kids {
		r.Keys[kid] = keyclient.Key{Kid: kid, Scope: "claims", Key: s.key.Clone(), Lease: lease}
		if err := s.denied[kid]; err != nil {
			r.Keys[kid] = keyclient.Key{Kid: kid, Err: err}
		}
	}
	return r, nil
}

func newCache(t *testing.T, s Service, change func(*Options)) (*Cache, *atomic.Int32) {
	t.Helper()
	o := Options{Deadline: 2 * time.Second, Backoff: 200 * time.Millisecond, Max: 2000}
	if change != nil {
		change(&o)
	}
	wiped := &atomic.Int32{}
	c, err := New(s, o, func(datakey.ID) { wiped.Add(1) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c, wiped
}

func encryption(t *testing.T, c *Cache) error {
	t.Helper()
	g, err := c.Encryption(t.Context(), "claims")
	if err == nil {
		g.Key.Wipe()
	}
	return err
}

func codeOf(err error) refusal.Code {
	if r, ok := errors.AsType[*refusal.Error](err); ok {
		return r.Code
	}
	return "none"
}

// [CL-KEY-009]
func TestOneRequestForManyCallers(t *testing.T) {
	s := newService(t)
	s.slow = 50 * time.Millisecond
	c, _ := newCache(t, s, nil)
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			if err := encryption(t, c); err != nil {
				t.Error(err)
			}
		})
		all.Go(func() {
			r := c.Decryption(t.Context(), "claims", []datakey.ID{s.kid}, true)
			if k := r.Keys[s.kid]; k.Err != nil || r.PlainErr != nil || !r.AcceptPlaintext {
				t.Error(r)
			}
			r.Wipe()
		})
	}
	all.Wait()
	if n := s.calls.Load(); n != 2 {
		t.Errorf("%d calls", n)
	}
}

// [CL-KEY-006] [CL-KEY-007] [CL-KEY-012] and, with the wiping, [CL-KEY-005]
func TestAnOutageIsBridgedUntilTheLeaseEnds(t *testing.T) {
	s := newService(t)
	c, wiped := newCache(t, s, nil)
	if err := encryption(t, c); err != nil {
		t.Fatal(err)
	}
	s.fail(refusal.New(refusal.Unavailable, "down"))
	for begin := time.Now(); time.Since(begin) < expires-200*time.Millisecond; time.Sleep(10 * time.Millisecond) {
		if err := encryption(t, c); err != nil {
			t.Fatalf("after %v: %v", time.Since(begin), err)
		}
	}
	if n := s.calls.Load(); n < 2 || n > 5 {
		t.Errorf("%d calls, with a back-off", n)
	}
	time.Sleep(sweepEvery + 500*time.Millisecond)
	if wiped.Load() == 0 || c.Counts().Cached != 0 {
		t.Error("the key was not wiped")
	}
	if err := encryption(t, c); codeOf(err) != refusal.Unavailable {
		t.Errorf("%v", err)
	}
	s.fail(nil)
	time.Sleep(300 * time.Millisecond)
	if err := encryption(t, c); err != nil {
		t.Errorf("it does not come back: %v", err)
	}
}

// [CL-KEY-008]
func TestARefusalEndsTheLeaseAtOnce(t *testing.T) {
	s := newService(t)
	c, wiped := newCache(t, s, nil)
	kids := []datakey.ID{s.kid}
	if r := c.Decryption(t.Context(), "claims", kids, false); r.Keys[s.kid].Err != nil {
		t.Fatal(r)
	}
	s.mu.Lock()
	s.denied[s.kid] = refusal.New(refusal.KeyDestroyed, "gone")
	s.mu.Unlock()
	time.Sleep(refresh)
	c.Decryption(t.Context(), "claims", kids, false) // renews off this thread
	time.Sleep(50 * time.Millisecond)
	if r := c.Decryption(t.Context(), "claims", kids, false); codeOf(r.Keys[s.kid].Err) != refusal.KeyDestroyed || wiped.Load() != 1 {
		t.Errorf("%v, %d wiped", r.Keys[s.kid].Err, wiped.Load())
	}
}

// [CL-KEY-010] [CL-KEY-013]
func TestManyKidsInOneCallAndABoundedCache(t *testing.T) {
	s := newService(t)
	c, wiped := newCache(t, s, nil)
	kids := make([]datakey.ID, 2500)
	for i := range kids {
		kids[i] = datakey.ID{byte(i), byte(i >> 8)}
	}
	r := c.Decryption(t.Context(), "claims", kids, false)
	for _, k := range r.Keys {
		if k.Err != nil {
			t.Fatal(k.Err)
		}
	}
	if n := s.calls.Load(); len(r.Keys) != 2500 || n != 3 {
		t.Errorf("%d keys with %d calls, %v", len(r.Keys), n, s.kids)
	}
	if n := c.Counts().Cached; n > 2000 || wiped.Load() < 500 {
		t.Errorf("%d keys held, %d wiped", n, wiped.Load())
	}
}

// [CL-KEY-011]
func TestNobodyWaitsLongerThanTheDeadline(t *testing.T) {
	s := newService(t)
	s.slow = time.Second
	c, _ := newCache(t, s, func(o *Options) { o.Deadline = 50 * time.Millisecond })
	begin := time.Now()
	if err := encryption(t, c); codeOf(err) != refusal.Unavailable || time.Since(begin) > 800*time.Millisecond {
		t.Errorf("%v after %v", err, time.Since(begin))
	}
}

// [CL-KEY-017]
func TestUsageIsReportedOnceAlsoAtTheEnd(t *testing.T) {
	s := newService(t)
	c, err := New(s, Defaults(), nil)
	if err != nil {
		t.Fatal(err)
	}
	s.fail(refusal.New(refusal.Unavailable, "down"))
	c.Encrypted("claims", s.kid, 3, 300)
	_ = encryption(t, c) // the report fails, and is not lost
	s.fail(nil)
	c.Encrypted("claims", s.kid, 4, 400)
	c.Close()
	if s.usage.Records != 7 || s.usage.Bytes != 700 {
		t.Errorf("%+v", s.usage)
	}
}
