// A thousand clients that start at once for the same ten topics, of which none has a key yet.

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

const (
	herdClients = 1000
	herdTopics  = 10
)

// measureHerd counts the keys that were made: as many as Vault wrapped, and as many as clients got.
func measureHerd(b *bench) {
	var all, last, wrapped rig.Series
	for range runs {
		o := b.startVault()
		proxy := testvault.NewProxy(b, o.vault)
		dir := o.folder(b, proxy.Address)
		initialise(dir)
		service := b.startService(dir)
		proxy.Take()
		h := service.herd()
		all, last = append(all, millis(h.wall)), append(last, millis(slices.Max(h.first)))
		wrapped = append(wrapped, float64(count(proxy.Take(), "/encrypt/")))
		service.stop()
		o.vault.Kill()
		rig.Check(h.wrong())
	}
	one := all.Row(fmt.Sprintf("herd/%d/%d", herdClients, herdTopics), "cipherlane", "ms")
	one.Figures = map[string]float64{
		"last_client_has_its_first_key_ms": rig.Round(last.Median()), "keys_made": slices.Max(wrapped), "clients_failed": 0,
	}
	kept := slices.Max(wrapped) == herdTopics
	b.report.Add(one.Promised("one data key for each scope, every client served, no error", kept))
}

func count(requests []string, mark string) int {
	found := 0
	for _, one := range requests {
		if strings.Contains(one, mark) {
			found++
		}
	}
	return found
}

// herd is what came of one.
type herd struct {
	wall     time.Duration
	first    []time.Duration // until each client had its first key
	failures []error

	mu   sync.Mutex
	kids map[string]bool
}

// wrong is an error when a client failed or a scope has more than one key.
func (h *herd) wrong() error {
	if len(h.failures) > 0 {
		return fmt.Errorf("%d clients failed, one of them: %w", len(h.failures), h.failures[0])
	}
	if len(h.kids) != herdTopics {
		return fmt.Errorf("%d keys were handed out for %d topics", len(h.kids), herdTopics)
	}
	return nil
}

// herd starts the clients, each with a connection of its own that it opens first, at once.
func (s *server) herd() *herd {
	h := &herd{first: make([]time.Duration, herdClients), kids: map[string]bool{}}
	begin := make(chan struct{})
	var wait sync.WaitGroup
	var start time.Time
	for number := range herdClients {
		wait.Go(func() {
			<-begin
			if err := h.client(s, number, start); err != nil {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.failures = append(h.failures, err)
			}
		})
	}
	start = time.Now()
	close(begin)
	wait.Wait()
	h.wall = time.Since(start)
	return h
}

// client asks for every topic, beginning with another one than its neighbour.
func (h *herd) client(s *server, number int, start time.Time) error {
	c := s.client("producer", number%2 == 0)
	defer c.CloseIdleConnections()
	for i := range herdTopics {
		topic := fmt.Sprint("herd-", (number+i)%herdTopics)
		answer, err := s.post(c, encryptPath, []byte(`{"topic":"`+topic+`"}`))
		if err != nil {
			return err
		}
		if !strings.Contains(string(answer), `"key":"`) {
			return errors.New("an answer without a key: " + string(answer))
		}
		if i == 0 {
			h.first[number] = time.Since(start)
		}
		h.mu.Lock()
		h.kids[topic+" "+kidOf(answer)] = true
		h.mu.Unlock()
	}
	return nil
}
