// What processes take.

package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// CPU gives the CPU time of a process so far, user and system, but for that of a Java machine's compilers: that is no cost of what is
// measured, as it ends.
func CPU(pid int) time.Duration {
	const scheduled = 2 // the kernel's clock of a whole process (clock_getcpuclockid)
	var all unix.Timespec
	Check(unix.ClockGettime(int32(^pid<<3|scheduled), &all)) // #nosec G115 -- as the kernel has it
	return time.Duration(all.Nano()) - compiling(pid)
}

// compiling gives what a Java machine's compilers took.
func compiling(pid int) (sum time.Duration) {
	for _, thread := range Must(filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))) {
		name, err := os.ReadFile(filepath.Join(thread, "comm")) // #nosec G304 -- of the kernel
		if err != nil || !strings.Contains(string(name), "CompilerThre") {
			continue // one that has ended was none
		}
		nanos, _, _ := strings.Cut(string(Must(os.ReadFile(filepath.Join(thread, "schedstat")))), " ") // #nosec G304 -- of the kernel
		sum += time.Duration(Must(strconv.ParseInt(nanos, 10, 64)))
	}
	return sum
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
