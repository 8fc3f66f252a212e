// A TLS 1.3 peer on Go's standard library: peer server|client CA CERTIFICATE KEY [ADDRESS] demands a certificate, sends what it reads from its
// standard input, and prints what it receives. A server says first where it listens. Go changes its keys when the other side asks for it.
package main

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"log"
	"os"
)

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func configuration(ca, certificate, key string) *tls.Config {
	pem, err := os.ReadFile(ca)
	must(err)
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		log.Fatal("no certificate in ", ca)
	}
	own, err := tls.LoadX509KeyPair(certificate, key)
	must(err)
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{own}, RootCAs: roots, ClientCAs: roots, ClientAuth: tls.RequireAndVerifyClientCert,
	}
}

func accept(config *tls.Config) io.ReadWriter {
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	must(err)
	fmt.Println("ACCEPT", listener.Addr())
	connection, err := listener.Accept()
	must(err)
	return connection
}

func connect(config *tls.Config, address string) io.ReadWriter {
	connection, err := tls.Dial("tcp", address, config)
	must(err)
	return connection
}

func main() {
	if len(os.Args) < 5 {
		log.Fatal("usage: peer server|client CA CERTIFICATE KEY [ADDRESS]")
	}
	config := configuration(os.Args[2], os.Args[3], os.Args[4])
	var connection io.ReadWriter
	if os.Args[1] == "server" {
		connection = accept(config)
	} else {
		connection = connect(config, os.Args[5])
	}
	go func() {
		_, err := io.Copy(connection, os.Stdin)
		must(err)
	}()
	_, err := io.Copy(os.Stdout, connection)
	must(err)
}
