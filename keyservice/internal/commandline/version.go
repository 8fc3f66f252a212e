package commandline

import (
	"fmt"
	"runtime/debug"

	"github.com/cipherlane/cipherlane/keyservice/internal/release"
)

// GoVersion is that of the compiler, or "unknown".
func GoVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		return info.GoVersion
	}
	return "unknown"
}

// PrintVersion shows the version of a program.
func PrintVersion(s *Streams, name string) error {
	_, err := fmt.Fprintf(s.Out, "%s %s (%s)\n", name, release.Version, GoVersion())
	return err
}
