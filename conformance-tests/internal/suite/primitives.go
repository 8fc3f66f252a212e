package suite

import (
	"bytes"
	"crypto/sha3"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/c2sp/wycheproof"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
)

// The primitives of the protocol.
const (
	gcmDecrypt  = "aes-256-gcm-decrypt"
	hkdfSHA256  = "hkdf-sha256"
	aesCMAC     = "aes-256-cmac"
	xaesEncrypt = "xaes-256-gcm-encrypt"
)

// The accumulated vectors of C2SP's XAES-256-GCM: all ciphertexts of so many inputs, hashed.
const (
	accumulatedCount = 10_000
	accumulatedHash  = "e6b9edf2df6cec60c8cbd864e2211b597fb69a529160cd040d56c0c210081939"
)

// wycheproofCase is a test of any of the three files; each has its own members.
type wycheproofCase struct {
	ID     int    `json:"tcId"`
	Result string `json:"result"`
	Key    driver.Bytes
	IKM    driver.Bytes
	IV     driver.Bytes
	AAD    driver.Bytes
	Salt   driver.Bytes
	Info   driver.Bytes
	Msg    driver.Bytes
	CT     driver.Bytes
	Tag    driver.Bytes
	OKM    driver.Bytes
	Size   int
}

type wycheproofGroup struct {
	KeySize int `json:"keySize"`
	IVSize  int `json:"ivSize"`
	TagSize int `json:"tagSize"`
	Tests   []wycheproofCase
}

// sources are the files of Wycheproof, which of their groups are about what the envelope uses, and how a test is run.
var sources = []struct {
	file, primitive string
	fits            func(wycheproofGroup) bool
	run             func(*Driver, wycheproofCase) error
}{
	{"aes_gcm_test.json", gcmDecrypt, func(g wycheproofGroup) bool { return g.KeySize == 256 && g.IVSize == 96 && g.TagSize == 128 }, gcmCase},
	{"hkdf_sha256_test.json", hkdfSHA256, func(wycheproofGroup) bool { return true }, hkdfCase},
	{"aes_cmac_test.json", aesCMAC, func(g wycheproofGroup) bool { return g.KeySize == 256 && g.TagSize == 128 }, cmacCase},
}

func runPrimitives(r *Run) error {
	for _, source := range sources {
		cases, err := wycheproofCases(source.file, source.fits)
		if err != nil {
			return err
		}
		r.Results.Facts.Environment["wycheproof: "+source.file] = strconv.Itoa(len(cases))
		for _, d := range r.Drivers {
			for _, c := range cases {
				r.check("primitives", fmt.Sprintf("%s-%d", source.primitive, c.ID), d, nil, func() error { return source.run(d, c) })
			}
		}
	}
	for _, d := range r.Drivers {
		r.check("primitives", "xaes-accumulated", d, nil, func() error { return accumulated(d) })
	}
	return nil
}

func wycheproofCases(file string, fits func(wycheproofGroup) bool) (cases []wycheproofCase, err error) {
	opened, err := wycheproof.TestVectors.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	var content struct{ TestGroups []wycheproofGroup }
	if err := json.NewDecoder(opened).Decode(&content); err != nil {
		return nil, err
	}
	for _, group := range content.TestGroups {
		if fits(group) {
			cases = append(cases, group.Tests...)
		}
	}
	if len(cases) == 0 {
		return nil, fmt.Errorf("wycheproof: no case in %s", file)
	}
	return cases, nil
}

func primitive(d *Driver, request driver.Request) ([]byte, error) {
	request.Op = driver.OpPrimitive
	var out driver.Outcome
	err := d.Call(request, &out)
	return out.Value, err
}

func gcmCase(d *Driver, c wycheproofCase) error {
	got, err := primitive(d, driver.Request{Name: gcmDecrypt, Key: c.Key, Nonce: c.IV, AAD: c.AAD, Input: append(bytes.Clone(c.CT), c.Tag...)})
	if c.Result == "valid" {
		return verdict("ok", c.Msg, true, got, err)
	}
	return verdict(authenticationFailed, nil, false, got, err)
}

func hkdfCase(d *Driver, c wycheproofCase) error {
	got, err := primitive(d, driver.Request{Name: hkdfSHA256, Key: c.IKM, Nonce: c.Salt, AAD: c.Info, Size: c.Size})
	if c.Result == "valid" {
		return verdict("ok", c.OKM, true, got, err)
	}
	return mustFail(got, err)
}

// mustFail leaves open with which error, but for one that says that the driver does not reach the primitive.
func mustFail(got []byte, err error) error {
	var known *driver.Error
	switch {
	case err == nil:
		return fmt.Errorf("expected an error, got %s", short(got))
	case !errors.As(err, &known) || known.Code == driver.CodeUnsupportedOperation:
		return err
	}
	return nil
}

func cmacCase(d *Driver, c wycheproofCase) error {
	got, err := primitive(d, driver.Request{Name: aesCMAC, Key: c.Key, Input: c.Msg})
	if c.Result == "valid" || err != nil {
		return verdict("ok", c.Tag, true, got, err)
	}
	if bytes.Equal(got, c.Tag) {
		return errors.New("a tag that is wrong was made")
	}
	return nil
}

// accumulated has the driver encrypt 10,000 inputs, drawn from SHAKE128 of nothing, and compares the hash of all outputs.
func accumulated(d *Driver) error {
	source, sum := sha3.NewSHAKE128(), sha3.NewSHAKE128()
	for range accumulatedCount {
		request := driver.Request{Name: xaesEncrypt, Key: draw(source, 32), Nonce: draw(source, 24)}
		request.Input = draw(source, int(draw(source, 1)[0]))
		request.AAD = draw(source, int(draw(source, 1)[0]))
		ciphertext, err := primitive(d, request)
		if err != nil {
			return err
		}
		_, _ = sum.Write(ciphertext)
	}
	if got := hex.EncodeToString(draw(sum, 32)); got != accumulatedHash {
		return fmt.Errorf("the hash of all ciphertexts is %s", got)
	}
	return nil
}

func draw(source io.Reader, size int) []byte {
	out := make([]byte, size)
	_, _ = io.ReadFull(source, out) // an extendable output never ends
	return out
}
