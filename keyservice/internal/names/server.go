// The names of servers: DNS names as they stand in certificates.

package names

import (
	"fmt"
	"strings"
)

// Limits of DNS, in bytes.
const (
	MaxServer = 253
	maxLabel  = 63
)

// CheckServer says why name is not the DNS name of a server, or nil: lowercase letters, digits and hyphens, no wildcard,
// and nothing that could be read as an address.
func CheckServer(name string) error { return checkServer(name, "") }

// CheckServerPattern is CheckServer for a pattern, in which * and ? may stand.
func CheckServerPattern(pattern string) error { return checkServer(pattern, "*?") }

func checkServer(name, wildcards string) error {
	if err := checkSize(name, MaxServer); err != nil {
		return err
	}
	labels := strings.Split(name, ".")
	for _, label := range labels {
		if err := checkLabel(label, wildcards); err != nil {
			return err
		}
	}
	last := labels[len(labels)-1]
	anyLabel := wildcards != "" && len(labels) == 1 && strings.Trim(last, wildcards) == ""
	if strings.Trim(last, "0123456789"+wildcards) == "" && !anyLabel {
		return fmt.Errorf("its last label could be a number, as in an address")
	}
	return nil
}

func checkLabel(label, wildcards string) error {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return fmt.Errorf("a label has 1 to %d bytes and no hyphen at its ends", maxLabel)
	}
	for _, c := range label {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && !strings.ContainsRune(wildcards, c) {
			return fmt.Errorf("%q is not one of a-z 0-9 -", c)
		}
	}
	return nil
}
