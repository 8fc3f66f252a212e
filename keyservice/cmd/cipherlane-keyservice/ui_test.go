// The page of the live view, as it is sent and as a real browser shows it.

package main

import (
	"context"
	"image/color"
	"image/png"
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
	k.encryptionKey(t, "claims")
	address := k.front(t) + "/ui"
	picture := filepath.Join(t.TempDir(), "page.png")
	if keep := os.Getenv("CIPHERLANE_PICTURE"); keep != "" {
		picture = keep
	}
	browse(t, browser, "--screenshot="+picture, address)
	shows(t, picture, "denials", color.RGBA{R: 0xc0, G: 0x39, B: 0x2b, A: 255})
	shows(t, picture, "encrypting", color.RGBA{R: 0xb9, G: 0x77, B: 0x0e, A: 255})
	shows(t, picture, "reading", color.RGBA{R: 0x1e, G: 0x84, B: 0x49, A: 255})
	document := browse(t, browser, "--dump-dom", address)
	for _, part := range []string{"<h1>Cipherlane</h1>", "<td>" + consumer + "</td>", "<td>" + producer + "</td>", "not-authorized", "&lt;script&gt;alert(1)", "</html>"} {
		if !strings.Contains(document, part) {
			t.Errorf("no %q in the browser's document\n%s", part, document)
		}
	}
	if strings.Contains(document, "<script") {
		t.Errorf("what a client calls itself became a script\n%s", document)
	}
}

// front is an address for a browser, which would ask its user for a certificate: it shows the operator's.
func (k *keyService) front(t *testing.T) string {
	t.Helper()
	to, err := url.Parse(k.URL)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.Transport = &http.Transport{TLSClientConfig: k.tlsConfig(t, "operator")}
	front := httptest.NewServer(proxy)
	t.Cleanup(front.Close)
	return front.URL
}

// browse opens an address without a window, and gives what the browser prints. It must not complain of the page.
func browse(t *testing.T, browser, do, address string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, browser, // #nosec G204 -- of this test
		"--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--user-data-dir="+t.TempDir(),
		"--window-size=1400,900", "--virtual-time-budget=2000", "--enable-logging=stderr", do, address)
	var said strings.Builder
	cmd.Stderr = &said
	printed, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	if strings.Contains(said.String(), "Content Security Policy") || strings.Contains(said.String(), "Refused to") {
		t.Errorf("the browser refuses a part of the page: %s", said.String())
	}
	return string(printed)
}

// shows looks for a colour that only the page's style gives.
func shows(t *testing.T, picture, what string, want color.RGBA) {
	t.Helper()
	file, err := os.Open(picture) // #nosec G304 -- of this test
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	page, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for y := page.Bounds().Min.Y; y < page.Bounds().Max.Y; y++ {
		for x := page.Bounds().Min.X; x < page.Bounds().Max.X; x++ {
			if color.RGBAModel.Convert(page.At(x, y)) == want {
				found++
			}
		}
	}
	if found < 10 {
		t.Errorf("%s: %d points of its colour", what, found)
	}
}
