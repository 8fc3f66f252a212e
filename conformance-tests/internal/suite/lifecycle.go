package suite

import (
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/environment"
)

// Policy is that of the real key service in every suite. The topics of this suite have short leases, and each driver is a principal
// of its own there, so that it can be revoked alone.
const Policy = `version: 1
topics: [{topics: ["*"], mode: encrypt}]
grants:
  - principals: ["spiffe://dev.cipherlane/life-*"]
    actions: [encrypt, decrypt]
    topics: ["life-*"]
    lease: {expires_in: 3s, refresh_in: 1s}
  - principals: ["spiffe://dev.cipherlane/life-*"]
    actions: [encrypt, decrypt]
    topics: ["faults-*", "soak-*"]
    lease: {expires_in: 2s, refresh_in: 1s}
  - {principals: ["spiffe://dev.cipherlane/producer"], actions: [encrypt], topics: ["*"]}
  - {principals: ["spiffe://dev.cipherlane/consumer"], actions: [decrypt], topics: ["*"]}
  - {principals: ["spiffe://dev.cipherlane/operator"], actions: [rotate, destroy], scopes: ["*"]}
  - {principals: ["spiffe://dev.cipherlane/operator"], actions: [admin, revoke]}
`

const (
	leaseEnd = 3 * time.Second
	// A change reaches a client when it renews, and other parts of the service within two seconds.
	reaches = 5 * time.Second
	often   = 50 * time.Millisecond
)

// Principal is the name under which a driver takes part in the lifecycle suite.
func Principal(label string) string { return "life-" + label }

// life is the suite on one driver.
type life struct {
	*Run

	d       *Driver
	service *environment.KeyService
	topic   string
}

func runLifecycle(r *Run) error {
	service, err := r.Environment.KeyService()
	if err != nil {
		return err
	}
	for _, d := range r.Drivers {
		r.Progress("lifecycle: %s", d.Label)
		l := &life{r, d, service, fmt.Sprintf("life-%s-%d", d.Label, r.Seed%1_000_000)}
		l.check("lifecycle", "rotated-on-demand", d, nil, l.rotated)
		l.check("lifecycle", "rotation-reaches-a-running-writer", d, nil, l.rotationReaches)
		l.check("lifecycle", "lease-ends-while-nobody-answers", d, nil, l.leaseEnds)
		l.check("lifecycle", "revoked-and-taken-back", d, nil, l.revoked)
		l.check("lifecycle", "destroyed", d, nil, l.destroyed)
	}
	return nil
}

func (l *life) open() error {
	settings := l.service.Settings(Principal(l.d.Label))
	maps.Copy(settings, map[string]string{
		"cipherlane.keyservice.request.timeout.ms": "1500", "cipherlane.keys.deadline.ms": "2500", "cipherlane.keys.retry.backoff.ms": "200",
	})
	return l.d.openWith(settings)
}

// write gives an envelope and its kid.
func (l *life) write(text string) (envelope []byte, kid string, err error) {
	envelope, err = encrypt(l.d, l.topic, []byte(text))
	if err != nil {
		return nil, "", err
	}
	if len(envelope) != len(text)+60 {
		return nil, "", fmt.Errorf("not an envelope: %s", short(envelope))
	}
	return envelope, hex.EncodeToString(envelope[4:20]), nil
}

func (l *life) reads(envelope []byte, text string) error {
	got, err := decrypt(l.d, l.topic, envelope, nil)
	return verdict("ok", []byte(text), true, got, err)
}

func (l *life) rotate() (kid string, err error) {
	var answer struct{ Kid string }
	err = l.service.Operate(http.MethodPost, "/v1/scopes/"+l.topic+"/rotate", nil, &answer)
	return answer.Kid, err
}

// eventually repeats a test until it passes or a change must have reached the client.
func eventually(test func() error) error {
	until := time.Now().Add(reaches)
	for {
		err := test()
		if err == nil || time.Now().After(until) {
			return err
		}
		time.Sleep(often)
	}
}

func (l *life) rotated() error {
	if err := l.open(); err != nil {
		return err
	}
	before, old, err := l.write("before")
	if err != nil {
		return err
	}
	made, err := l.rotate()
	if err != nil {
		return err
	}
	if err := l.d.Call(driver.Request{Op: driver.OpRotate}, nil); err != nil {
		return err
	}
	after, kid, err := l.write("after")
	if err != nil {
		return err
	}
	if kid != made || kid == old {
		return fmt.Errorf("written under %s, the current key is %s, the one before %s", kid, made, old)
	}
	return errors.Join(l.reads(before, "before"), l.reads(after, "after"))
}

