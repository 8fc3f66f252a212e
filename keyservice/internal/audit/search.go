// Searching a log: who got a key for a topic between two times?

package audit

import (
	"path"
	"slices"
	"time"
)

// Query says which lines are meant; what is empty leaves all.
type Query struct {
	Topic, Scope, Principal string // globs of package path, in which * does not reach over a slash
	Action                  string
	Outcome                 Outcome
	Kid                     string
	From, To                time.Time // the first, and the first no longer meant
	// WithKey leaves only lines that gave a key.
	WithKey bool
}

// Check says which pattern is none.
func (q Query) Check() error {
	for _, pattern := range []string{q.Topic, q.Scope, q.Principal} {
		if _, err := path.Match(pattern, ""); err != nil {
			return err
		}
	}
	return nil
}

// Match tells whether a line is meant.
func (q Query) Match(l Line) bool {
	return matches(q.Topic, l.Topic) && matches(q.Scope, l.Scope) && matches(q.Principal, l.Principal) &&
		(q.Kid == "" || slices.Contains(l.Kids, q.Kid)) && (!q.WithKey || gaveKey(l)) && q.matchOutcome(l) && q.matchTime(l)
}

func (q Query) matchOutcome(l Line) bool {
	return (q.Action == "" || q.Action == l.Action) && (q.Outcome == "" || q.Outcome == l.Outcome)
}

func (q Query) matchTime(l Line) bool {
	return !l.Time.Before(q.From) && (q.To.IsZero() || l.Time.Before(q.To))
}

func matches(pattern, name string) bool {
	if pattern == "" {
		return true
	}
	ok, err := path.Match(pattern, name)
	return ok && err == nil
}

func gaveKey(l Line) bool {
	return l.Outcome == Allowed && len(l.Kids) > 0 && (l.Action == "encrypt" || l.Action == "decrypt")
}

// Search calls found for each line meant, in order, and tells how many lines could not be read: verify says more about them.
func Search(paths []string, q Query, found func(Line) error) (unreadable int, err error) {
	if err := q.Check(); err != nil {
		return 0, err
	}
	for _, one := range paths {
		err := EachLine(one, func(text []byte, _ bool) error {
			line, problem := parseLine(text)
			switch {
			case problem != nil:
				unreadable++
			case q.Match(line):
				return found(line)
			}
			return nil
		})
		if err != nil {
			return unreadable, err
		}
	}
	return unreadable, nil
}
