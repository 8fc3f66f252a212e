package driver

import (
	"encoding/binary"
	"math"
	"os"
	"time"
)

// The file of clock/skew.c: two numbers of 64 bits, in seconds.
const (
	clockOffset = 0 // by which the wall clock is wrong
	clockTold   = 8 // by which it was when the driver last read it; clockUnread where the library is not loaded
	clockUnread = math.MinInt64
)

// Clock is the wall clock of a driver, which the library of clock/skew.c lets the runner set. Other clocks of it stay right.
type Clock struct {
	Library string
	path    string
}

// NewClock makes one that is right, in a file of this path.
func NewClock(library, path string) (*Clock, error) {
	unread := int64(clockUnread)
	content := binary.NativeEndian.AppendUint64(make([]byte, clockTold), uint64(unread))
	return &Clock{library, path}, os.WriteFile(path, content, 0o600)
}

// environment is what a driver needs to have this clock. A command of its own LD_PRELOAD has to name the library in it.
func (c *Clock) environment() []string {
	return append(os.Environ(), "LD_PRELOAD="+c.Library, "CLOCK_SKEW_FILE="+c.path)
}

// Set puts the clock so far ahead of the right time, or behind it.
func (c *Clock) Set(ahead time.Duration) error {
	file, err := os.OpenFile(c.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(int64(ahead/time.Second))), clockOffset)
	return err
}

// Told is how wrong the clock was when the driver last read it; there is none where the driver does not load the library.
func (c *Clock) Told() (ahead time.Duration, there bool, err error) {
	content, err := os.ReadFile(c.path)
	if err != nil {
		return 0, false, err
	}
	told := int64(binary.NativeEndian.Uint64(content[clockTold:]))
	return time.Duration(told) * time.Second, told != clockUnread, nil
}
