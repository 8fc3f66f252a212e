package reference

// Guards that can be switched off, one at a time, to show that a suite notices: what a faulty SDK would do.
var Guards = []string{
	"ambiguous", "content-type", "depth", "fail-closed", "flags", "forbid", "key-id", "key-size", "kid-not-asked", "lease", "limit",
	"one-frame", "plaintext", "record-key", "status", "tag", "topic", "version",
}

var guardOff string

// Without switches a guard off for the life of the process.
func Without(guard string) { guardOff = guard }

func without(guard string) bool { return guard == guardOff }
