// scan, on a real broker: records made by hand from vectors, and records encrypted under keys of a real key service.

package main

import (
	"crypto/aes"
	"crypto/cipher"
	"encoding/base64"
	"encoding/hex"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// encrypted writes an envelope as an SDK does, with nothing of this program's own: the derivation of C2SP's XAES-256-GCM.
func encrypted(t *testing.T, k keyAnswer, plaintext string) []byte {
	t.Helper()
	key, err := base64.StdEncoding.DecodeString(k.Key)
	if err != nil {
		t.Fatal(err)
	}
	kid, err := hex.DecodeString(k.Kid)
	if err != nil {
		t.Fatal(err)
	}
	value := append([]byte{0xC1, 0x9E, 1, 0}, kid...)
	nonce := make([]byte, envelope.NonceSize)
	block, err := aes.NewCipher(key)
	if err != nil {
		t.Fatal(err)
	}
	k1 := make([]byte, 16)
	block.Encrypt(k1, k1)
	carry := k1[0] >> 7
	for i := range k1 {
		next := byte(0)
		if i < 15 {
			next = k1[i+1] >> 7
		}
		k1[i] = k1[i]<<1 | next
	}
	k1[15] ^= carry * 0x87
	derived := make([]byte, 0, 32)
	for i := byte(1); i <= 2; i++ {
		m := append([]byte{0, i, 'X', 0}, nonce[:12]...)
		for j := range m {
			m[j] ^= k1[j]
		}
		block.Encrypt(m, m)
		derived = append(derived, m...)
	}
	inner, err := aes.NewCipher(derived)
	if err != nil {
		t.Fatal(err)
	}
	gcm, err := cipher.NewGCM(inner)
	if err != nil {
		t.Fatal(err)
	}
	e, err := envelope.Parse(append(append([]byte{}, value...), make([]byte, 40)...))
	if err != nil {
		t.Fatal(err)
	}
	return gcm.Seal(append(value, nonce...), nonce[12:], []byte(plaintext), e.AAD(k.Scope, nil))
}

func produce(t *testing.T, bootstrap string, records ...*kgo.Record) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.ProduceSync(t.Context(), records...).FirstErr(); err != nil {
		t.Fatal(err)
	}
}

type scanned struct {
	Tried bool `json:"decryption_tried"`
	Total struct {
		Records, Encrypted, Decrypted, Plaintext, Null int
		Kids, Codes                                    map[string]int
	}
	Partitions []struct {
		Topic          string
		Partition      int
		Records        int
		FirstPlaintext *int64 `json:"first_plaintext"`
		FirstBad       *int64 `json:"first_unreadable"`
	}
}

func TestScan(t *testing.T) {
	bootstrap := testservice.StartBroker(t, "claims:2,mixed:2,empty:1")
	k := testservice.StartKeyService(t, policyText)
	first := encryptionKey(t, k, "claims")
	tool(t, "--config", k.Operator, "rotate", "claims").ok(t)
	second := encryptionKey(t, k, "claims")
	other := encryptionKey(t, k, "other")
	at := func(topic string, partition int32, value []byte) *kgo.Record {
		return &kgo.Record{Topic: topic, Partition: partition, Value: value}
	}
	for range 3 {
		produce(t, bootstrap, at("claims", 0, encrypted(t, first, "a")), at("claims", 1, encrypted(t, second, "b")), at("claims", 1, nil))
	}
	broken := encrypted(t, first, "c")
	broken[len(broken)-1] ^= 1
	moved := at("mixed", 1, encrypted(t, other, "d"))
	cut := encrypted(t, first, "e")[:30]
	produce(t, bootstrap, at("mixed", 0, nil), at("mixed", 0, []byte("plain")), at("mixed", 0, []byte{}), at("mixed", 1, cut), moved)
	produce(t, bootstrap, at("claims", 0, encrypted(t, first, "a")))

	consumer := k.Principals["consumer"]
	asConsumer := []string{"--config", k.Operator, "--certificate", consumer.Certificate, "--key", consumer.Key}
	scan := func(args ...string) outcome {
		return tool(t, append(append([]string{"scan", "--bootstrap", bootstrap}, args...), asConsumer...)...)
	}

	var clean scanned
	scan("claims", "--decrypt", "--json").json(t, &clean)
	if total := clean.Total; !clean.Tried || total.Records != 10 || total.Encrypted != 7 || total.Decrypted != 7 || total.Null != 3 ||
		total.Kids[first.Kid] != 4 || total.Kids[second.Kid] != 3 || len(total.Codes) != 0 {
		t.Errorf("%+v", clean)
	}
	if out := scan("claims").ok(t); out == "" {
		t.Error("nothing printed")
	}
	scan("empty", "--decrypt").ok(t)

	found := scan("mixed", "claims", "--json")
	found.fails(t, 3, "2 in plaintext", "1 that cannot be read")
	scan("mixed", "--allow-plaintext").fails(t, 3, "1 that cannot be read")

	produce(t, bootstrap, at("claims", 0, broken))
	tampered := scan("claims", "--decrypt")
	tampered.fails(t, 3, "1 that cannot be read")
	moved.Topic = "claims"
	produce(t, bootstrap, moved)
	o := scan("claims", "--decrypt")
	o.fails(t, 3, "2 that cannot be read")
	for _, want := range []string{"scope-mismatch", "authentication-failed", "offset 4"} {
		if !strings.Contains(o.out, want) {
			t.Errorf("%q is not in\n%s", want, o.out)
		}
	}
}

func TestScanRefuses(t *testing.T) {
	bootstrap := testservice.StartBroker(t, "claims:1")
	k := testservice.StartKeyService(t, policyText)
	produce(t, bootstrap, &kgo.Record{Topic: "claims", Value: encrypted(t, encryptionKey(t, k, "claims"), "a")})
	tool(t, "scan", "claims").fails(t, 2, "--bootstrap")
	tool(t, "scan", "--bootstrap", bootstrap).fails(t, 2)
	tool(t, "scan", "--bootstrap", bootstrap, "no-such-topic").fails(t, 1, "UNKNOWN_TOPIC_OR_PARTITION")
	tool(t, "scan", "--bootstrap", "127.0.0.1:1", "--stall", "2s", "claims").fails(t, 1)
	tool(t, "scan", "--bootstrap", bootstrap, "--decrypt", "claims").fails(t, 1, "--url is missing")
	tool(t, "scan", "--bootstrap", bootstrap, "--kafka-sasl", "plain", "claims").fails(t, 1, "--kafka-user")
	tool(t, "scan", "--bootstrap", bootstrap, "--kafka-ca", k.CA, "--stall", "2s", "claims").fails(t, 1)
	tool(t, "--config", k.Operator, "scan", "--bootstrap", bootstrap, "--decrypt", "claims").fails(t, 1, "not-authorized") // the operator is no consumer
}
