// When a scope's key is to be replaced: the list "rotation" (spec/operator.md). The first rule that names the scope decides.

package policy

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Rotation are the limits of a current key.
type Rotation struct {
	Every   time.Duration
	Records int64
	Bytes   int64 // of plaintext
}

// DefaultRotation holds for scopes that no rule names, and for what a rule leaves out.
var DefaultRotation = Rotation{Every: 24 * time.Hour, Records: 4_000_000_000, Bytes: 1 << 40}

const (
	minEvery = time.Minute
	maxEvery = 87_600 * time.Hour
	maxCount = 1<<53 - 1
)

type rotationRule struct {
	scopes []glob
	Rotation
}

// Rotation gives the limits of a scope's key.
func (p *Policy) Rotation(scope string) Rotation {
	for i := range p.rotation {
		if matchesAny(p.rotation[i].scopes, scope) {
			return p.rotation[i].Rotation
		}
	}
	return DefaultRotation
}

func (p *Policy) readRotation(n node) error {
	_, err := n.List(func(item node) error {
		rule := rotationRule{Rotation: DefaultRotation}
		err := item.Members(fields{
			"scopes":  {Required: true, Read: globList(&rule.scopes, checkTopicPattern, anything)},
			"every":   {Read: func(n node) (err error) { rule.Every, err = n.Duration(minEvery, maxEvery, time.Second); return err }},
			"records": {Read: func(n node) error { return readCount(n, &rule.Records) }},
			"bytes":   {Read: func(n node) error { return readBytes(n, &rule.Bytes) }},
		})
		p.rotation = append(p.rotation, rule)
		return inRule(err, fmt.Sprintf("rotation rule %d", len(p.rotation)))
	})
	return p.checkRules(n, err)
}

func readCount(n node, target *int64) error {
	count, err := n.Integer(1, maxCount)
	*target = int64(count)
	return err
}

var units = []struct {
	suffix string
	factor int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"TiB", 1 << 40}}

// readBytes reads a number, or one with a unit.
func readBytes(n node, target *int64) error {
	if readCount(n, target) == nil {
		return nil
	}
	text, err := n.Text()
	if err != nil {
		return n.Errorf("expected a number of bytes from 1 to 2^53 - 1, or one with KiB, MiB, GiB or TiB")
	}
	for _, unit := range units {
		digits, ok := strings.CutSuffix(text, unit.suffix)
		count, err := strconv.ParseInt(digits, 10, 64)
		if ok && err == nil && count >= 1 && count <= maxCount/unit.factor {
			*target = count * unit.factor
			return nil
		}
	}
	return n.Errorf("%q is not a number of bytes such as 512GiB, up to 2^53 - 1", text)
}
