// audit verify and audit search on the log of a real key service.

package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// as gives a client with a principal's certificate.
func as(t *testing.T, k *testservice.KeyService, principal string) *operator.Client {
	t.Helper()
	p := k.Principals[principal]
	c, err := operator.Open(operator.Options{URL: k.URL, CA: k.CA, Certificate: p.Certificate, Key: p.Key})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

type keyAnswer struct {
	Scope string `json:"scope"`
	Kid   string `json:"kid"`
	Key   string `json:"key"`
}

func encryptionKey(t *testing.T, k *testservice.KeyService, topic string) keyAnswer {
	t.Helper()
	var answer keyAnswer
	if err := as(t, k, "producer").Post(t.Context(), "/v1/encryption-key", map[string]string{"topic": topic}, &answer); err != nil {
		t.Fatal(err)
	}
	return answer
}

// until waits for something.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !holds(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

func auditHead(t *testing.T, k *testservice.KeyService) string {
	t.Helper()
	response, err := http.Get(k.AdminURL + "/audit-head")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var text bytes.Buffer
	if _, err := text.ReadFrom(response.Body); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(text.String())
}

// CL-AUD-006, CL-AUD-003: rotated on SIGHUP, killed, started again; then tampered with.
func TestAuditVerify(t *testing.T) {
	k := testservice.StartKeyService(t, policyText)
	encryptionKey(t, k, "claims")
	k.Signal(t, syscall.SIGHUP)
	until(t, "the rotation", func() bool { return strings.Contains(k.Log.String(), "was rotated") })
	encryptionKey(t, k, "claims")
	k.Kill(t)
	k = testservice.StartKeyServiceIn(t, k.Dir)
	encryptionKey(t, k, "other")
	head := auditHead(t, k)
	if out := tool(t, "audit", "verify", k.Audit, "--head", head).ok(t); !strings.Contains(out, "whole") || !strings.Contains(out, "in 2 files") || !strings.Contains(out, head) {
		t.Error(out)
	}
	var report struct {
		Lines    int
		Files    int
		Starts   int
		Anchored bool
	}
	tool(t, "audit", "verify", k.Audit, "--json", "--head", head).json(t, &report)
	if report.Lines != 6 || report.Files != 2 || report.Starts != 2 || !report.Anchored { // start, key, rotate, key, start, key
		t.Errorf("%+v", report)
	}

	whole, err := os.ReadFile(k.Audit)
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(t.TempDir(), "audit.jsonl")
	for says, data := range map[string][]byte{
		"was changed":                bytes.Replace(whole, []byte("producer"), []byte("consumer"), 1),
		"begins with line 3":         whole,
		"not a line of an audit log": append([]byte("x"), whole...),
	} {
		if err := os.WriteFile(copied, data, 0o600); err != nil {
			t.Fatal(err)
		}
		o := tool(t, "audit", "verify", copied)
		o.fails(t, 1, "NOT whole")
		if !strings.Contains(o.out, says) || !strings.Contains(o.out, copied+":") {
			t.Errorf("want %q:\n%s", says, o.out)
		}
	}
	if err := os.WriteFile(copied, whole[:bytes.LastIndexByte(whole[:len(whole)-1], '\n')+1], 0o600); err != nil {
		t.Fatal(err)
	}
	tool(t, "audit", "verify", copied, "--middle").ok(t) // which is why there are anchors
	if o := tool(t, "audit", "verify", copied, "--middle", "--head", head); o.code != 1 || !strings.Contains(o.out, "cut off at the end") {
		t.Error(o)
	}
	tool(t, "audit", "verify", copied, "--head", "17").fails(t, 1, "not the head of an audit log")
	tool(t, "audit", "verify", filepath.Join(t.TempDir(), "none")).fails(t, 2)
	tool(t, "audit", "verify").fails(t, 2)
}

func TestAuditSearch(t *testing.T) {
	k := testservice.StartKeyService(t, policyText)
	first := encryptionKey(t, k, "claims")
	between := time.Now().UTC().Format(time.RFC3339Nano)
	var answer struct{}
	if err := as(t, k, "consumer").Post(t.Context(), "/v1/decryption-keys", map[string]any{"topic": "claims", "kids": []string{first.Kid}}, &answer); err != nil {
		t.Fatal(err)
	}
	if err := as(t, k, "stranger").Post(t.Context(), "/v1/decryption-keys", map[string]any{"topic": "claims", "kids": []string{first.Kid}}, &answer); err == nil {
		t.Fatal("a stranger got a key")
	}
	encryptionKey(t, k, "other")

	for want, args := range map[string][]string{
		"producer consumer": {"--topic", "claims", "--released"},
		"consumer":          {"--topic", "claims", "--released", "--from", between},
		"producer":          {"--topic", "claims", "--released", "--to", between},
		"stranger":          {"--outcome", "refused", "--from", "1h"},
		"":                  {"--from", "2001-01-01", "--to", "2001-01-02"},
		"consumer producer": {"--topic", "cl*", "--who"},
	} {
		out := tool(t, append([]string{"audit", "search", k.Audit}, args...)...).ok(t)
		var got []string
		for line := range strings.Lines(out) {
			if _, name, found := strings.Cut(line, "spiffe://dev.cipherlane/"); found {
				got = append(got, strings.Fields(name)[0])
			}
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%v: %v, want %s\n%s", args, got, want, out)
		}
	}
	var who struct {
		Principals []struct {
			Principal string
			Kids      []string
			Times     int
		}
	}
	tool(t, "audit", "search", k.Audit, "--who", "--json", "--topic", "claims").json(t, &who)
	if len(who.Principals) != 2 || fmt.Sprint(who.Principals[0].Kids) != "["+first.Kid+"]" || who.Principals[0].Times != 1 {
		t.Errorf("%+v", who)
	}
	for _, bad := range [][]string{{"--from", "soon"}, {"--to=-1h"}, {"--topic", "["}} {
		tool(t, append([]string{"audit", "search", k.Audit}, bad...)...).fails(t, 1)
	}
	tool(t, "audit", "search", k.Audit, "--outcome", "maybe").fails(t, 2)
}
