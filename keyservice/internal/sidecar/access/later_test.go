package access

import (
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// [CL-SDC-113] While it is not known what a client may, nothing passes, and every answer tells it to try again: none says that it may not.
func TestUnsaid(t *testing.T) {
	for key, r := range rules {
		if r.judge == nil || slices.Contains(filters, key) {
			continue
		}
		code := later(key)
		if err := kerr.TypedErrorForCode(code); err == nil || !err.Retriable {
			t.Errorf("%s: code %d is not retriable", kmsg.NameForKey(int16(key)), code)
		}
		p := passWith(unsaid)
		p.later = code
		v := r.judge(p, filled(int16(key), kmsg.RequestForKey(int16(key)).MaxVersion()))
		if len(p.denied) == 0 || len(p.used) > 0 {
			t.Errorf("%s: %v is used, %v denied", kmsg.NameForKey(int16(key)), p.used, p.denied)
		}
		if key == kmsg.Metadata || key == kmsg.ShareFetch { // these go on, with nothing left
			continue
		}
		if v.answer == nil || !holds(reflect.ValueOf(v.answer).Elem(), int64(code)) || holds(reflect.ValueOf(v.answer).Elem(), 29, 30, 31, 53) {
			t.Errorf("%s: %+v", kmsg.NameForKey(int16(key)), v.answer)
		}
	}
}

func TestWhatPassesOff(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, errNobody: false, errors.New("2 decisions for 1 checks"): false,
		refusal.New(refusal.NotAuthorized, "x"): false, refusal.New(refusal.Unauthenticated, "x"): false,
		refusal.New(refusal.Unavailable, "x"): true, refusal.New(refusal.AuditUnavailable, "x"): true, refusal.New(refusal.Internal, "x"): true,
	} {
		if passesOff(err) != want {
			t.Errorf("%v", err)
		}
	}
}
