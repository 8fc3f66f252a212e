// The transit engine: one KEK for each scope, which never leaves Vault.

package vault

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// maxBatch is how many keys one request unwraps.
const maxBatch = 1000

const kekType = "aes256-gcm96"

// transit wraps and unwraps data keys.
type transit struct {
	client *client
	mount  string
	create bool
}

// kek is what Vault says of a transit key.
type kek struct {
	Latest     int    `json:"latest_version"`
	Type       string `json:"type"`
	Exportable bool   `json:"exportable"`
	Backup     bool   `json:"allow_plaintext_backup"`
	Derived    bool   `json:"derived"`
}

// ensure sees that the scope's KEK is there and cannot leave Vault; if allowed, it makes a missing one. Making one that
// exists changes nothing.
func (t *transit) ensure(ctx context.Context, name string) error {
	_, err := t.read(ctx, name)
	if !errors.Is(err, errAbsent) {
		return err
	}
	path := t.keyPath(name)
	if !t.create {
		return &Error{Reason: Invalid, Op: "GET " + path, Text: "there is no such transit key, and create_keks is off: make it by hand"}
	}
	if err := t.client.put(ctx, path, map[string]any{"type": kekType}, nil); err != nil {
		return noAbsence(err, "PUT "+path)
	}
	_, err = t.read(ctx, name)
	return noAbsence(err, "GET "+path)
}

func (t *transit) keyPath(name string) string { return t.mount + "/keys/" + name }

// read gives what Vault says of a KEK that may be used, or errAbsent.
func (t *transit) read(ctx context.Context, name string) (kek, error) {
	var answer struct {
		Data kek `json:"data"`
	}
	path := t.keyPath(name)
	if err := t.client.get(ctx, path, nil, &answer); err != nil {
		return kek{}, err
	}
	return answer.Data, answer.Data.check(path)
}

func (k kek) check(path string) error {
	switch {
	case k.Type != kekType:
		return damaged("GET "+path, "the transit key is of type %s, not %s", k.Type, kekType)
	case k.Exportable || k.Backup:
		return damaged("GET "+path, "the transit key may leave Vault (exportable or allow_plaintext_backup): such a KEK is not used")
	case k.Derived:
		return damaged("GET "+path, "the transit key is a derived one, which cannot be used without a context")
	default:
		return nil
	}
}

// item is one element of batch_input.
type item struct {
	Plaintext      []byte `json:"plaintext,omitempty"`
	Ciphertext     string `json:"ciphertext,omitempty"`
	AssociatedData []byte `json:"associated_data"`
}

// result is one element of batch_results.
type result struct {
	Plaintext  []byte `json:"plaintext"`
	Ciphertext string `json:"ciphertext"`
	Error      string `json:"error"`
}

// batch encrypts or decrypts items in one request; results are in their order.
func (t *transit) batch(ctx context.Context, operation, name string, items []item) ([]result, error) {
	path := t.mount + "/" + operation + "/" + name
	request := struct {
		Partial int    `json:"partial_failure_response_code"` // else one bad item hides which it is
		Items   []item `json:"batch_input"`
	}{200, items}
	var answer struct {
		Data struct {
			Results []result `json:"batch_results"`
		} `json:"data"`
	}
	if err := t.client.put(ctx, path, request, &answer); err != nil {
		return nil, noAbsence(err, "PUT "+path)
	}
	if len(answer.Data.Results) != len(items) {
		wipe(answer.Data.Results)
		return nil, &Error{Reason: BadAnswer, Op: "PUT " + path, Text: fmt.Sprintf("%d results for %d items", len(answer.Data.Results), len(items))}
	}
	return answer.Data.Results, nil
}

func wipe(results []result) {
	for _, r := range results {
		clear(r.Plaintext)
	}
}

// unwrap decrypts the keys of one scope, in their order.
func (t *transit) unwrap(ctx context.Context, name string, records []store.Record) (keys []*datakey.Key, err error) {
	defer func() {
		if err != nil {
			wipeKeys(keys)
			keys = nil
		}
	}()
	for start := 0; start < len(records); start += maxBatch {
		part := records[start:min(start+maxBatch, len(records))]
		if keys, err = t.unwrapPart(ctx, name, part, keys); err != nil {
			return keys, err
		}
	}
	return keys, nil
}

func (t *transit) unwrapPart(ctx context.Context, name string, records []store.Record, keys []*datakey.Key) ([]*datakey.Key, error) {
	items := make([]item, len(records))
	for i, r := range records {
		if !isWrapped(string(r.Wrapped)) {
			return keys, damaged("decrypt", "data key %s is not in Vault's form of a ciphertext", r.ID)
		}
		items[i] = item{Ciphertext: string(r.Wrapped), AssociatedData: associatedData(r)}
	}
	results, err := t.batch(ctx, "decrypt", name, items)
	if err != nil {
		return keys, err
	}
	defer wipe(results)
	for i, record := range records {
		if text := results[i].Error; text != "" {
			return keys, damaged("decrypt", "data key %s does not unwrap under %s: %s", record.ID, name, shorten(text))
		}
		key, err := datakey.Parse(results[i].Plaintext, record.ID)
		if err != nil {
			return keys, damaged("decrypt", "%v", err)
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func wipeKeys(keys []*datakey.Key) {
	for _, k := range keys {
		k.Wipe()
	}
}

// wrapMany wraps keys under the newest version of a KEK, in few requests, and gives their records so.
func (t *transit) wrapMany(ctx context.Context, name string, records []store.Record, keys []*datakey.Key) ([]store.Record, error) {
	wrapped := slices.Clone(records)
	for start := 0; start < len(records); start += maxBatch {
		part := wrapped[start:min(start+maxBatch, len(records))]
		c := &collector{}
		for i, r := range part {
			if _, err := keys[start+i].Wrap(c, associatedData(r)); err != nil {
				return nil, err
			}
		}
		results, err := t.batch(ctx, "encrypt", name, c.items)
		c.wipe()
		if err != nil {
			return nil, err
		}
		for i, r := range results {
			if r.Error != "" || !isWrapped(r.Ciphertext) {
				return nil, &Error{Reason: BadAnswer, Op: "encrypt under " + name, Text: shorten(r.Error)}
			}
			part[i].Wrapped = []byte(r.Ciphertext)
		}
	}
	return wrapped, nil
}

// collector implements tink.AEAD: it gathers what is to be encrypted, so that data keys pass their own bytes to Vault, many
// at once.
type collector struct{ items []item }

// Encrypt implements tink.AEAD.
func (c *collector) Encrypt(plaintext, associatedData []byte) ([]byte, error) {
	c.items = append(c.items, item{Plaintext: slices.Clone(plaintext), AssociatedData: associatedData})
	return nil, nil
}

// Decrypt implements tink.AEAD. Keys are unwrapped many at once, by transit.unwrap.
func (*collector) Decrypt(_, _ []byte) ([]byte, error) {
	return nil, errors.New("a remote KEK does not decrypt one by one")
}

func (c *collector) wipe() {
	for _, i := range c.items {
		clear(i.Plaintext)
	}
}

const wrapLabel = "cipherlane-keyservice vault data key v1\x00"

// associatedData binds a wrapped key to its id, its time and its scope [CL-API-010]: whoever can write to KV cannot pass
// off a key of one scope as another's.
func associatedData(r store.Record) []byte {
	ad := append([]byte(wrapLabel), r.ID[:]...)
	ad = binary.BigEndian.AppendUint64(ad, uint64(r.Created.UnixMilli())) // #nosec G115 -- only its bits count
	return append(ad, r.Scope...)
}
