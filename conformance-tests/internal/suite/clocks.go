package suite

import (
	"errors"
	"fmt"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/pki"
)

// clockFaults put the clocks of the clients an hour ahead or behind, and back. Leases are not counted on them: with nobody to renew
// them they end when they would have ended. The time of a certificate is: one that is not valid by the client's clock is refused for as
// long as that is wrong.
func clockFaults() []disturbance {
	all := []disturbance{
		{name: "clock-an-hour-ahead", effect: goesOn, begin: clocks(time.Hour), end: rightClocks},
		{name: "clock-an-hour-behind", effect: goesOn, begin: clocks(-time.Hour), end: rightClocks},
		{
			name: "clock-an-hour-ahead-of-leases-that-go-on", effect: goesOn, outlives: true,
			begin: both(clocks(time.Hour), stopScripted), end: both(rightClocks, restartScripted),
		},
		{
			name: "clock-an-hour-behind-leases-that-end", begin: both(clocks(-time.Hour), stopScripted),
			end: both(rightClocks, restartScripted),
		},
		{name: "clock-after-the-certificate", begin: both(clocks(time.Hour), shows(pki.Old)), end: both(rightClocks, shows(pki.Sound))},
		{name: "clock-before-the-certificate", begin: both(clocks(-time.Hour), shows(pki.New)), end: both(rightClocks, shows(pki.Sound))},
	}
	for i := range all {
		all[i].clocks, all[i].settings = true, patientWithBrokers
	}
	return all
}

// patientWithBrokers: Kafka's producer in Java counts this time on the wall clock, two minutes by default, and gives up what is
// under way when that jumps. That is no word of an SDK.
func patientWithBrokers(*Run) map[string]string {
	return map[string]string{"delivery.timeout.ms": "7500000"}
}

func both(first, second func(*underLoad) error) func(*underLoad) error {
	return func(u *underLoad) error { return errors.Join(first(u), second(u)) }
}

func clocks(ahead time.Duration) func(*underLoad) error {
	return func(u *underLoad) error { return u.setClocks(ahead) }
}

func rightClocks(u *underLoad) error { return errors.Join(u.felt(), u.setClocks(0)) }

func shows(valid pki.Validity) func(*underLoad) error {
	return func(u *underLoad) error { return u.Service.Show(valid) }
}

// withClocks is the run on the drivers whose clocks can be set; that the others' cannot is a result too.
func (r *Run) withClocks(name string) *Run {
	able := *r
	able.Drivers = nil
	for _, d := range r.Drivers {
		if err := d.hasClock(); err != nil {
			r.skipOne("faults", name, d, err)
		} else {
			able.Drivers = append(able.Drivers, d)
		}
	}
	return &able
}

func (d *Driver) hasClock() error {
	if d.Clock == nil {
		return errors.New("no library for the clocks of drivers: --clock, see make faults")
	}
	_, there, err := d.Clock.Told()
	if err == nil && !there {
		err = errors.New("the driver does not load the library for its clock: it is no program that takes the time from the C library")
	}
	return err
}

func (u *underLoad) setClocks(ahead time.Duration) error {
	u.ahead = ahead
	for _, d := range u.Drivers {
		if err := d.Clock.Set(ahead); err != nil {
			return err
		}
	}
	return nil
}

// felt fails if a driver did not read its clock while that was wrong: then the case would show nothing.
func (u *underLoad) felt() error {
	for _, d := range u.Drivers {
		told, _, err := d.Clock.Told()
		if err != nil {
			return err
		}
		if told != u.ahead {
			return fmt.Errorf("%s did not see the clock that is wrong by %s", d.Label, u.ahead)
		}
	}
	return nil
}
