// Globs: * stands for any run of characters, ? for one; every other character stands for itself. A SPIFFE id may end
// in /**: that stands for one or more segments of its path.

package policy

import (
	"fmt"
	"strings"
)

// glob is a compiled pattern.
type glob struct {
	pattern []rune
	stop    rune // what no wildcard matches
	slashes int  // of a pattern that ended in /**, which is cut off; else 0
}

// What no wildcard matches: in principals, so that a pattern does not reach over a SPIFFE path segment; in the names of
// servers, so that it does not reach over a label.
const (
	anything    rune = 0
	inPrincipal rune = '/'
	inServer    rune = '.'
)

const (
	below  = "/**"
	spiffe = "spiffe://"
)

func newGlob(pattern string, stop rune) glob {
	if prefix, cut := strings.CutSuffix(pattern, below); cut && stop == inPrincipal && strings.HasPrefix(pattern, spiffe) {
		return glob{[]rune(prefix), stop, strings.Count(prefix, "/")}
	}
	return glob{[]rune(pattern), stop, 0}
}

// above cuts a name before the segments that /** stands for; false when there are none. No wildcard matches a slash,
// so their number says where to cut.
func (g glob) above(name []rune) ([]rune, bool) {
	if g.slashes == 0 {
		return name, true
	}
	seen := 0
	for i, c := range name {
		if c != '/' {
			continue
		}
		seen++
		if seen > g.slashes {
			return name[:i], i+1 < len(name)
		}
	}
	return nil, false
}

// matches tells whether the whole name fits. It takes at most len(pattern) x len(name) steps: after a mismatch only
// the last star is tried further, which is enough, because the text between two stars may as well be found leftmost.
func (g glob) matches(name []rune) bool {
	at, star, resume := 0, -1, 0
	for i := 0; i < len(name); {
		switch {
		case at < len(g.pattern) && g.pattern[at] == '*':
			star, resume = at, i
			at++
		case at < len(g.pattern) && g.matchesOne(g.pattern[at], name[i]):
			at++
			i++
		case star >= 0 && g.wild(name[resume]):
			resume++
			at, i = star+1, resume
		default:
			return false
		}
	}
	for at < len(g.pattern) && g.pattern[at] == '*' {
		at++
	}
	return at == len(g.pattern)
}

func (g glob) matchesOne(pattern, c rune) bool {
	if pattern == '?' {
		return g.wild(c)
	}
	return pattern == c
}

// wild tells whether a wildcard may stand for c.
func (g glob) wild(c rune) bool { return g.stop == anything || c != g.stop }

func matchesAny(globs []glob, name string) bool {
	runes := []rune(name)
	for _, g := range globs {
		if cut, ok := g.above(runes); ok && g.matches(cut) {
			return true
		}
	}
	return false
}

// Principals is a set of patterns of principals.
type Principals struct{ globs []glob }

// NewPrincipals compiles patterns as they stand in a grant.
func NewPrincipals(patterns []string) (Principals, error) {
	var p Principals
	for _, pattern := range patterns {
		if err := checkPrincipalPattern(pattern); err != nil {
			return Principals{}, fmt.Errorf("invalid name %q: %w", pattern, err)
		}
		p.globs = append(p.globs, newGlob(pattern, inPrincipal))
	}
	return p, nil
}

// Match tells whether a pattern of the set matches; an empty set matches nothing.
func (p Principals) Match(principal string) bool { return matchesAny(p.globs, principal) }
