// The page of the live view, as it is sent and as a real browser shows it.

package main

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

// getPage asks as a principal, without holding the answer against openapi.yaml: it is no JSON.
func (k *keyService) getPage(t *testing.T, principal, path string) (status int, header http.Header, text string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, k.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := client(t, k.tlsConfig(t, principal)).Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header, string(body)
}

// [CL-ACC-006]
func TestPage(t *testing.T) {
	k := startIn(t, newFolder(t, accessPolicy))
	if status, _, body := k.getPage(t, "operator", "/ui"); status != http.StatusOK || !strings.Contains(body, "No sidecar has reported") {
		t.Errorf("%d %s", status, body)
	}
	if a := k.post(t, "operator", "/v1/sidecars", aReport); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	k.encryptionKey(t, "claims")
	_, header, body := k.getPage(t, "operator", "/ui")
	for _, want := range []string{consumer, producer, "claims", "not-authorized", "&lt;script&gt;alert(1)", "h1", "encrypt"} {
		if !strings.Contains(body, want) {
			t.Errorf("no %q in\n%s", want, body)
		}
	}
	for _, bad := range []string{"<script", "src=", "href=", "url(", "@import", "http://", "https://", "ZgotmplZ"} {
		if strings.Contains(body, bad) {
			t.Errorf("%q in the page", bad)
		}
	}
	csp := header.Get("Content-Security-Policy")
	if !strings.HasPrefix(csp, "default-src 'none'; style-src 'sha256-") || strings.Contains(csp, "unsafe") || header.Get("Cache-Control") != "no-store" || header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%v", header)
	}
	for who, status := range map[string]int{"consumer": 403, "producer": 403, "stranger": 403} {
		if got, _, _ := k.getPage(t, who, "/ui"); got != status {
			t.Errorf("%s: %d", who, got)
		}
	}
	if status, _, _ := k.getPage(t, "operator", "/ui?x=1"); status != http.StatusBadRequest {
		t.Errorf("%d", status)
	}
}

// [CL-ACC-006] A real browser shows the page with its style: it would not if the Content-Security-Policy were wrong.
func TestPageInABrowser(t *testing.T) {
	browser, err := exec.LookPath("chromium")
	if err != nil {
		testvault.Report(t, "chromium: MISSING, the page was not looked at in a browser")
		t.Skip("no chromium")
	}
	k := startIn(t, newFolder(t, accessPolicy))
	if a := k.post(t, "operator", "/v1/sidecars", aReport); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	to, err := url.Parse(k.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to) // shows the operator's certificate, which a browser would ask its user for
	proxy.Transport = &http.Transport{TLSClientConfig: k.tlsConfig(t, "operator")}
	front := httptest.NewServer(proxy)
	defer front.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	picture := filepath.Join(t.TempDir(), "page.png")
	if keep := os.Getenv("CIPHERLANE_PICTURE"); keep != "" {
		picture = keep
	}
	flags := []string{
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--user-data-dir=" + t.TempDir(), "--window-size=1400,900",
		"--virtual-time-budget=2000", "--enable-logging=stderr",
	}
	said, err := exec.CommandContext(ctx, browser, append(flags, "--screenshot="+picture, front.URL+"/ui")...).CombinedOutput()
	if size, missing := os.Stat(picture); err != nil || missing != nil || size.Size() < 20_000 {
		t.Fatalf("%v %v\n%s", err, missing, said)
	}
	if strings.Contains(string(said), "Content Security Policy") || strings.Contains(string(said), "Refused to") {
		t.Errorf("the browser refuses a part of the page: %s", said)
	}
}
