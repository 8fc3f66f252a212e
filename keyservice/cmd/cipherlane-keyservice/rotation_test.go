// Rotation by what was counted, end to end.

package main

import (
	"net/http"
	"testing"
	"time"
)

// [CL-OPR-006] [CL-OPR-007] A key that has reached a limit by count is replaced, and what was counted outlasts a restart.
func TestRotationByCount(t *testing.T) {
	k := startOperated(t)
	first := k.encryptionKey(t, "t-counted").text("kid")
	time.Sleep(1100 * time.Millisecond) // a younger key is not replaced for what was counted
	if kid := k.report(t, "t-counted", first, 9, 1).text("kid"); kid != first {
		t.Fatal("rotated before the limit")
	}
	k.stop(t)
	k = startIn(t, k.Dir)
	if kid := k.encryptionKey(t, "t-counted").text("kid"); kid != first || k.countOf(t, "t-counted", first) != 9 {
		t.Fatal("another key, or the count is lost")
	}
	second := k.report(t, "t-counted", first, 1, 1).text("kid")
	if second == first {
		t.Fatal("not rotated at the limit")
	}
	if kid := k.report(t, "t-counted", first, 1000, 1).text("kid"); kid != second {
		t.Fatal("a report about the key before rotated")
	}
	if _, keys := k.decrypt(t, "t-counted", first); keys[first]["key"] == nil {
		t.Fatal("the key before cannot be read")
	}
	other := k.encryptionKey(t, "t-bytes").text("kid")
	time.Sleep(1100 * time.Millisecond)
	if kid := k.report(t, "t-bytes", other, 1, 1024).text("kid"); kid == other {
		t.Error("not rotated by bytes")
	}
	rotations := 0
	for _, l := range k.auditLines(t) {
		if l["action"] == "rotate" && l["outcome"] == "allowed" && l["principal"] == nil {
			rotations++
		}
	}
	if rotations != 2 {
		t.Errorf("%d rotations are in the audit log", rotations)
	}
}

func (k *keyService) countOf(t *testing.T, scope, kid string) int {
	t.Helper()
	for _, key := range into[keysPage](t, k.must(t, http.MethodGet, "/v1/scopes/"+scope+"/keys", "")).Keys {
		if key.Kid == kid {
			return key.Records
		}
	}
	return -1
}

// [CL-OPR-007] What was reported outlasts a stop at once, and a kill when it was reported more than two seconds before.
func TestCountsOutlastTheProcess(t *testing.T) {
	k := startOperated(t)
	kid := k.encryptionKey(t, "claims").text("kid")
	k.report(t, "claims", kid, 3, 30)
	k.stop(t)
	k = startIn(t, k.Dir)
	if count := k.countOf(t, "claims", kid); count != 3 {
		t.Fatal(count, "after a stop")
	}
	k.report(t, "claims", kid, 4, 40)
	time.Sleep(2500 * time.Millisecond)
	k.report(t, "claims", kid, 100, 100) // may be lost
	if err := k.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-k.done
	k = startIn(t, k.Dir)
	if count := k.countOf(t, "claims", kid); count != 7 && count != 107 {
		t.Error(count, "after a kill")
	}
}
