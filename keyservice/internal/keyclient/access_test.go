package keyclient

import (
	"strings"
	"testing"
	"time"
)

// [CL-ACC-001] [CL-KEY-003] What is not exactly a decision for each check is no answer.
func TestDecisions(t *testing.T) {
	const yes, no = `{"allowed":true,"refresh_in":1,"expires_in":2}`, `{"allowed":false,"code":"not-authorized","refresh_in":5,"expires_in":5,"more":1}`
	read := func(decisions string) ([]Decision, error) {
		a := &answer{200, "application/json", []byte(`{"decisions":` + decisions + `}`)}
		return a.decisions(2)
	}
	got, err := read("[" + yes + "," + no + "]")
	want := []Decision{{Allowed: true, Lease: Lease{time.Second, 2 * time.Second}}, {Code: "not-authorized", Lease: Lease{5 * time.Second, 5 * time.Second}}}
	if err != nil || len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Fatalf("%+v %v", got, err)
	}
	for _, bad := range []string{
		"[]", "[" + yes + "]", "[" + yes + "," + no + "," + no + "]", "{}", "null", `"x"`, "[" + yes + ",1]", "[" + yes + ",null]",
		"[" + yes + "," + strings.Replace(yes, "true", "1", 1) + "]", "[" + yes + "," + strings.Replace(yes, "true", `"true"`, 1) + "]",
		"[" + yes + "," + strings.Replace(yes, `"allowed":true,`, "", 1) + "]", "[" + yes + "," + strings.Replace(no, `"code":"not-authorized",`, "", 1) + "]",
		"[" + yes + "," + strings.Replace(yes, `"expires_in":2`, `"expires_in":0`, 1) + "]", "[" + yes + "," + strings.Replace(yes, `"refresh_in":1`, `"refresh_in":3`, 1) + "]",
		"[" + yes + "," + strings.Replace(yes, `"expires_in":2`, `"expires_in":604801`, 1) + "]", "[" + yes + "," + strings.Replace(yes, "true", `true,"allowed":true`, 1) + "]",
	} {
		if got, err := read(bad); err == nil {
			t.Errorf("%s: %+v", bad, got)
		}
	}
	for _, a := range []answer{{204, "application/json", nil}, {200, "text/html", []byte("[]")}, {403, "application/problem+json", []byte(`{"code":"not-authorized"}`)}} {
		if got, err := a.decisions(0); err == nil {
			t.Errorf("%d %s: %+v", a.status, a.kind, got)
		}
	}
}
