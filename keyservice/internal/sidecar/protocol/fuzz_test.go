package protocol

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// FuzzRequest takes a frame as a client sends it: whatever it is, it is refused or decoded, and then encoded to something that decodes
// to the same again.
func FuzzRequest(f *testing.F) {
	format := kmsg.NewRequestFormatter(kmsg.FormatterClientID("fuzz"))
	for key, highest := range Versions() {
		r := kmsg.RequestForKey(key)
		r.SetVersion(highest)
		f.Add(format.AppendRequest(nil, r, 1)[4:])
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		h, err := ParseHeader(p)
		if err != nil {
			return
		}
		_, _ = ExpectsResponse(h, p[h.Size:])
		r, err := DecodeRequest(h, p[h.Size:])
		if err != nil {
			return
		}
		frame := AppendRequest(nil, p[:h.Size], r)
		if _, err := DecodeRequest(h, frame[4+h.Size:]); err != nil {
			t.Fatalf("what was encoded is refused: %v", err)
		}
	})
}

// FuzzResponse takes a frame as a broker sends it.
func FuzzResponse(f *testing.F) {
	every(func(key, version int16, p []byte, request bool) {
		if !request {
			f.Add(key, version, append([]byte{0, 0, 0, 1, 0}, p...))
		}
	})
	f.Add(int16(18), int16(4), []byte{0, 0, 0, 1, 0, 35, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, key, version int16, p []byte) {
		if !Understood(key, version) {
			return
		}
		r, header, err := DecodeResponse(key, version, p)
		if err != nil {
			return
		}
		frame := AppendResponse(nil, p[:header], r)
		if _, _, err := DecodeResponse(key, version, frame[4:]); err != nil {
			t.Fatalf("what was encoded is refused: %v", err)
		}
	})
}
