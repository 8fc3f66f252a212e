package suite

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/environment"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/reference"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/scripted"
)

const (
	actionsTopic  = "actions"
	errorHeader   = "cipherlane.error"
	failureAction = "cipherlane.failure.action"

	unavailableCode = "key-service-unavailable"
	actionsDeadline = "3000"
)

// mixed is a record of a topic that holds good ones and others.
type mixed struct {
	driver.Record

	plaintext []byte // of a good one
	code      string // "ok", or why it is not readable
	outage    bool   // that concerns more than this record
}

// actionsTest is one failure action on one driver.
type actionsTest struct {
	*Run

	d       *Driver
	broker  *environment.Broker
	records []mixed
	action  string
	outage  bool // nobody gives keys
}

// runActions has every driver read one topic under each failure action, also while no key is to be had.
func runActions(r *Run) error {
	broker, err := r.Environment.Broker()
	if err != nil {
		return err
	}
	key, err := newDataKey(r.random("actions"))
	if err != nil {
		return err
	}
	records, err := r.mixedRecords(key)
	if err != nil {
		return err
	}
	topic := r.actionsTopic()
	if err := writeMixed(broker, topic, records); err != nil {
		return err
	}
	for _, d := range r.Drivers {
		r.Progress("actions: %s", d.Label)
		for _, action := range []string{"fail", "skip", "dead-letter", "mark"} {
			r.Service.Play(holder(actionsTopic, key))
			t := &actionsTest{r, d, broker, records, action, false}
			r.check("actions", action, d, []string{"failure-actions"}, t.run)
			r.Service.Play(always(scripted.Problem(http.StatusServiceUnavailable, unavailableCode)))
			t = &actionsTest{r, d, broker, unserved(records), action, true}
			r.check("actions", action+"-without-keys", d, []string{"failure-actions"}, t.run)
		}
	}
	return nil
}

// unserved are the records as they are met while no key is to be had: only those that need none are never readable.
func unserved(records []mixed) []mixed {
	all := slices.Clone(records)
	for i, record := range all {
		if record.Value != nil && record.code != envelopeTooShort && record.code != unsupportedVersion {
			all[i].code, all[i].outage = unavailableCode, true
		}
	}
	return all
}

func (r *Run) actionsTopic() string { return fmt.Sprintf("%s-%d", actionsTopic, r.Seed%1_000_000) }

// mixedRecords draws records; each but the null one has a header of its own and one that claims to be the client's word.
func (r *Run) mixedRecords(key dataKey) ([]mixed, error) {
	random := r.random("actions records")
	var all []mixed
	for _, kind := range []struct {
		code   string
		change func([]byte) []byte
	}{
		{"ok", nil},
		{authenticationFailed, flipped(-1)},
		{"ok", nil},
		{envelopeTooShort, func(envelope []byte) []byte { return envelope[:30] }},
		{unsupportedVersion, flipped(2)},
		{plaintextRejected, func([]byte) []byte { return []byte("injected") }},
		{"key-unknown", flipped(4)},
		{authenticationFailed, flipped(60)},
		{"ok", nil},
	} {
		plaintext := randomBytes(random, 40)
		value, err := reference.Seal(key.key, actionsTopic, nil, false, plaintext)
		if err != nil {
			return nil, err
		}
		if kind.change != nil {
			value = kind.change(value)
		}
		record := driver.Record{Offset: int64(len(all)), Key: randomBytes(random, 8), Value: value, Headers: []driver.Header{
			{Name: "own", Value: randomBytes(random, 5)}, {Name: errorHeader, Value: []byte("forged")}, {Name: "own", Value: nil},
		}}
		all = append(all, mixed{record, plaintext, kind.code, false})
	}
	return append(all, mixed{Record: driver.Record{Offset: int64(len(all))}, code: "ok"}), nil
}

// flipped changes a bit of the byte at a place, counted from the end if that is negative.
func flipped(place int) func([]byte) []byte {
	return func(envelope []byte) []byte {
		changed := slices.Clone(envelope)
		changed[(place+len(changed))%len(changed)] ^= 1
		return changed
	}
}