func (l *life) rotationReaches() error {
	if err := l.open(); err != nil {
		return err
	}
	if _, _, err := l.write("x"); err != nil {
		return err
	}
	made, err := l.rotate()
	if err != nil {
		return err
	}
	return eventually(func() error {
		_, kid, err := l.write("x")
		if err == nil && kid != made {
			err = fmt.Errorf("still written under %s, the current key is %s", kid, made)
		}
		return err
	})
}

// leaseEnds: with nobody answering, what is leased works to its end and no longer; when somebody answers again, so does the SDK.
func (l *life) leaseEnds() error {
	if err := l.open(); err != nil {
		return err
	}
	envelope, _, err := l.write("x")
	if err != nil {
		return err
	}
	if err := l.reads(envelope, "x"); err != nil {
		return err
	}
	if err := l.service.Pause(); err != nil {
		return err
	}
	_, _, early := l.write("x")
	time.Sleep(leaseEnd)
	_, _, late := l.write("x")
	_, lateRead := decrypt(l.d, l.topic, envelope, nil)
	if err := l.service.Resume(); err != nil {
		return err
	}
	if early != nil {
		return fmt.Errorf("refused while the lease held: %w", early)
	}
	if err := errors.Join(unavailable("written", late), unavailable("read", lateRead)); err != nil {
		return err
	}
	return eventually(func() error {
		_, _, err := l.write("x")
		return errors.Join(err, l.reads(envelope, "x"))
	})
}

func unavailable(what string, err error) error {
	code, broken := codeOf(err)
	if broken != nil || slices.Contains([]string{"lease-expired", "key-service-unavailable"}, code) {
		return broken
	}
	return fmt.Errorf("%s after the lease's end: %s", what, code)
}

func (l *life) revoked() error {
	if err := l.open(); err != nil {
		return err
	}
	envelope, _, err := l.write("x")
	if err != nil {
		return err
	}
	var revocation struct{ ID string }
	body := map[string]string{"principal": "spiffe://dev.cipherlane/" + Principal(l.d.Label), "reason": "conformance"}
	if err := l.service.Operate(http.MethodPost, "/v1/revocations", body, &revocation); err != nil {
		return err
	}
	refused := eventually(func() error {
		_, err := encrypt(l.d, l.topic, []byte("x"))
		if err := verdict("not-authorized", nil, false, nil, err); err != nil {
			return fmt.Errorf("writing: %w", err)
		}
		_, err = decrypt(l.d, l.topic, envelope, nil)
		return verdict("not-authorized", nil, false, nil, err)
	})
	if err := l.service.Operate(http.MethodDelete, "/v1/revocations/"+revocation.ID, nil, nil); err != nil {
		return err
	}
	return errors.Join(refused, eventually(func() error {
		_, _, err := l.write("x")
		return errors.Join(err, l.reads(envelope, "x"))
	}))
}

func (l *life) destroyed() error {
	if err := l.open(); err != nil {
		return err
	}
	envelope, kid, err := l.write("lost for good")
	if err != nil {
		return err
	}
	if _, err := l.rotate(); err != nil {
		return err
	}
	if err := l.destroy(kid); err != nil {
		return err
	}
	if err := l.d.Call(driver.Request{Op: driver.OpRotate}, nil); err != nil {
		return err
	}
	after, _, err := l.write("after")
	if err != nil {
		return err
	}
	return errors.Join(l.reads(after, "after"), eventually(func() error {
		got, err := decrypt(l.d, l.topic, envelope, nil)
		return verdict("key-destroyed", nil, false, got, err)
	}))
}

// destroy takes both steps.
func (l *life) destroy(kid string) error {
	path := "/v1/scopes/" + l.topic + "/destroy"
	body := map[string]any{"kids": []string{kid}}
	var first struct{ Confirm string }
	if err := l.service.Operate(http.MethodPost, path, body, &first); err != nil {
		return err
	}
	body["confirm"] = first.Confirm
	return l.service.Operate(http.MethodPost, path, body, nil)
}
