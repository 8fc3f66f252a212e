package suite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
)

// judge is the oracle: what was acknowledged is there, once and right, and nothing else is; the fault was felt, or not; and
// writing went on soon after it was over, which is told in time since the drivers were told to write.
func (u *underLoad) judge(d *Driver, got loaded, over time.Duration) error {
	if got.err != nil {
		return got.err
	}
	acknowledged, refused, err := sorted(got.results)
	if err == nil {
		err = u.judgeRefusals(got.results, refused, over)
	}
	if err != nil {
		return err
	}
	return u.compare(d, acknowledged)
}

// sorted gives the numbers of the records that were acknowledged, by offset, and when those that were not were tried.
func sorted(results []driver.Outcome) (acknowledged map[int64]uint64, refused []time.Duration, err error) {
	acknowledged = map[int64]uint64{}
	for number, result := range results {
		if result.Error == nil {
			acknowledged[result.Offset] = uint64(number)
			continue
		}
		if _, broken := codeOf(result.Error); broken != nil {
			return nil, nil, fmt.Errorf("record %d: %w", number, broken)
		}
		refused = append(refused, time.Duration(result.Millis)*time.Millisecond)
	}
	if len(results) == 0 {
		return nil, nil, errors.New("nothing was written at all")
	}
	if len(acknowledged)+len(refused) != len(results) {
		return nil, nil, errors.New("two records have one offset")
	}
	return acknowledged, refused, nil
}

func (u *underLoad) judgeRefusals(results []driver.Outcome, refused []time.Duration, over time.Duration) error {
	if len(refused) == 0 {
		if u.effect == refuses {
			return errors.New("no record was refused: leases were used beyond their end, or the fault was not felt")
		}
		return nil
	}
	last := refused[len(refused)-1]
	switch {
	case u.effect == goesOn:
		return fmt.Errorf("%d of %d records were refused, the last at %s with %w", len(refused), len(results), last, lastError(results))
	case results[len(results)-1].Error != nil:
		return fmt.Errorf("refused to the end: %w", lastError(results))
	case last > over+loadRecovery+loadSlack:
		return fmt.Errorf("still refused %s after the fault: %w", last-over, lastError(results))
	}
	return nil
}

func lastError(results []driver.Outcome) error {
	for _, result := range slices.Backward(results) {
		if result.Error != nil {
			return result.Error
		}
	}
	return nil
}

func (u *underLoad) compare(d *Driver, acknowledged map[int64]uint64) error {
	end, err := u.broker.EndOffset(context.Background(), u.topicOf(d))
	if err != nil {
		return err
	}
	if end != int64(len(acknowledged)) {
		return fmt.Errorf("%d records acknowledged, %d on the broker", len(acknowledged), end)
	}
	records, err := consume(d, kafkaSettings(u.broker, u.reading(d)), u.topicOf(d), len(acknowledged))
	if err != nil {
		return err
	}
	if len(records) != len(acknowledged) {
		return fmt.Errorf("%d records acknowledged, %d read", len(acknowledged), len(records))
	}
	return u.compareValues(records, acknowledged)
}

func (u *underLoad) compareValues(records []driver.Record, acknowledged map[int64]uint64) error {
	readable := 0
	for _, record := range records {
		if u.lost && record.Error != nil && record.Error.Code == "key-destroyed" {
			continue
		}
		readable++
		want := binary.BigEndian.AppendUint64(append([]byte{}, u.canary...), acknowledged[record.Offset])
		if err := verdict("ok", want, true, record.Value, asError(record.Error)); err != nil {
			return fmt.Errorf("offset %d: %w", record.Offset, err)
		}
	}
	if u.lost && (readable == 0 || readable == len(records)) {
		return fmt.Errorf("%d of %d records can be read: none that was written under the destroyed key may be, and all others", readable, len(records))
	}
	return nil
}
