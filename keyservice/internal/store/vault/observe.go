// What is told of requests to Vault: few words, none of them a name of a scope.

package vault

import (
	"net/http"
	"strings"
	"time"
)

func (e *endpoints) observe(request *http.Request, response *http.Response, took time.Duration) {
	if e.observer == nil {
		return
	}
	status := 0
	if response != nil {
		status = response.StatusCode
	}
	e.observer(e.operation(request), status, took)
}

// operation names what a request asks for: "transit/decrypt", "kv/data GET", "auth", "sys".
func (e *endpoints) operation(request *http.Request) string {
	path := strings.TrimPrefix(request.URL.Path, "/v1/")
	for mount, engine := range e.engines {
		rest, ours := strings.CutPrefix(path, mount+"/")
		if !ours {
			continue
		}
		action, _, _ := strings.Cut(rest, "/")
		switch engine + "/" + action {
		case "transit/encrypt", "transit/decrypt", "transit/rewrap":
			return engine + "/" + action
		case "transit/keys", "kv/data", "kv/metadata", "kv/destroy", "kv/delete":
			return engine + "/" + action + " " + request.Method
		}
		return engine
	}
	switch first, _, _ := strings.Cut(path, "/"); first {
	case "auth", "sys":
		return first
	default:
		return "other"
	}
}

// CacheCounts tells how often an unwrapped key was found in memory, how often not, and how many are held.
func (s *Store) CacheCounts() (hits, misses uint64, held int) { return s.keys.counts() }
