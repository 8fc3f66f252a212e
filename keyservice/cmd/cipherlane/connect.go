// Where the key service is and who the operator is: flags, then the environment, then a file.

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Globals are the flags of every command.
type Globals struct {
	JSON bool `name:"json" help:"Print JSON for programs in place of text for people."`

	Config      string `group:"Connection to the key service" type:"path" env:"CIPHERLANE_CONFIG" placeholder:"FILE" help:"YAML file with url, ca, certificate, key."`
	URL         string `group:"Connection to the key service" name:"url" env:"CIPHERLANE_URL" placeholder:"URL" help:"Address of the key service: https://host:port."`
	CA          string `group:"Connection to the key service" name:"ca" type:"path" env:"CIPHERLANE_CA" placeholder:"FILE" help:"CA of the key service's certificate, PEM."`
	Certificate string `group:"Connection to the key service" type:"path" env:"CIPHERLANE_CERTIFICATE" placeholder:"FILE" help:"Your client certificate, PEM."`
	Key         string `group:"Connection to the key service" type:"path" env:"CIPHERLANE_KEY" placeholder:"FILE" help:"Its private key, PEM, mode 0600."`
}

// connect gives a client of the key service.
func (g *Globals) connect() (*operator.Client, error) {
	o, err := g.options()
	if err != nil {
		return nil, err
	}
	for _, needed := range []struct{ name, value string }{{"url", o.URL}, {"ca", o.CA}, {"certificate", o.Certificate}, {"key", o.Key}} {
		if needed.value == "" {
			return nil, fmt.Errorf("--%[1]s is missing: give it, or a --config file with the member %[1]s", needed.name)
		}
	}
	return operator.Open(o)
}

// options fills in from the file what flags and environment leave open.
func (g *Globals) options() (operator.Options, error) {
	o := operator.Options{}
	path, err := g.file()
	if path != "" && err == nil {
		o, err = readConfig(path)
	}
	if err != nil {
		return o, err
	}
	for _, flag := range []struct {
		value  string
		target *string
	}{{g.URL, &o.URL}, {g.CA, &o.CA}, {g.Certificate, &o.Certificate}, {g.Key, &o.Key}} {
		if flag.value != "" {
			*flag.target = flag.value
		}
	}
	return o, nil
}

// file is the one named, else the one at the usual place if it is there.
func (g *Globals) file() (string, error) {
	if g.Config != "" {
		return g.Config, nil
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", nil //nolint:nilerr // no home folder: then there is no file at the usual place
	}
	usual := filepath.Join(dir, "cipherlane", "cipherlane.yaml")
	if _, err := os.Stat(usual); errors.Is(err, fs.ErrNotExist) {
		return "", nil
	} else if err != nil {
		return "", err
	}
	return usual, nil
}

// readConfig reads a file; its paths are relative to it.
func readConfig(path string) (operator.Options, error) {
	var o operator.Options
	data, err := files.ReadTrusted(path, strictyaml.MaxSize)
	if err != nil {
		return o, err
	}
	root, err := strictyaml.Parse(path, data)
	if err != nil {
		return o, err
	}
	err = root.Members(map[string]strictyaml.Field{
		"url": strictyaml.TextInto(&o.URL), "ca": strictyaml.TextInto(&o.CA),
		"certificate": strictyaml.TextInto(&o.Certificate), "key": strictyaml.TextInto(&o.Key),
	})
	for _, file := range []*string{&o.CA, &o.Certificate, &o.Key} {
		if *file != "" && !filepath.IsAbs(*file) {
			*file = filepath.Join(filepath.Dir(path), *file)
		}
	}
	return o, err
}