func writeMixed(broker *environment.Broker, topic string, records []mixed) error {
	if err := broker.CreateTopic(topic, 1); err != nil {
		return err
	}
	var all []*kgo.Record
	for _, record := range records {
		sent := &kgo.Record{Topic: topic, Key: record.Key, Value: record.Value}
		for _, header := range record.Headers {
			sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		all = append(all, sent)
	}
	return broker.Write(context.Background(), all)
}

func (t *actionsTest) run() error {
	deadLetters := fmt.Sprintf("%s-%s-dead-%t", t.actionsTopic(), t.d.Label, t.outage)
	if t.action == "dead-letter" {
		if err := t.broker.CreateTopic(deadLetters, 1); err != nil {
			return err
		}
	}
	var want, dead []driver.Record
	for _, record := range t.records {
		if t.leavesOut(record) {
			dead = append(dead, t.deadLetter(record))
		} else {
			want = append(want, t.shown(record))
		}
	}
	patience := leakPatience // a busy machine must not look like an outage
	if t.outage {
		patience = actionsDeadline
	}
	settings := kafkaSettings(t.broker, t.settings(failureAction, t.action, "cipherlane.dead.letter.topic", deadLetters,
		"cipherlane.keys.deadline.ms", patience, "cipherlane.keyservice.request.timeout.ms", leakPatience))
	got, err := consume(t.d, settings, t.actionsTopic(), len(want))
	if err != nil {
		return err
	}
	if err := sameRecords(want, got); err != nil || t.action != "dead-letter" {
		return err
	}
	got, err = t.readDead(deadLetters)
	if err != nil {
		return err
	}
	if err := sameRecords(dead, got); err != nil {
		return fmt.Errorf("dead letters: %w", err)
	}
	return nil
}

// leavesOut says whether the application must not get the record.
func (t *actionsTest) leavesOut(record mixed) bool {
	return record.code != "ok" && !record.outage && (t.action == "skip" || t.action == "dead-letter")
}

// shown is what the application must get.
func (t *actionsTest) shown(record mixed) driver.Record {
	shown := record.Record
	marks := t.action == "mark"
	if marks {
		shown.Headers = withoutWord(shown.Headers)
	}
	switch {
	case record.code == "ok":
		shown.Value = record.plaintext
	case marks && !record.outage && record.code != plaintextRejected:
		shown.Headers = append(shown.Headers, driver.Header{Name: errorHeader, Value: []byte(record.code)})
	default:
		shown.Value, shown.Error = nil, &driver.Error{Code: record.code}
	}
	return shown
}

// withoutWord leaves out what only the client may say.
func withoutWord(headers []driver.Header) []driver.Header {
	return slices.DeleteFunc(slices.Clone(headers), func(h driver.Header) bool { return h.Name == errorHeader })
}

// deadLetter is what must stand in the topic for such records; kids where the envelope has one.
func (t *actionsTest) deadLetter(record mixed) driver.Record {
	letter := record.Record
	word := func(name, value string) {
		letter.Headers = append(letter.Headers, driver.Header{Name: errorHeader + name, Value: []byte(value)})
	}
	letter.Headers = withoutWord(letter.Headers)
	word("", record.code)
	word(".topic", t.actionsTopic())
	word(".partition", "0")
	word(".offset", strconv.FormatInt(record.Offset, 10))
	if slices.Contains([]string{authenticationFailed, "key-unknown"}, record.code) {
		word(".kid", hex.EncodeToString(record.Value[4:20]))
	}
	return letter
}

// readDead reads the whole topic as it stands on the broker; the offsets are those of what was put aside.
func (t *actionsTest) readDead(topic string) ([]driver.Record, error) {
	read, err := t.broker.ReadAll(context.Background(), topic)
	if err != nil {
		return nil, err
	}
	var records []driver.Record
	for _, record := range read {
		letter := driver.Record{Key: record.Key, Value: record.Value}
		for _, header := range record.Headers {
			letter.Headers = append(letter.Headers, driver.Header{Name: header.Key, Value: header.Value})
			if header.Key == errorHeader+".offset" {
				letter.Offset, err = strconv.ParseInt(string(header.Value), 10, 64)
			}
		}
		if err != nil {
			return nil, err
		}
		records = append(records, letter)
	}
	return records, nil
}

func sameRecords(want, got []driver.Record) error {
	for i, record := range got {
		if i >= len(want) {
			return fmt.Errorf("offset %d: one record too many", record.Offset)
		}
		if err := sameRecord(want[i], record); err != nil {
			return fmt.Errorf("offset %d: %w", want[i].Offset, err)
		}
	}
	if len(got) < len(want) {
		return fmt.Errorf("%d records, expected %d", len(got), len(want))
	}
	return nil
}

func sameRecord(want, got driver.Record) error {
	if got.Offset != want.Offset {
		return fmt.Errorf("got that of offset %d", got.Offset)
	}
	code := "ok"
	if want.Error != nil {
		code = want.Error.Code
	}
	if err := verdict(code, want.Value, true, got.Value, asError(got.Error)); err != nil {
		return err
	}
	if !same(got.Key, want.Key) {
		return errors.New("another key")
	}
	if headersText(got.Headers) != headersText(want.Headers) {
		return fmt.Errorf("headers: expected %s, got %s", headersText(want.Headers), headersText(got.Headers))
	}
	return nil
}
