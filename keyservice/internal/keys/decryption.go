// Keys for reading: those that a batch of records needs, together.

package keys

import (
	"context"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
)

// Readable is what holds for reading a topic. Keys has an entry for each kid asked for; the keys are the caller's own.
type Readable struct {
	AcceptPlaintext bool
	PlainErr        error // why it is not known whether plaintext is accepted
	Keys            map[datakey.ID]keyclient.Key
}

// Wipe overwrites the keys.
func (r *Readable) Wipe() {
	for _, k := range r.Keys {
		if k.Key != nil {
			k.Key.Wipe()
		}
	}
}

// Decryption gives what holds for reading records of a topic under these kids, and, where plain is set, whether it may be plaintext.
// What cannot be had has its error beside it.
func (c *Cache) Decryption(ctx context.Context, topic string, kids []datakey.ID, plain bool) *Readable {
	ctx, cancel := context.WithTimeout(ctx, c.options.Deadline)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.want(topic, kids)
	w.ask(plain)
	for flight := w.flight(plain); flight != nil; flight = w.flight(plain) {
		if err := c.waitFor(ctx, flight); err != nil {
			return w.collect(plain, err)
		}
	}
	return w.collect(plain, nil)
}

// wanted are the entries that one caller waits for.
type wanted struct {
	*Cache
	topic string
	kids  []datakey.ID
	plain *entry[bool]
	keys  map[datakey.ID]*entry[keyclient.Key]
}

func (c *Cache) want(topic string, kids []datakey.ID) *wanted {
	w := &wanted{Cache: c, topic: topic, kids: kids, keys: make(map[datakey.ID]*entry[keyclient.Key], len(kids))}
	var found bool
	if w.plain, found = c.plain.Get(topic); !found {
		w.plain = &entry[bool]{}
		c.plain.Add(topic, w.plain)
	}
	for _, kid := range kids {
		if w.keys[kid] != nil {
			continue
		}
		e, found := c.held.Get(topicKid{topic, kid})
		if !found {
			e = &entry[keyclient.Key]{}
			c.held.Add(topicKid{topic, kid}, e)
		}
		e.waiters++
		w.keys[kid] = e
	}
	return w
}

// ask sends for what is due, many kids in a call [CL-KEY-010].
func (w *wanted) ask(plain bool) {
	now := Now()
	var due []datakey.ID
	for kid, e := range w.keys {
		if e.due(now) {
			due = append(due, kid)
		}
	}
	askPlain := plain && w.plain.due(now)
	for askPlain || len(due) > 0 {
		n := min(len(due), keyclient.MaxKids)
		w.send(due[:n], w.plain.due(now))
		due, askPlain = due[n:], false
	}
}

func (w *wanted) send(kids []datakey.ID, plain bool) {
	r := &request{topic: w.topic, kids: kids, keys: make([]*entry[keyclient.Key], len(kids))}
	landed := make(chan struct{})
	for i, kid := range kids {
		r.keys[i] = w.keys[kid]
		r.keys[i].flight = landed
	}
	if plain {
		r.plain = w.plain
		r.plain.flight = landed
	}
	go w.fly(r, landed)
}

// flight gives what has to be waited for: a request for what is not usable.
func (w *wanted) flight(plain bool) <-chan struct{} {
	now := Now()
	if plain && w.plain.flight != nil && !w.plain.usable(now) {
		return w.plain.flight
	}
	for _, e := range w.keys {
		if e.flight != nil && !e.usable(now) {
			return e.flight
		}
	}
	return nil
}

// collect gives what there is; late is why waiting ended before all was there, or nil.
func (w *wanted) collect(plain bool, late error) *Readable {
	now := Now()
	r := &Readable{Keys: make(map[datakey.ID]keyclient.Key, len(w.keys))}
	if plain {
		r.AcceptPlaintext, r.PlainErr = w.plain.value, missing(w.plain, now, late)
	}
	for kid, e := range w.keys {
		r.Keys[kid] = taken(e, now, late)
		e.waiters--
		if e.waiters == 0 && e.evicted {
			w.wipeKey(e)
		}
	}
	return r
}

func taken(e *entry[keyclient.Key], now time.Duration, late error) keyclient.Key {
	if err := missing(e, now, late); err != nil {
		return keyclient.Key{Err: err}
	}
	own := e.value
	own.Key = own.Key.Clone()
	return own
}

func missing[T any](e *entry[T], now time.Duration, late error) error {
	switch {
	case e.usable(now):
		return nil
	case e.flight != nil:
		return late
	}
	return e.failure()
}

// request is a call under way and the entries that wait for it.
type request struct {
	topic string
	kids  []datakey.ID
	keys  []*entry[keyclient.Key]
	plain *entry[bool] // nil where another call asks
}

func (c *Cache) fly(r *request, landed chan struct{}) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	asked := Now()
	got, err := c.service.DecryptionKeys(ctx, r.topic, r.kids)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.count(err)
	retry := Now() + c.backoff()
	for i, e := range r.keys {
		e.flight = nil
		c.settle(topicKid{r.topic, r.kids[i]}, e, got, err, asked, retry)
	}
	if r.plain != nil {
		r.plain.flight = nil
		if err != nil {
			r.plain.fail(err, retry, func(e *entry[bool]) { e.valid = false })
		} else {
			r.plain.succeed(got.AcceptPlaintext, got.Lease, asked)
		}
	}
	close(landed)
}

// settle gives an entry its part of an answer.
func (c *Cache) settle(at topicKid, e *entry[keyclient.Key], got *keyclient.Readable, err error, asked, retry time.Duration) {
	if err == nil {
		err = got.Keys[at.kid].Err
	}
	if err != nil {
		e.fail(err, retry, c.wipeKey)
		return
	}
	c.wipeKey(e)
	key := got.Keys[at.kid]
	e.succeed(key, key.Lease, asked)
	if c.usage == nil {
		c.wipeKey(e)
	} else if old, there := c.held.Peek(at); !there || old != e {
		c.held.Remove(at)
		e.evicted = false
		c.held.Add(at, e)
	}
}
