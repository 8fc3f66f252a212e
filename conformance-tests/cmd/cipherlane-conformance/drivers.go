package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/suite"
)

// startDriver starts a driver by the command that the user gave, with a clock that the library can set, if there is one.
func startDriver(name, command, folder, library string) (*suite.Driver, error) {
	var clock *driver.Clock
	if library != "" {
		made, err := driver.NewClock(library, filepath.Join(folder, "clock-"+name))
		if err != nil {
			return nil, err
		}
		clock = made
	}
	if command == "reference" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return again(name, []string{self, "reference-driver"}, folder, clock)
	}
	return again(name, strings.Fields(command), folder, clock)
}

// again starts a driver that can be started once more.
func again(name string, words []string, folder string, clock *driver.Clock) (*suite.Driver, error) {
	d, err := launch(name, words, folder, clock)
	if err == nil {
		d.Another = func() (*suite.Driver, error) { return launch(name, words, folder, clock) }
	}
	return d, err
}

func launch(name string, words []string, folder string, clock *driver.Clock) (*suite.Driver, error) {
	log, err := os.OpenFile(filepath.Join(folder, "driver-"+name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	process, err := driver.Start(words, log, clock)
	if err != nil {
		text, _ := os.ReadFile(log.Name())
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	return &suite.Driver{Process: process, Label: name, Log: log.Name(), Clock: clock}, nil
}
