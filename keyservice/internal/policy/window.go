// Weekly time windows. They are of a time zone: 08:00 stays 08:00 when its clocks change.

package policy

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
	_ "time/tzdata" // a container of one file has no time zones of its own

	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// window is open from a time of day to another one, on some days of the week. When the second is not later than the
// first, it is of the next day; the days are those on which the window begins.
type window struct {
	days     [7]bool // by time.Weekday
	from, to int     // minutes since midnight; to at most 24:00
	zone     *time.Location
}

// endAt gives the end of the window if it is open at a time.
func (w window) endAt(now time.Time) (time.Time, bool) {
	local := now.In(w.zone)
	for offset := range 2 { // it began today, or yesterday
		day := time.Date(local.Year(), local.Month(), local.Day()-offset, 12, 0, 0, 0, w.zone)
		if !w.days[day.Weekday()] {
			continue
		}
		start, end := w.at(day, w.from), w.at(day, w.to)
		if w.to <= w.from {
			end = w.at(day, w.to+minutesOfDay)
		}
		if !now.Before(start) && now.Before(end) {
			return end, true
		}
	}
	return time.Time{}, false
}

const minutesOfDay = 24 * 60

// at gives a time of day. One that the clocks leave out is as much later.
func (w window) at(day time.Time, minutes int) time.Time {
	return time.Date(day.Year(), day.Month(), day.Day(), 0, minutes, 0, 0, w.zone)
}

// openUntil gives the end of the time in which some window is open without a gap, or now when none is. More than a week
// is not looked ahead: no lease is longer.
func openUntil(windows []window, now time.Time) time.Time {
	end := now
	for end.Sub(now) <= MaxLease {
		next := end
		for _, w := range windows {
			if e, open := w.endAt(end); open && e.After(next) {
				next = e
			}
		}
		if next.Equal(end) {
			break
		}
		end = next
	}
	return end
}

var dayNames = map[string]time.Weekday{
	"mon": time.Monday, "tue": time.Tuesday, "wed": time.Wednesday, "thu": time.Thursday, "fri": time.Friday,
	"sat": time.Saturday, "sun": time.Sunday,
}

func readWindow(n node) (window, error) {
	var w window
	err := n.Members(fields{
		"days":      strictyaml.Must(field(w.readDays)),
		"from":      strictyaml.Must(timeOfDay(&w.from, minutesOfDay-1)),
		"to":        strictyaml.Must(timeOfDay(&w.to, minutesOfDay)),
		"time_zone": strictyaml.Must(field(w.readZone)),
	})
	if err == nil && w.from == w.to {
		err = n.Errorf("the window begins and ends at the same time: for a whole day, write from: \"00:00\" and to: \"24:00\"")
	}
	return w, err
}

func (w *window) readDays(n node) error {
	_, err := n.List(func(item node) error {
		text, err := item.Text()
		if err != nil {
			return err
		}
		day, known := dayNames[text]
		if !known || w.days[day] {
			return item.Errorf("%q is not one of mon, tue, wed, thu, fri, sat, sun, or is given twice", text)
		}
		w.days[day] = true
		return nil
	})
	return err
}

// readZone takes names of the IANA database, not the machine's own zone: all replicas must agree.
func (w *window) readZone(n node) error {
	text, err := n.Text()
	if err != nil {
		return err
	}
	if w.zone, err = time.LoadLocation(text); err != nil || text == "Local" {
		return n.Errorf("%q is not a time zone such as Europe/Berlin or UTC", text)
	}
	return nil
}

var timeOfDayForm = regexp.MustCompile(`^(\d{2}):([0-5]\d)$`)

func timeOfDay(target *int, last int) strictyaml.Field {
	return field(func(n node) error {
		const form = "expected a time of day such as \"08:00\", in quotes"
		text, err := n.Text()
		if err != nil {
			return n.Errorf(form)
		}
		parts := timeOfDayForm.FindStringSubmatch(text)
		if parts == nil {
			return n.Errorf("%q: %s", text, form)
		}
		hours, _ := strconv.Atoi(parts[1]) // digits, as the form says
		minutes, _ := strconv.Atoi(parts[2])
		if *target = hours*60 + minutes; *target > last {
			return n.Errorf("%q is later than %s", text, fmt.Sprintf("%02d:%02d", last/60, last%60))
		}
		return nil
	})
}
