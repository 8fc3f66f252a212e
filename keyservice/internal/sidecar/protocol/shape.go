// Bounds for what kmsg allocates: it makes arrays as long as a frame says, when the frame has at least that many bytes.

package protocol

import "fmt"

// Bodies that are decoded have at most so many bytes. Produce, Fetch and ShareFetch carry records and may be as long as a frame.
const (
	maxRequestBody  = 2 << 20
	maxResponseBody = 64 << 20
)

func checkShape(key, version int16, p []byte, request bool) error {
	limit := maxResponseBody
	if request {
		limit = maxRequestBody
	}
	switch {
	case request && key == produce:
		return checkProduce(version, p)
	case !request && (key == fetch || key == shareFetch):
		return checkRecords(key, version, p)
	case len(p) > limit:
		return fmt.Errorf("the body of API %d has %d bytes, more than the %d that are decoded", key, len(p), limit)
	}
	return nil
}

const (
	fetch      = 1
	shareFetch = 78
)

// checkProduce and checkRecords are to walk the arrays before kmsg does.
func checkProduce(int16, []byte) error { return nil }

func checkRecords(int16, int16, []byte) error { return nil }
