package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/suite"
)

const preload = "LD_PRELOAD="

// startDriver starts a driver by the command that the user gave.
func startDriver(name, command, folder string) (*suite.Driver, error) {
	if command == "reference" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return again(name, []string{self, "reference-driver"}, folder)
	}
	words := strings.Fields(command)
	d, err := again(name, words, folder)
	if err != nil {
		return nil, err
	}
	d.Again = func(library, offset string) (*suite.Driver, error) {
		return launch(name, withClock(words, library, offset), folder)
	}
	return d, nil
}

// again starts a driver that can be started once more.
func again(name string, words []string, folder string) (*suite.Driver, error) {
	d, err := launch(name, words, folder)
	if err == nil {
		d.Another = func() (*suite.Driver, error) { return launch(name, words, folder) }
	}
	return d, err
}

// withClock is the command under libfaketime, which must not take the place of another library that is preloaded. Clocks that
// do not follow the wall clock stay as they are.
func withClock(words []string, library, offset string) []string {
	words = slices.Clone(words)
	for i, word := range words {
		if strings.HasPrefix(word, preload) {
			words[i] = word + ":" + library
			library = ""
		}
	}
	clock := []string{"env", "FAKETIME=" + offset, "FAKETIME_DONT_FAKE_MONOTONIC=1"}
	if library != "" {
		clock = append(clock, preload+library)
	}
	return append(clock, words...)
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
