// The baseline: a handler that reads a request and answers with as many bytes, under the same TLS.

package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// startPlain serves with the certificates of a key service's folder.
func (b *bench) startPlain(dir string, like *server) *server {
	s, line := b.startChild(self(), "plain", dir)
	s.url, s.tls = strings.TrimSpace(string(line)), like.tls
	return s
}

// servePlain answers /N with N bytes until standard input ends.
func servePlain(dir string) error {
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "server.pem"), filepath.Join(dir, "server-key.pem"))
	if err != nil {
		return err
	}
	ca, err := os.ReadFile(filepath.Join(dir, "ca.pem")) // #nosec G304 G703 -- the folder of this benchmark
	if err != nil {
		return err
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(ca)
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // ends with the process
	if err != nil {
		return err
	}
	h := &http.Server{
		Handler: http.HandlerFunc(plain), ReadHeaderTimeout: deadline,
		TLSConfig: &tls.Config{
			Certificates: []tls.Certificate{pair}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS13,
		},
	}
	fmt.Println("https://" + listener.Addr().String())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = h.Close()
	}()
	if err := h.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func plain(w http.ResponseWriter, r *http.Request) {
	size, err := strconv.Atoi(strings.TrimPrefix(r.URL.Path, "/"))
	if err != nil || size < 0 || size > 1<<20 {
		http.Error(w, "no such size", http.StatusNotFound)
		return
	}
	_, _ = io.Copy(io.Discard, r.Body)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(bytes.Repeat([]byte{'x'}, size))
}
