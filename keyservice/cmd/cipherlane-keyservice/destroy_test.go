// Destroying keys, end to end.

package main

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
)

type planned struct {
	Count, Records, Bytes int
	Topics                []string
	Keys                  []keyEntry
	Confirm               string
}

// [CL-OPR-008] [CL-OPR-009] [CL-OPR-010] Two steps, and what was destroyed is told from what never was.
func TestDestroy(t *testing.T) {
	k := startOperated(t)
	old := k.encryptionKey(t, "claims").text("kid")
	k.report(t, "claims", old, 7, 700)
	current := k.must(t, http.MethodPost, "/v1/scopes/claims/rotate", "{}").text("kid")
	const path = "/v1/scopes/claims/destroy"
	body := `{"kids":["` + old + `"]`
	plan := into[planned](t, k.must(t, http.MethodPost, path, body+"}"))
	if plan.Count != 1 || plan.Records != 7 || plan.Bytes != 700 || !slices.Equal(plan.Topics, []string{"claims", "claims.*"}) ||
		len(plan.Keys) != 1 || plan.Keys[0].State != "readable" {
		t.Fatalf("%+v", plan)
	}
	if _, keys := k.decrypt(t, "claims", old); keys[old]["key"] == nil {
		t.Fatal("destroyed by the first step")
	}
	confirmed := body + `,"confirm":"` + plan.Confirm + `"}`
	k.must(t, http.MethodPost, "/v1/scopes/claims/rotate", "{}")
	if a := k.must(t, http.MethodPost, path, confirmed); fmt.Sprint(a.Members["destroyed"]) != "1" {
		t.Fatal(string(a.Body))
	}
	refuses(t, k.call(t, "operator", http.MethodPost, path, confirmed), http.StatusBadRequest, "request-invalid")
	_, keys := k.decrypt(t, "claims", old, current, strings.Repeat("0", 32))
	code := func(kid string) any { e, _ := keys[kid]["error"].(map[string]any); return e["code"] }
	if code(old) != "key-destroyed" || keys[current]["key"] == nil || code(strings.Repeat("0", 32)) != "key-unknown" {
		t.Fatal(keys)
	}
	k.stop(t)
	k = startIn(t, k.Dir)
	if _, keys = k.decrypt(t, "claims", old); code(old) != "key-destroyed" {
		t.Fatal(keys)
	}
	if got := into[keysPage](t, k.must(t, http.MethodGet, "/v1/scopes/claims/keys", "")); got.Keys[0].State != "destroyed" || got.Keys[0].Records != 7 {
		t.Fatalf("%+v", got)
	}
}

// [CL-OPR-008] A token confirms exactly what it was given for.
func TestDestroyAll(t *testing.T) {
	k := startOperated(t)
	const path = "/v1/scopes/claims/destroy"
	kids := []string{k.encryptionKey(t, "claims").text("kid")}
	for range 2 {
		kids = append(kids, k.must(t, http.MethodPost, "/v1/scopes/claims/rotate", "{}").text("kid"))
	}
	k.encryptionKey(t, "t-x")
	stale := into[planned](t, k.must(t, http.MethodPost, path, `{"all":true}`))
	kids = append(kids, k.must(t, http.MethodPost, "/v1/scopes/claims/rotate", "{}").text("kid"))
	some := into[planned](t, k.must(t, http.MethodPost, path, `{"kids":["`+kids[0]+`"]}`))
	for _, wrong := range []struct{ path, body string }{
		{path, `{"all":true,"confirm":"` + stale.Confirm + `"}`},
		{path, `{"all":true,"confirm":"` + some.Confirm + `"}`},
		{path, `{"kids":["` + kids[1] + `"],"confirm":"` + some.Confirm + `"}`},
		{"/v1/scopes/t-x/destroy", `{"all":true,"confirm":"` + some.Confirm + `"}`},
	} {
		refuses(t, k.call(t, "operator", http.MethodPost, wrong.path, wrong.body), http.StatusBadRequest, "request-invalid")
	}
	plan := into[planned](t, k.must(t, http.MethodPost, path, `{"all":true}`))
	if plan.Count != 4 || len(plan.Keys) != 4 {
		t.Fatalf("%+v", plan)
	}
	done := k.must(t, http.MethodPost, path, `{"all":true,"confirm":"`+plan.Confirm+`"}`)
	_, keys := k.decrypt(t, "claims", kids...)
	for _, kid := range kids {
		if keys[kid]["key"] != nil {
			t.Error(kid, "can be read")
		}
	}
	if now := k.encryptionKey(t, "claims").text("kid"); now != done.text("current") || slices.Contains(kids, now) || fmt.Sprint(done.Members["destroyed"]) != "4" {
		t.Error("the scope has no new key", string(done.Body))
	}
}
