// What the dev command prints once it serves.

package dev

import (
	"fmt"
	"io"
	"maps"
	"net"
	"slices"

	"github.com/go-json-experiment/json"
)

// Running is a folder that is being served.
type Running struct {
	URL      string `json:"url"`
	AdminURL string `json:"admin_url"`
	Folder
}

// NewRunning adds the addresses to a folder.
func NewRunning(f Folder, api, admin net.Addr) Running {
	return Running{URL: "https://" + api.String(), AdminURL: "http://" + admin.String(), Folder: f}
}

// WriteJSON prints one line for programs.
func (r Running) WriteJSON(out io.Writer) error {
	line, err := json.Marshal(r, json.Deterministic(true))
	if err != nil {
		return err
	}
	_, err = out.Write(append(line, '\n'))
	return err
}

const description = `Cipherlane key service for development, ready at %[1]s
  health and metrics  %[2]s/readyz  %[2]s/metrics
  policy              %[3]s
  audit log           %[4]s

Java producer (properties)
  interceptor.classes=dev.cipherlane.kafka.EncryptingProducerInterceptor
  cipherlane.keyservice.urls=%[1]s
  cipherlane.keyservice.tls.ca=%[5]s
  cipherlane.keyservice.tls.certificate=%[6]s
  cipherlane.keyservice.tls.key=%[7]s

Python consumer (dict)
  {
      "cipherlane.keyservice.urls": "%[1]s",
      "cipherlane.keyservice.tls.ca": "%[5]s",
      "cipherlane.keyservice.tls.certificate": "%[8]s",
      "cipherlane.keyservice.tls.key": "%[9]s",
  }

Operator's tool
  cipherlane --config %[11]s scopes

Principals (NAME.pem and NAME-key.pem in %[10]s)
`

// WriteText prints what to put into the clients.
func (r Running) WriteText(out io.Writer) error {
	producer, consumer := r.Principals["producer"], r.Principals["consumer"]
	_, err := fmt.Fprintf(out, description, r.URL, r.AdminURL, r.Policy, r.Audit, r.CA,
		producer.Certificate, producer.Key, consumer.Certificate, consumer.Key, r.Dir, r.Operator)
	for _, name := range slices.Sorted(maps.Keys(r.Principals)) {
		if err == nil {
			_, err = fmt.Fprintf(out, "  %-12s %s\n", name, r.Principals[name].SPIFFEID)
		}
	}
	if err == nil {
		_, err = fmt.Fprintln(out, "\nStop it with Ctrl-C. Start it again on the same folder to keep the keys.")
	}
	return err
}
