// Reading requests: strictly [CL-API-015].

package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/service"
)

// Limits of spec/limits.md.
const (
	maxBody  = 64 << 10
	maxDepth = 8
	maxKids  = 1000
	maxUsage = 1<<53 - 1
	// maxDetail bounds what of a caller's mistake is shown back.
	maxDetail = 300
)

// Members are pointers so that a missing one differs from an empty one.
type encryptionKeyRequest struct {
	Topic *string       `json:"topic"`
	Usage *usageRequest `json:"usage"`
}

type usageRequest struct {
	Kid     *string      `json:"kid"`
	Records *wholeNumber `json:"records"`
	Bytes   *wholeNumber `json:"bytes"`
}

type decryptionKeysRequest struct {
	Topic *string   `json:"topic"`
	Kids  *[]string `json:"kids"`
}

// readBody gives the body of a request of JSON. An empty one is allowed only if optional.
func readBody(w http.ResponseWriter, r *http.Request, optional bool) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &tooLarge):
		return nil, refusal.New(refusal.RequestTooLarge, "the body has more than %d bytes", maxBody)
	case err != nil:
		return nil, refusal.Because(refusal.RequestInvalid, err, "the body could not be read to its end")
	case len(body) == 0 && optional:
		return nil, nil
	}
	return body, checkContentType(r)
}

// errMediaType is told apart from other invalid requests by its status only.
var errMediaType = errors.New("unsupported media type")

func checkContentType(r *http.Request) error {
	values := r.Header.Values("Content-Type")
	if len(values) != 1 || r.Header.Get("Content-Encoding") != "" {
		return mediaTypeError()
	}
	kind, parameters, err := mime.ParseMediaType(values[0])
	if err != nil || kind != "application/json" {
		return mediaTypeError()
	}
	charset, given := parameters["charset"]
	if len(parameters) > 1 || len(parameters) == 1 && !given || given && !strings.EqualFold(charset, "utf-8") {
		return mediaTypeError()
	}
	return nil
}

func mediaTypeError() error {
	return refusal.Because(refusal.RequestInvalid, errMediaType, "the body must be Content-Type: application/json, in UTF-8, not encoded otherwise")
}

// decode reads exactly one JSON value into v: known members only, none twice, no null.
func decode(body []byte, v any) error {
	if err := checkTokens(body); err != nil {
		return err
	}
	if err := json.Unmarshal(body, v, json.RejectUnknownMembers(true)); err != nil {
		return invalid("the body is not what this call takes: %s", brief(err))
	}
	return nil
}

// checkTokens refuses deep nesting, and null, which the decoder would take for a member that is not there.
func checkTokens(body []byte) error {
	decoder := jsontext.NewDecoder(bytes.NewReader(body))
	for {
		token, err := decoder.ReadToken()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return invalid("the body is not JSON: %s", brief(err))
		case decoder.StackDepth() > maxDepth:
			return invalid("the body is nested deeper than %d levels", maxDepth)
		case token.Kind() == 'n':
			return invalid("null is not a value that this call takes")
		}
	}
}

func brief(err error) string {
	text := strings.ToValidUTF8(err.Error(), "?")
	if len(text) > maxDetail {
		text = strings.ToValidUTF8(text[:maxDetail], "") + "..."
	}
	return text
}

func (r *encryptionKeyRequest) check() (string, *service.Usage, error) {
	topic, err := checkTopic(r.Topic)
	if err != nil || r.Usage == nil {
		return topic, nil, err
	}
	usage, err := r.Usage.check()
	return topic, usage, err
}

func (u *usageRequest) check() (*service.Usage, error) {
	if u.Kid == nil || u.Records == nil || u.Bytes == nil {
		return nil, invalid("usage needs kid, records and bytes")
	}
	kid, err := datakey.ParseID(*u.Kid)
	if err != nil {
		return nil, invalid("usage.kid: %v", err)
	}
	for _, count := range []wholeNumber{*u.Records, *u.Bytes} {
		if count < 0 || count > maxUsage {
			return nil, invalid("usage counts are 0 to 2^53 - 1")
		}
	}
	return &service.Usage{Kid: kid, Records: int64(*u.Records), Bytes: int64(*u.Bytes)}, nil
}

func (r *decryptionKeysRequest) check() (string, []datakey.ID, error) {
	topic, err := checkTopic(r.Topic)
	if err != nil {
		return topic, nil, err
	}
	if r.Kids == nil {
		return topic, nil, invalid("kids is missing")
	}
	kids, err := parseKids(*r.Kids)
	return topic, kids, err
}

func parseKids(texts []string) ([]datakey.ID, error) {
	if len(texts) > maxKids {
		return nil, invalid("%d kids are more than %d: ask in several calls", len(texts), maxKids)
	}
	kids := make([]datakey.ID, 0, len(texts))
	seen := make(map[datakey.ID]bool, len(texts))
	for i, text := range texts {
		kid, err := datakey.ParseID(text)
		if err != nil {
			return nil, invalid("kids[%d]: %v", i, err)
		}
		if seen[kid] {
			return nil, invalid("kids[%d]: %s is asked for twice", i, kid)
		}
		seen[kid] = true
		kids = append(kids, kid)
	}
	return kids, nil
}

// checkTopic gives the name also when it is invalid: for the audit log, which shortens it.
func checkTopic(topic *string) (string, error) {
	if topic == nil {
		return "", invalid("topic is missing")
	}
	if err := names.CheckTopic(*topic); err != nil {
		return *topic, refusal.New(refusal.TopicInvalid, "not a Kafka topic name: %v", err)
	}
	return *topic, nil
}

func invalid(format string, args ...any) error {
	return refusal.New(refusal.RequestInvalid, "%s", fmt.Sprintf(format, args...))
}
