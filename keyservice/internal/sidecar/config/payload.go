// Payload encryption: where the keys come from, and what to do with what cannot be read.

package config

import (
	"errors"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Payload is there where values are encrypted. The settings are those of spec/configuration.md.
type Payload struct {
	URLs          []string
	CA            string
	FailureAction string   // fail, skip or mark
	BindKeyTopics []string // names and globs
	MaxPlaintext  int      // bytes
}

const (
	maxPlaintext     = 1 << 30
	defaultPlaintext = 64 << 20
)

func (c *Config) payloadField() field {
	return field{Read: func(n node) error {
		p := &Payload{FailureAction: "fail", MaxPlaintext: defaultPlaintext}
		c.Payload = p
		return n.Members(fields{
			"urls":                {Required: true, Read: func(n node) error { return keyServices(n, &p.URLs) }},
			"ca":                  strictyaml.Must(strictyaml.TextInto(&p.CA)),
			"failure_action":      word(&p.FailureAction, "fail", "skip", "mark"),
			"record_key_topics":   {Read: func(n node) error { return globs(n, &p.BindKeyTopics) }},
			"max_plaintext_bytes": strictyaml.IntegerInto(&p.MaxPlaintext, 1, maxPlaintext),
		})
	}}
}

// keyServices reads addresses of the key service.
func keyServices(n node, into *[]string) error {
	if err := texts(n, into); err != nil {
		return err
	}
	for _, text := range *into {
		if u, err := url.Parse(text); err != nil || u.Scheme != "https" || u.Port() == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
			return n.Errorf("%q is not https://host:port", text)
		}
	}
	return nil
}

func globs(n node, into *[]string) error {
	if err := texts(n, into); err != nil {
		return err
	}
	for _, glob := range *into {
		if names.CheckTopic(strings.NewReplacer("*", "x", "?", "x").Replace(glob)) != nil {
			return n.Errorf("%q is not the name of a topic, with * and ? for any characters and for one", glob)
		}
	}
	return nil
}

// BindsKey tells whether values of a topic are bound to their record keys.
func (p *Payload) BindsKey(topic string) bool {
	return slices.ContainsFunc(p.BindKeyTopics, func(glob string) bool {
		matches, err := path.Match(glob, topic) // names hold no slash
		return err == nil && matches
	})
}

// checkPayload refuses ways past the encryption [CL-SDC-114].
func (c *Config) checkPayload() error {
	switch {
	case c.Payload == nil:
	case c.Side != Client:
		return errors.New("payload goes with side: client only, where the plaintext is")
	case len(c.TCP) > 0, c.Transparent != nil && !c.Transparent.Kafka:
		return errors.New("payload does not go with listeners that copy bytes (tcp, transparent with kafka: false): records would pass there as they are")
	}
	return nil
}
