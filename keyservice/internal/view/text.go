// Figures as people read them.

package view

import (
	"fmt"
	"math"
	"time"
)

// Span writes seconds with their greatest unit or two.
func Span(seconds float64) string {
	d := time.Duration(min(seconds, math.MaxInt32)) * time.Second
	days, hours, minutes, rest := int(d/(24*time.Hour)), int(d/time.Hour)%24, int(d/time.Minute)%60, int(d/time.Second)%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd %dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh %dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm %ds", minutes, rest)
	default:
		return fmt.Sprintf("%ds", rest)
	}
}

// Count writes a number, shortened where it is large.
func Count(n float64) string {
	for _, unit := range []struct {
		size float64
		name string
	}{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e4, "k"}} {
		if n >= unit.size {
			if unit.name == "k" {
				unit.size = 1e3
			}
			return fmt.Sprintf("%.1f %s", n/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%.0f", n)
}

// Size writes a number of bytes.
func Size(n float64) string {
	const step = 1024
	if n < step {
		return fmt.Sprintf("%.0f B", n)
	}
	unit := 0
	for n /= step; n >= step && unit < len("KMGTP")-1; unit++ {
		n /= step
	}
	return fmt.Sprintf("%.1f %ciB", n, "KMGTP"[unit])
}
