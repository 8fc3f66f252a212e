// Keys for writing, and the report of what was written.

package keys

import (
	"context"
	"sync"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/keyclient"
)

// Encryption gives what holds for writing to a topic. The key, if there is one, is the caller's own to wipe.
//
// Errors: *refusal.Error of the last attempt.
func (c *Cache) Encryption(ctx context.Context, topic string) (keyclient.Grant, error) {
	ctx, cancel := context.WithTimeout(ctx, c.options.Deadline)
	defer cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	for asked := false; ; asked = true {
		e, found := c.grants.Get(topic)
		if !found {
			e = &entry[*keyclient.Grant]{}
			c.grants.Add(topic, e)
		}
		now := Now()
		if !asked && e.due(now) {
			e.flight = make(chan struct{})
			go c.askGrant(topic, e) // #nosec G118 -- others wait for it too: it outlives this caller
		}
		if e.usable(now) {
			return ownGrant(e.value), nil
		}
		if e.flight == nil {
			return keyclient.Grant{}, e.failure()
		}
		if err := c.waitFor(ctx, e.flight); err != nil {
			return keyclient.Grant{}, err
		}
	}
}

// waitFor waits without the lock, which the caller holds.
func (c *Cache) waitFor(ctx context.Context, flight <-chan struct{}) error {
	c.mu.Unlock()
	defer c.mu.Lock()
	return wait(ctx, flight)
}

func ownGrant(g *keyclient.Grant) keyclient.Grant {
	own := *g
	if own.Key != nil {
		own.Key = own.Key.Clone()
	}
	return own
}

func (c *Cache) askGrant(topic string, e *entry[*keyclient.Grant]) {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	asked, usage := Now(), c.takeUsage(topic)
	g, err := c.service.EncryptionKey(ctx, topic, usage)
	c.mu.Lock()
	defer c.mu.Unlock()
	defer e.land()
	c.count(err)
	if err != nil {
		c.addUsage(topic, usage)
		e.fail(err, Now()+c.backoff(), c.wipeGrant)
		return
	}
	c.wipeGrant(e)
	e.succeed(g, g.Lease, asked)
	c.keepGrant(topic, e)
}

// keepGrant puts an entry back that left the cache while it was asked for. A closed cache keeps nothing.
func (c *Cache) keepGrant(topic string, e *entry[*keyclient.Grant]) {
	if c.usage == nil {
		c.wipeGrant(e)
		return
	}
	if old, there := c.grants.Peek(topic); !there || old != e {
		c.grants.Remove(topic)
		c.grants.Add(topic, e)
	}
}

// Encrypted counts records that were encrypted under a key, with the size of their plaintext, for the next report.
func (c *Cache) Encrypted(topic string, kid datakey.ID, records, bytes int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.addUsage(topic, &keyclient.Usage{Kid: kid, Records: records, Bytes: bytes})
}

func (c *Cache) addUsage(topic string, more *keyclient.Usage) {
	if more == nil || c.usage == nil {
		return
	}
	kids := c.usage[topic]
	if kids == nil {
		kids = map[datakey.ID]*keyclient.Usage{}
		c.usage[topic] = kids
	}
	sum := kids[more.Kid]
	if sum == nil {
		sum = &keyclient.Usage{Kid: more.Kid}
		kids[more.Kid] = sum
	}
	sum.Records += more.Records
	sum.Bytes += more.Bytes
}

// takeUsage gives what is to be reported of one key, nil for nothing.
func (c *Cache) takeUsage(topic string) *keyclient.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	for kid, usage := range c.usage[topic] {
		delete(c.usage[topic], kid)
		return usage
	}
	delete(c.usage, topic)
	return nil
}

// reportAll is the last report [CL-KEY-017].
func (c *Cache) reportAll(usage map[string]map[datakey.ID]*keyclient.Usage) {
	ctx, cancel := context.WithTimeout(context.Background(), reportTime)
	defer cancel()
	var all sync.WaitGroup
	for topic, kids := range usage {
		all.Go(func() {
			for _, one := range kids {
				if g, err := c.service.EncryptionKey(ctx, topic, one); err == nil && g.Key != nil {
					g.Key.Wipe()
				}
			}
		})
	}
	all.Wait()
}
