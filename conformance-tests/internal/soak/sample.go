// Package soak watches processes for a long time: memory and descriptors (this file), whether they grow (slope.go), and a picture
// of both (plot.go). Linux only.
package soak

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// Sample is what a process had at a moment.
type Sample struct {
	At          time.Duration `json:"nanoseconds"` // since the beginning
	RSS         float64       `json:"rss_mib"`     // without pages of mapped files, which are the system's to take back
	Descriptors int           `json:"descriptors"`
}

// Process is one that is watched.
type Process struct {
	Name    string   `json:"name"`
	Ours    bool     `json:"ours"` // whether its growth is judged: that of a broker is not
	Samples []Sample `json:"samples"`

	pid int
}

// Watch makes a process to be watched.
func Watch(name string, pid int, ours bool) *Process {
	return &Process{Name: name, Ours: ours, pid: pid}
}

// Look takes a sample.
func (p *Process) Look(at time.Duration) error {
	rss, err := residentMiB(p.pid)
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	descriptors, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.pid))
	if err != nil {
		return fmt.Errorf("%s: %w", p.Name, err)
	}
	p.Samples = append(p.Samples, Sample{at, rss, len(descriptors)})
	return nil
}

func residentMiB(pid int) (float64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	_, line, _ := bytes.Cut(status, []byte("RssAnon:"))
	fields := bytes.Fields(line)
	if len(fields) == 0 {
		return 0, fmt.Errorf("process %d has ended", pid)
	}
	kib, err := strconv.ParseFloat(string(fields[0]), 64)
	return kib / 1024, err
}

// After leaves out the warm-up.
func (p *Process) After(warmUp time.Duration) []Sample {
	for i, sample := range p.Samples {
		if sample.At >= warmUp {
			return p.Samples[i:]
		}
	}
	return nil
}
