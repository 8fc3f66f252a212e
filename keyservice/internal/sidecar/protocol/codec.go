// Bodies.

package protocol

import (
	"encoding/binary"
	"fmt"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// unsupportedVersion is what a broker answers to an ApiVersions that is newer than it knows, in the form of version 0.
const unsupportedVersion = 35

// UnsupportedVersion is that answer for the sidecar: the versions of ApiVersions itself are all that it says, and the client asks again (KIP-511).
func UnsupportedVersion() *kmsg.ApiVersionsResponse {
	itself := kmsg.NewApiVersionsResponseApiKey()
	itself.ApiKey, itself.MaxVersion = apiVersions, known().highest[apiVersions]
	r := kmsg.NewPtrApiVersionsResponse()
	r.ErrorCode, r.ApiKeys = unsupportedVersion, []kmsg.ApiVersionsResponseApiKey{itself}
	return r
}

// DecodeRequest reads the body of a request; byte slices in it alias p.
func DecodeRequest(h Header, p []byte) (kmsg.Request, error) {
	if err := checkShape(h.Key, h.Version, p, true); err != nil {
		return nil, err
	}
	r := kmsg.RequestForKey(h.Key)
	r.SetVersion(h.Version)
	if err := r.ReadFrom(p); err != nil {
		return nil, fmt.Errorf("%s version %d cannot be read: %w", kmsg.NameForKey(h.Key), h.Version, err)
	}
	return r, nil
}

// AppendRequest appends a whole frame: length, header (as it came) and body.
func AppendRequest(dst, header []byte, r kmsg.Request) []byte {
	return finish(r.AppendTo(append(start(dst), header...)), len(dst))
}

// DecodeResponse reads a response's frame (without its length) and tells how long its header is; byte slices in it alias p.
func DecodeResponse(key, version int16, p []byte) (r kmsg.Response, header int, err error) {
	header, err = responseHeader(key, version, p)
	if err != nil {
		return nil, 0, err
	}
	body := p[header:]
	if key == apiVersions && len(body) >= 2 && int16At(body, 0) == unsupportedVersion {
		version = 0
	}
	if err := checkShape(key, version, body, false); err != nil {
		return nil, 0, err
	}
	r = kmsg.ResponseForKey(key)
	r.SetVersion(version)
	if err := r.ReadFrom(body); err != nil {
		return nil, 0, fmt.Errorf("the response to %s version %d cannot be read: %w", kmsg.NameForKey(key), version, err)
	}
	return r, header, nil
}

// Tagged tells whether the body of a response's frame (without its length) has tagged fields, or bytes that are of no field.
//
// Errors: those of DecodeResponse for a frame that it would refuse by its shape.
func Tagged(key, version int16, p []byte) (bool, error) {
	header, err := responseHeader(key, version, p)
	if err != nil {
		return false, err
	}
	c, err := walk(key, version, p[header:], false)
	if err != nil {
		return false, err
	}
	return c.tagged || len(c.rest) > 0, nil
}

// AppendResponse appends a whole frame: length, header (as it came) and body.
func AppendResponse(dst, header []byte, r kmsg.Response) []byte {
	return finish(r.AppendTo(append(start(dst), header...)), len(dst))
}

// AppendAnswer appends a whole frame that no broker has sent.
func AppendAnswer(dst []byte, correlationID int32, r kmsg.Response) []byte {
	header := binary.BigEndian.AppendUint32(nil, uint32(correlationID)) // #nosec G115 -- signed on the wire
	if r.IsFlexible() && r.Key() != apiVersions {
		header = append(header, 0) // no tagged fields
	}
	return AppendResponse(dst, header, r)
}

func start(dst []byte) []byte { return append(dst, 0, 0, 0, 0) }

func finish(frame []byte, at int) []byte {
	binary.BigEndian.PutUint32(frame[at:], uint32(len(frame)-at-4)) // #nosec G115 -- frames are bounded
	return frame
}
