package reference

import (
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
)

type reference struct {
	settings map[string]string
	sdk      *sdk
}

// Serve is the driver of the reference.
func Serve(in io.Reader, out io.Writer) error {
	r := &reference{}
	defer r.close()
	return driver.Serve(in, out, r.handle)
}

func (r *reference) handle(request driver.Request) (any, error) {
	switch request.Op {
	case driver.OpHello:
		return hello(), nil
	case driver.OpXAESDecrypt:
		return xaesDecrypt(request)
	case driver.OpPrimitive:
		return primitive(request)
	case driver.OpProduce:
		return produce(request)
	case driver.OpConsume:
		return consume(request)
	case driver.OpLoad:
		return load(request)
	case driver.OpSoakWrite:
		return soakWrite(request)
	case driver.OpSoakRead:
		return soakRead(request)
	case driver.OpOpen:
		r.close()
		r.settings = request.Settings
		return struct{}{}, r.open()
	}
	if r.sdk == nil {
		return nil, refuse(driver.CodeDriver, "nothing is open")
	}
	return r.handleOpen(request)
}

func (r *reference) handleOpen(request driver.Request) (any, error) {
	var value driver.Bytes
	if request.Value != nil {
		if err := json.Unmarshal(request.Value, &value); err != nil {
			return nil, err
		}
	}
	switch request.Op {
	case driver.OpEncrypt:
		out, err := r.sdk.encrypt(request.Topic, value)
		return driver.Outcome{Value: out}, err
	case driver.OpDecrypt:
		key, err := recordKey(request.RecordKey)
		if err != nil {
			return nil, err
		}
		out, err := r.sdk.decrypt(request.Topic, value, key)
		return driver.Outcome{Value: out}, err
	case driver.OpDecryptAll:
		return map[string]any{"results": r.decryptAll(request.Topic, request.Values)}, nil
	case driver.OpRotate:
		r.sdk.keys.forget()
		return struct{}{}, nil
	}
	return nil, refuse(driver.CodeUnsupportedOperation, "%s", request.Op)
}

func hello() driver.Hello {
	return driver.Hello{
		Protocol: 1, Name: "go-reference", Version: "1", Features: []string{"transactions"},
		Operations: []string{
			driver.OpHello, driver.OpOpen, driver.OpEncrypt, driver.OpDecrypt, driver.OpDecryptAll, driver.OpXAESDecrypt, driver.OpPrimitive,
			driver.OpProduce, driver.OpConsume, driver.OpLoad, driver.OpSoakWrite, driver.OpSoakRead, driver.OpRotate,
		},
	}
}

func (r *reference) open() (err error) {
	r.sdk, err = open(r.settings)
	return err
}

func (r *reference) close() {
	if r.sdk != nil {
		r.sdk.keys.close()
		r.sdk = nil
	}
}

func (r *reference) decryptAll(topic string, values []driver.Bytes) []driver.Outcome {
	outcomes := make([]driver.Outcome, len(values))
	r.prefetch(topic, values)
	for i, value := range values {
		outcomes[i] = outcome(r.sdk.decrypt(topic, value, nil))
	}
	return outcomes
}

// prefetch asks for all keys together; what fails is told by each value.
func (r *reference) prefetch(topic string, values []driver.Bytes) {
	var kids []string
	for _, value := range values {
		if isEnvelope(value) {
			if e, err := parse(value, r.sdk.maxPlaintext); err == nil {
				kids = append(kids, e.kid())
			}
		}
	}
	if len(kids) > 0 {
		_, _ = r.sdk.keys.readable(topic, kids)
	}
}

func outcome(value []byte, err error) driver.Outcome {
	if err != nil {
		return driver.Outcome{Error: asError(err)}
	}
	return driver.Outcome{Value: value}
}

func asError(err error) *driver.Error {
	if known, ok := errors.AsType[*driver.Error](err); ok {
		return known
	}
	return refuse(driver.CodeDriver, "%v", err)
}

func recordKey(raw json.RawMessage) (*driver.RecordKey, error) {
	if raw == nil {
		return nil, nil
	}
	key := &driver.RecordKey{}
	return key, json.Unmarshal(raw, &key.Bytes)
}

func xaesDecrypt(request driver.Request) (any, error) {
	cipher, err := newCipher(request.Key)
	if err != nil {
		return nil, err
	}
	plaintext, err := cipher.Decrypt(append(append([]byte{}, request.Nonce...), request.Ciphertext...), request.AAD)
	if err != nil {
		return nil, refuse("authentication-failed", "xaes")
	}
	return map[string]driver.Bytes{"plaintext": append([]byte{}, plaintext...)}, nil
}

// primitive: of its own the reference has but the derivation of key ids; Tink has the cipher, and draws its nonces itself.
func primitive(request driver.Request) (any, error) {
	if request.Name != "hkdf-sha256" {
		return nil, refuse(driver.CodeUnsupportedOperation, "%s", request.Name)
	}
	out, err := hkdf.Key(sha256.New, request.Key, request.Nonce, string(request.AAD), request.Size)
	return driver.Outcome{Value: out}, err
}
