// What processes take.

package rig

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// CPU gives the CPU time of a process so far, user and system, in ticks of 10 ms.
func CPU(pid int) time.Duration {
	text := Must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	const userField, ticks = 11, 10 * time.Millisecond
	if len(fields) < userField+2 {
		panic(Failure{fmt.Errorf("/proc/%d/stat is cut short", pid)})
	}
	return time.Duration(Must(strconv.Atoi(fields[userField]))+Must(strconv.Atoi(fields[userField+1]))) * ticks
}

// Memory gives what a process holds in RAM, in MiB: all of it, and the part that is no file (the store is mapped).
func Memory(pid int) (all, anonymous float64) {
	text := Must(os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch name {
		case "VmRSS":
			all = kilobytes / 1024
		case "RssAnon":
			anonymous = kilobytes / 1024
		}
	}
	return Round(all), Round(anonymous)
}
