package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/suite"
)

// startDriver starts a driver by the command that the user gave.
func startDriver(name, command, folder string) (*suite.Driver, error) {
	if command == "reference" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return again(name, []string{self, "reference-driver"}, folder)
	}
	return again(name, strings.Fields(command), folder)
}

// again starts a driver that can be started once more.
func again(name string, words []string, folder string) (*suite.Driver, error) {
	d, err := launch(name, words, folder)
	if err == nil {
		d.Another = func() (*suite.Driver, error) { return launch(name, words, folder) }
	}
	return d, err
}

func launch(name string, words []string, folder string) (*suite.Driver, error) {
	log, err := os.OpenFile(filepath.Join(folder, "driver-"+name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	process, err := driver.Start(words, log)
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	return &suite.Driver{Process: process, Label: name, Log: log.Name()}, nil
}
