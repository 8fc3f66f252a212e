// What stands in the audit log, and what happens without one.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
)

func (k *keyService) get(t *testing.T, path string) string {
	t.Helper()
	status, body := k.admin(t, path)
	if status != http.StatusOK {
		t.Fatalf("%s: %d %s", path, status, body)
	}
	return body
}

func (k *keyService) admin(t *testing.T, path string) (status int, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, k.AdminURL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func (k *keyService) auditLog(t *testing.T) []audit.Record {
	t.Helper()
	data, err := os.ReadFile(k.Audit)
	if err != nil {
		t.Fatal(err)
	}
	var all []audit.Record
	for line := range bytes.Lines(data) {
		var r audit.Line
		decoder := json.NewDecoder(bytes.NewReader(line))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(&r); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if r.Action != audit.ActionStart && r.Action != audit.ActionRotate {
			all = append(all, r.Record)
		}
	}
	return all
}

// [CL-API-013] Each answer finds its records in the file.
func TestAuditLog(t *testing.T) {
	k := start(t)
	claims := k.encryptionKey(t, "claims").text("kid")
	other := k.encryptionKey(t, "t-other").text("kid")
	unknown := strings.Repeat("0", 32)
	k.encryptionKey(t, "public.x")
	k.decrypt(t, "claims", claims, other, unknown)
	k.decrypt(t, "old")
	refusedCall := k.post(t, "stranger", "/v1/decryption-keys", `{"topic":"claims","kids":["`+claims+`"]}`)
	rotated := k.post(t, "operator", "/v1/scopes/claims/rotate", "").text("kid")

	const spiffe = "spiffe://dev.cipherlane/"
	want := []audit.Record{
		{Principal: spiffe + "producer", Action: "encrypt", Topic: "claims", Scope: "claims", Mode: "encrypt", Kids: []string{claims}, Outcome: "allowed"},
		{Principal: spiffe + "producer", Action: "encrypt", Topic: "t-other", Scope: "t-other", Mode: "encrypt", Kids: []string{other}, Outcome: "allowed"},
		{Principal: spiffe + "producer", Action: "encrypt", Topic: "public.x", Scope: "public.x", Mode: "clear", Outcome: "allowed"},
		{Principal: spiffe + "consumer", Action: "decrypt", Topic: "claims", Scope: "claims", Mode: "encrypt", Kids: []string{claims}, Outcome: "allowed"},
		{Principal: spiffe + "consumer", Action: "decrypt", Topic: "claims", Scope: "claims", Mode: "encrypt", Kids: []string{unknown}, Outcome: "refused", Code: "key-unknown"},
		{Principal: spiffe + "consumer", Action: "decrypt", Topic: "claims", Scope: "claims", Mode: "encrypt", Kids: []string{other}, Outcome: "refused", Code: "scope-mismatch"},
		{Principal: spiffe + "consumer", Action: "decrypt", Topic: "old", Scope: "old", Mode: "encrypt", Outcome: "allowed"},
		{Principal: spiffe + "stranger", Action: "decrypt", Topic: "claims", Outcome: "refused", Code: "not-authorized"},
		{Principal: spiffe + "operator", Action: "rotate", Scope: "claims", Outcome: "begun"},
		{Principal: spiffe + "operator", Action: "rotate", Scope: "claims", Kids: []string{rotated}, Outcome: "allowed"},
	}
	got := k.auditLog(t)
	if len(got) != len(want) {
		t.Fatalf("%d records, want %d", len(got), len(want))
	}
	for i, r := range got {
		if r.RequestID == "" || r.Remote == "" || time.Since(r.Time) > time.Minute {
			t.Errorf("incomplete: %+v", r)
		}
		if r.Code == "not-authorized" && r.RequestID != refusedCall.text("request_id") {
			t.Errorf("another request_id: %+v", r)
		}
		r.RequestID, r.Remote, r.Time = "", "", time.Time{}
		if !equal(r, want[i]) {
			t.Errorf("record %d: %+v, want %+v", i, r, want[i])
		}
	}
}

func equal(a, b audit.Record) bool {
	kids := slices.Equal(a.Kids, b.Kids)
	a.Kids, b.Kids = nil, nil
	return kids && a.Principal == b.Principal && a.Action == b.Action && a.Topic == b.Topic && a.Scope == b.Scope &&
		a.Mode == b.Mode && a.Outcome == b.Outcome && a.Code == b.Code
}

// limit bounds the size of the files that the child may write, as a full disk would.
func (k *keyService) limit(t *testing.T, size uint64) {
	t.Helper()
	if err := unix.Prlimit(k.cmd.Process.Pid, unix.RLIMIT_FSIZE, &unix.Rlimit{Cur: size, Max: unix.RLIM_INFINITY}, nil); err != nil {
		t.Fatal(err)
	}
}

// [CL-API-013] With an audit log that cannot be written, nobody gets a key, not even a refusal of another kind.
func TestFullAuditDisk(t *testing.T) {
	k := start(t)
	kid := k.encryptionKey(t, "claims").text("kid")
	before, err := os.ReadFile(k.Audit)
	if err != nil {
		t.Fatal(err)
	}
	k.limit(t, uint64(len(before)+20))
	begin := time.Now()
	refuses(t, k.post(t, "producer", "/v1/encryption-key", `{"topic":"claims"}`), 503, "audit-unavailable")
	refuses(t, k.post(t, "producer", "/v1/encryption-key", `{"topic":"public.x"}`), 503, "audit-unavailable")
	refuses(t, k.post(t, "consumer", "/v1/decryption-keys", `{"topic":"claims","kids":["`+kid+`"]}`), 503, "audit-unavailable")
	refuses(t, k.post(t, "stranger", "/v1/encryption-key", `{"topic":"claims"}`), 503, "audit-unavailable")
	refuses(t, k.post(t, "operator", "/v1/scopes/claims/rotate", ""), 503, "audit-unavailable")
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("five refusals took %s", took)
	}
	if status, body := k.admin(t, "/readyz"); status != 503 || !strings.Contains(body, "audit") {
		t.Errorf("ready: %d %s", status, body)
	}
	if status, _ := k.admin(t, "/healthz"); status != 200 {
		t.Error("the process runs, and says that it does not")
	}
	k.limit(t, unix.RLIM_INFINITY)
	if again := k.encryptionKey(t, "claims"); again.text("kid") != kid {
		t.Error("a rotation that was refused was done")
	}
	k.get(t, "/readyz")
	after, err := os.ReadFile(k.Audit)
	if err != nil || !bytes.HasPrefix(after, before) {
		t.Fatal("the log before was changed", err)
	}
	k.auditLog(t) // every line is whole
}

