package vault

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
)

func TestExpiring(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var dropped []string
		c := newExpiring[int](time.Minute, 2, func(v string) { dropped = append(dropped, v) })
		has := func(key int) bool { return c.with(key, func(string, time.Time) {}) }
		c.put(1, "one", time.Now())
		time.Sleep(59 * time.Second)
		if !has(1) {
			t.Error("gone too early")
		}
		time.Sleep(time.Second)
		if has(1) || fmt.Sprint(dropped) != "[one]" {
			t.Error("not gone at its end", dropped)
		}
		c.put(2, "late", time.Now().Add(-time.Minute))
		if has(2) || fmt.Sprint(dropped) != "[one late]" {
			t.Error("taken although it was too old", dropped)
		}
		c.put(3, "three", time.Now())
		c.put(3, "again", time.Now())
		c.put(4, "four", time.Now())
		c.put(5, "five", time.Now())
		if has(3) || !has(4) || !has(5) || fmt.Sprint(dropped) != "[one late three again]" {
			t.Error("not bounded", dropped)
		}
		time.Sleep(time.Minute)
		c.sweep()
		if len(dropped) != 6 {
			t.Error("not swept", dropped)
		}
		c.put(6, "six", time.Now())
		c.clear()
		if has(6) || len(dropped) != 7 {
			t.Error("not cleared", dropped)
		}
	})
}

// What is dropped is wiped, and never under the hands of one who copies it.
func TestDroppedKeysAreWiped(t *testing.T) {
	c := newExpiring[int](time.Hour, 1, (*datakey.Key).Wipe)
	key := datakey.Generate()
	want := string(key.AppendBase64(nil))
	c.put(0, key, time.Now())
	var wait sync.WaitGroup
	for i := range 4 {
		wait.Go(func() {
			for n := range 200 {
				c.put(i+1, datakey.Generate(), time.Now())
				c.with(n%5, func(k *datakey.Key, _ time.Time) { _ = k.Clone() })
			}
		})
	}
	wait.Wait()
	c.clear()
	if string(key.AppendBase64(nil)) == want {
		t.Error("not wiped")
	}
}
