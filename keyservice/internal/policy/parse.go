// Reads the policy file: strictly, with the line of the mistake [CL-POL-005].

package policy

import (
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// maxRules bounds topic rules and grants together (spec/limits.md).
const maxRules = 10_000

// DefaultLifetime is that of certificates where a grant gives none; the others are its limits.
const (
	DefaultLifetime = time.Hour
	MinLifetime     = 10 * time.Second
	MaxLifetime     = 604_800 * time.Second
)

type (
	node   = strictyaml.Node
	fields = map[string]strictyaml.Field
)

// Parse reads a policy. file is the name that errors show; an error is a *strictyaml.Error and nothing of the policy is
// usable then.
func Parse(file string, data []byte) (*Policy, error) {
	root, err := strictyaml.Parse(file, data)
	if err != nil {
		return nil, err
	}
	p := &Policy{lease: withDefaultRefresh(Lease{ExpiresIn: DefaultLease}), text: string(data), loaded: time.Now()}
	err = root.Members(fields{
		"version":  {Required: true, Read: readVersion},
		"lease":    {Read: func(n node) error { return readLease(n, &p.lease) }},
		"topics":   {Required: true, Read: p.readTopics},
		"grants":   {Required: true, Read: p.readGrants},
		"rotation": {Read: p.readRotation},
	})
	if err != nil {
		return nil, err
	}
	return p, nil
}

func field(read func(node) error) strictyaml.Field { return strictyaml.Field{Read: read} }

func readVersion(n node) error {
	_, err := n.Integer(1, 1)
	return err
}

func readLease(n node, lease *Lease) error {
	var read Lease
	err := n.Members(fields{
		"expires_in": {Required: true, Read: leaseTime(&read.ExpiresIn)},
		"refresh_in": {Read: leaseTime(&read.RefreshIn)},
	})
	if err != nil {
		return err
	}
	read = withDefaultRefresh(read)
	if read.RefreshIn > read.ExpiresIn {
		return n.Errorf("refresh_in %s is more than expires_in %s", read.RefreshIn, read.ExpiresIn)
	}
	*lease = read
	return nil
}

func leaseTime(target *time.Duration) func(node) error {
	return func(n node) (err error) {
		*target, err = n.Duration(MinLease, MaxLease, time.Second)
		return err
	}
}

func halfOf(d time.Duration) time.Duration { return max(MinLease, (d / 2).Truncate(time.Second)) }

// withDefaultRefresh sets refresh_in to half of expires_in, in whole seconds, at least one.
func withDefaultRefresh(l Lease) Lease {
	if l.RefreshIn == 0 {
		l.RefreshIn = halfOf(l.ExpiresIn)
	}
	return l
}
