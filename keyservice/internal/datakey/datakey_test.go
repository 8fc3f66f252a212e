package datakey

import (
	"bytes"
	"encoding/base64"
	"encoding/gob"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/keyset"
	"github.com/tink-crypto/tink-go/v2/tink"

	"github.com/cipherlane/cipherlane/keyservice/internal/vectors"
)

// [CL-ENV-020]
func TestVectorsOfKeyIDs(t *testing.T) {
	for _, v := range vectors.Read(t, "key-id") {
		t.Run(v.ID, func(t *testing.T) {
			var in struct{ Key string }
			vectors.Decode(t, v.Input, &in)
			raw, err := hex.DecodeString(in.Key)
			if err != nil {
				t.Fatal(err)
			}
			key, err := fromBytes(raw)
			if v.Result != "ok" {
				if err == nil {
					t.Fatalf("a key of %d bytes was taken", len(raw))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			checkID(t, key, v)
		})
	}
}

func checkID(t *testing.T, key *Key, v vectors.Vector) {
	t.Helper()
	var out struct{ Kid string }
	vectors.Decode(t, v.Output, &out)
	id, err := key.ID()
	if err != nil || id.String() != out.Kid {
		t.Fatalf("kid %s, %v; want %s", id, err, out.Kid)
	}
}

func newKEK(t *testing.T) tink.AEAD {
	t.Helper()
	handle, err := keyset.NewHandle(aead.XAES256GCM192BitNonceKeyTemplate())
	if err != nil {
		t.Fatal(err)
	}
	kek, err := aead.New(handle)
	if err != nil {
		t.Fatal(err)
	}
	return kek
}

func wrapped(t *testing.T, kek tink.AEAD, ad string) (*Key, ID, []byte) {
	t.Helper()
	key := Generate()
	id, err := key.ID()
	if err != nil {
		t.Fatal(err)
	}
	w, err := key.Wrap(kek, []byte(ad))
	if err != nil {
		t.Fatal(err)
	}
	return key, id, w
}

// [CL-API-010]
func TestUnwrapGivesBackTheKeyAndNothingElse(t *testing.T) {
	kek := newKEK(t)
	key, id, w := wrapped(t, kek, "scope a")
	back, err := Unwrap(kek, w, []byte("scope a"), id)
	if err != nil || *back.bytes != *key.bytes {
		t.Fatalf("not the same key: %v", err)
	}
	_, otherID, _ := wrapped(t, kek, "scope a")
	flipped := bytes.Clone(w)
	flipped[len(flipped)-1] ^= 1
	short, err := kek.Encrypt(make([]byte, Size-1), []byte("scope a"))
	if err != nil {
		t.Fatal(err)
	}
	for name, unwrap := range map[string]func() (*Key, error){
		"other associated data": func() (*Key, error) { return Unwrap(kek, w, []byte("scope b"), id) },
		"other KEK":             func() (*Key, error) { return Unwrap(newKEK(t), w, []byte("scope a"), id) },
		"other id":              func() (*Key, error) { return Unwrap(kek, w, []byte("scope a"), otherID) },
		"flipped":               func() (*Key, error) { return Unwrap(kek, flipped, []byte("scope a"), id) },
		"short":                 func() (*Key, error) { return Unwrap(kek, short, []byte("scope a"), id) },
		"empty":                 func() (*Key, error) { return Unwrap(kek, nil, []byte("scope a"), id) },
	} {
		if k, err := unwrap(); err == nil || k != nil {
			t.Errorf("%s: unwrapped", name)
		}
	}
}

// [CL-API-014]
func TestKeyDoesNotPrint(t *testing.T) {
	key := Generate()
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("k", "pointer", key, "value", *key)
	slog.New(slog.NewTextHandler(&log, nil)).Info("k", "pointer", key, "value", *key, "in", struct{ K *Key }{key})
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%X", "%q", "%d", "%p"} {
		fmt.Fprintf(&log, verb, key)
		fmt.Fprintf(&log, verb, *key)
		fmt.Fprintf(&log, verb, []Key{*key})
	}
	shown := log.String()
	for _, form := range []string{
		hex.EncodeToString(key.bytes[:]), strings.ToUpper(hex.EncodeToString(key.bytes[:])),
		base64.StdEncoding.EncodeToString(key.bytes[:]), string(key.bytes[:]),
		strings.Trim(fmt.Sprint(*key.bytes), "[]"), fmt.Sprintf("%#v", *key.bytes),
	} {
		if strings.Contains(shown, form) {
			t.Fatal("the key was printed")
		}
	}
	if text, err := json.Marshal(key); err == nil {
		t.Errorf("JSON: %s", text)
	}
	if err := gob.NewEncoder(&log).Encode(key); err == nil {
		t.Error("gob took it")
	}
}

func TestWipe(t *testing.T) {
	key := Generate()
	if *key.bytes == [Size]byte{} {
		t.Fatal("generated zeros")
	}
	key.Wipe()
	if *key.bytes != [Size]byte{} {
		t.Fatal("not wiped")
	}
}

func TestParseID(t *testing.T) {
	const good = "0123456789abcdef0123456789abcdef"
	if id, err := ParseID(good); err != nil || id.String() != good {
		t.Fatalf("%s, %v", id, err)
	}
	for _, bad := range []string{
		"", good[1:], good + "0", strings.ToUpper(good), "g" + good[1:], " " + good[1:], "0x" + good[2:], good[:31] + "\n", "é" + good[2:],
	} {
		if _, err := ParseID(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}
