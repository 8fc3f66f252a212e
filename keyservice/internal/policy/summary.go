// What an operator wants to know of the policy in force.

package policy

import (
	"crypto/sha256"
	"encoding/hex"
	"time"
)

// Summary is the policy file as it was read.
type Summary struct {
	Text   string
	Digest string    // SHA-256 of the text, in hexadecimal
	Loaded time.Time // when it was read
	Topics int       // rules
	Grants int
}

// Summary tells about the file.
func (p *Policy) Summary() Summary {
	sum := sha256.Sum256([]byte(p.text))
	return Summary{p.text, hex.EncodeToString(sum[:]), p.loaded, len(p.topics), len(p.grants)}
}

// TopicsOf gives the names and patterns of the topics that are encrypted under a scope, in the order of the file.
func (p *Policy) TopicsOf(scope string) []string {
	all := []string{}
	for i := range p.topics {
		if rule := &p.topics[i]; rule.mode == Encrypt && rule.scope == scope {
			for _, g := range rule.topics {
				all = append(all, g.text())
			}
		}
	}
	if rule := p.ruleFor(scope); rule != nil && rule.mode == Encrypt && rule.scope == "" {
		all = append(all, scope)
	}
	return all
}

func (g glob) text() string {
	if g.slashes > 0 {
		return string(g.pattern) + below
	}
	return string(g.pattern)
}