// [CL-API-013] A log that was moved away takes no more records, so that none is lost without notice.
func TestMovedAuditLog(t *testing.T) {
	k := start(t)
	k.encryptionKey(t, "claims")
	if err := os.Rename(k.Audit, k.Audit+".1"); err != nil {
		t.Fatal(err)
	}
	refuses(t, k.post(t, "producer", "/v1/encryption-key", `{"topic":"claims"}`), 503, "audit-unavailable")
	if err := os.Rename(k.Audit+".1", k.Audit); err != nil {
		t.Fatal(err)
	}
	k.encryptionKey(t, "claims")
}

func TestReadiness(t *testing.T) {
	k := start(t)
	if got := k.get(t, "/readyz"); got != "ready\n" {
		t.Errorf("%q", got)
	}
	k.get(t, "/readyz") // soon after the first: no second line
	if got := k.auditLog(t); len(got) != 1 || got[0].Action != "audit-check" {
		t.Errorf("%+v", got)
	}
	if status, _ := k.admin(t, "/v1/encryption-key"); status != 404 {
		t.Error("the API is served without TLS")
	}
	if err := errors.Join(os.Remove(k.Audit)); err != nil {
		t.Fatal(err)
	}
	refuses(t, k.post(t, "producer", "/v1/encryption-key", `{"topic":"claims"}`), 503, "audit-unavailable")
	if status, body := k.admin(t, "/readyz"); status != 503 || !strings.Contains(body, "audit") {
		t.Errorf("%d %s", status, body)
	}
}

// [CL-API-013] A disk that is full in earnest: a small file system of its own. Where mounting is not allowed, the limit on the size of
// files in TestFullAuditDisk has to do.
func TestFullAuditFileSystem(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "disk")
	if err := os.Mkdir(disk, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", disk, "tmpfs", 0, "size=256k,mode=0700"); err != nil {
		t.Skipf("NO SMALL DISK: mounting is not allowed here: %v", err)
	}
	t.Cleanup(func() { _ = unix.Unmount(disk, unix.MNT_DETACH) })
	dir := newFolder(t, testPolicy)
	startIn(t, dir).stop(t)
	path := filepath.Join(dir, "keyservice.yaml")
	config, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(disk, "audit.jsonl")
	if err := os.WriteFile(path, bytes.Replace(config, []byte("file: audit.jsonl"), []byte("file: "+log), 1), 0o600); err != nil {
		t.Fatal(err)
	}
	k := startIn(t, dir)
	kid := k.encryptionKey(t, "claims").text("kid")
	filler := filepath.Join(disk, "filler")
	if err := os.WriteFile(filler, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal("the disk is not full", err)
	}
	status := 0
	for range 100 { // what is left of the log's last page is used up first
		if status = k.post(t, "producer", "/v1/encryption-key", `{"topic":"claims"}`).Status; status != http.StatusOK {
			break
		}
	}
	if status != http.StatusServiceUnavailable {
		t.Fatalf("answered %d on a full disk", status)
	}
	refuses(t, k.post(t, "stranger", "/v1/encryption-key", `{"topic":"claims"}`), 503, "audit-unavailable")
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	if k.encryptionKey(t, "claims").text("kid") != kid {
		t.Error("another key")
	}
	checkChain(t, log)
}

// checkChain proves the audit log whole [CL-AUD-002].
func checkChain(t *testing.T, path string) {
	t.Helper()
	files, err := audit.Files(path)
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(files, audit.Expect{})
	if err != nil || !report.Whole() || report.Lines == 0 {
		t.Fatalf("the audit log is not whole: %+v, %v", report, err)
	}
}
