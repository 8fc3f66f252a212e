package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/environment"
)

const (
	matrixPartitions = 3
	// What fits into max.message.bytes of a default broker with an envelope around it and room for the batch's header.
	largestValue = 1<<20 - 60 - 200
)

var matrixCodecs = []string{"none", "gzip", "snappy", "lz4", "zstd"}

// written is what one driver wrote: the topic, and what every consumer must read, by partition and offset.
type written struct {
	by      *Driver
	topic   string
	records map[[2]int64]driver.Record
	failure error
}

func runMatrix(r *Run) error {
	broker, err := r.Environment.Broker()
	if err != nil {
		return err
	}
	service, err := r.Environment.KeyService()
	if err != nil {
		return err
	}
	for _, producer := range r.Drivers {
		r.Progress("matrix: %s writes %d records", producer.Label, r.Records)
		w := r.write(producer, broker, service)
		for _, consumer := range r.Drivers {
			r.check("matrix", "reads-"+producer.Label, consumer, nil, func() error {
				return r.readAll(consumer, w, broker, service)
			})
		}
	}
	return nil
}

func kafkaSettings(broker *environment.Broker, cipherlane map[string]string, more ...string) map[string]string {
	settings := maps.Clone(cipherlane)
	settings["bootstrap.servers"] = broker.Bootstrap
	for i := 0; i+1 < len(more); i += 2 {
		settings[more[i]] = more[i+1]
	}
	return settings
}

// part is some of a driver's records, written in one way.
type part struct {
	needs       string // a feature of the driver
	settings    []string
	transaction string
	shape       func([]byte) []byte // of values
}

// parts are every codec of Kafka, then what only some drivers can. Nobody must read what was aborted.
func parts(topic string) []part {
	var all []part
	for _, codec := range matrixCodecs {
		all = append(all, part{settings: []string{"acks", "all", "compression.type", codec}})
	}
	return append(all,
		part{needs: "transactions", settings: []string{"transactional.id", topic}, transaction: "commit"},
		part{needs: "transactions", settings: []string{"transactional.id", topic}, transaction: "abort"},
		part{needs: "record-key", settings: []string{"cipherlane.record.key.topics", "matrix-*"}},
		part{needs: "compression", settings: []string{"cipherlane.compression.topics", topic, "cipherlane.compression.min.bytes", "10"}, shape: repetitive},
	)
}

// repetitive makes a value that zstd shrinks, of the same size.
func repetitive(value []byte) []byte {
	for i := range value {
		value[i] = value[i%3]
	}
	return value
}

// write has a driver produce its records, part by part.
func (r *Run) write(d *Driver, broker *environment.Broker, service *environment.KeyService) written {
	random := r.random("matrix " + d.Label)
	w := written{by: d, topic: fmt.Sprintf("matrix-%s-%d", d.Label, random.Uint32()), records: map[[2]int64]driver.Record{}}
	if w.failure = broker.CreateTopic(w.topic, matrixPartitions); w.failure != nil {
		return w
	}
	all := slices.DeleteFunc(parts(w.topic), func(p part) bool { return p.needs != "" && !d.Knows(p.needs) })
	for i, p := range all {
		settings := kafkaSettings(broker, service.Settings("producer"), append(p.settings, "max.request.size", "8000000")...)
		records := matrixRecords(random, (r.Records+len(all)-1)/len(all), i)
		for j := range records {
			if p.shape != nil && records[j].Value != nil {
				records[j].Value = p.shape(records[j].Value)
			}
		}
		if err := r.writePart(&w, settings, p.transaction, records); err != nil {
			w.failure = errors.Join(w.failure, fmt.Errorf("%v: %w", p.settings, err))
		}
	}
	return w
}

func (r *Run) writePart(w *written, settings map[string]string, transaction string, records []driver.Record) error {
	var out struct{ Results []driver.Outcome }
	request := driver.Request{Op: driver.OpProduce, Settings: settings, Topic: w.topic, Records: records, Transaction: transaction}
	if err := w.by.Call(request, &out); err != nil {
		return err
	}
	if len(out.Results) != len(records) {
		return fmt.Errorf("%d results for %d records", len(out.Results), len(records))
	}
	for i, result := range out.Results {
		if result.Error != nil {
			return fmt.Errorf("record %d (%d bytes): %w", i, len(records[i].Value), result.Error)
		}
		if transaction != "abort" {
			w.records[[2]int64{int64(records[i].Partition), result.Offset}] = records[i]
		}
	}
	return nil
}

// matrixRecords draws records; the first ones have the sizes where things go wrong.
func matrixRecords(random *rand.Rand, count, part int) []driver.Record {
	sizes := []int{-1, 0, 1, 15, 16, 17, 1027, 64 << 10}
	if part == 0 {
		sizes = append(sizes, largestValue)
	}
	records := make([]driver.Record, count)
	for i := range records {
		size := random.IntN(400)
		if i < len(sizes) {
			size = sizes[i]
		}
		records[i] = matrixRecord(random, size)
	}
	return records
}

func matrixRecord(random *rand.Rand, size int) driver.Record {
	record := driver.Record{Partition: int32(random.IntN(matrixPartitions))}
	if size >= 0 {
		record.Value = randomBytes(random, size)
	}
	if random.IntN(4) > 0 {
		record.Key = randomBytes(random, random.IntN(20))
	}
	for n := range random.IntN(3) {
		header := driver.Header{Name: fmt.Sprintf("h%d", n)}
		if random.IntN(4) > 0 {
			header.Value = randomBytes(random, random.IntN(12))
		}
		record.Headers = append(record.Headers, header)
	}
	return record
}

func (r *Run) readAll(d *Driver, w written, broker *environment.Broker, service *environment.KeyService) error {
	if w.failure != nil {
		return fmt.Errorf("%s did not write: %w", w.by.Label, w.failure)
	}
	settings := kafkaSettings(broker, service.Settings("consumer"), "isolation.level", "read_committed")
	read, err := consume(d, settings, w.topic, len(w.records))
	if err != nil {
		return err
	}
	if len(read) != len(w.records) {
		return fmt.Errorf("%d records written, %d read", len(w.records), len(read))
	}
	unread := maps.Clone(w.records)
	for _, record := range read {
		if err := compareRecords(unread, record); err != nil {
			return fmt.Errorf("partition %d, offset %d: %w", record.Partition, record.Offset, err)
		}
	}
	return nil
}

func consume(d *Driver, settings map[string]string, topic string, count int) ([]driver.Record, error) {
	var out struct{ Records []driver.Record }
	err := d.Call(driver.Request{Op: driver.OpConsume, Settings: settings, Topic: topic, Count: count, TimeoutMillis: 30_000}, &out)
	return out.Records, err
}

// compareRecords takes the record off those that are still to be read.
func compareRecords(want map[[2]int64]driver.Record, got driver.Record) error {
	place := [2]int64{int64(got.Partition), got.Offset}
	expected, there := want[place]
	switch {
	case !there:
		return errors.New("nobody committed a record here, or it was read twice")
	case got.Error != nil:
		return got.Error
	case !same(got.Value, expected.Value):
		return fmt.Errorf("value: expected %s, got %s", short(expected.Value), short(got.Value))
	case !same(got.Key, expected.Key):
		return fmt.Errorf("key: expected %s, got %s", short(expected.Key), short(got.Key))
	case headersText(got.Headers) != headersText(expected.Headers):
		return fmt.Errorf("headers: expected %s, got %s", headersText(expected.Headers), headersText(got.Headers))
	}
	delete(want, place)
	return nil
}

func same(a, b []byte) bool { return slices.Equal(a, b) && (a == nil) == (b == nil) }

func headersText(headers []driver.Header) string {
	var text strings.Builder
	for _, header := range headers {
		encoded, err := json.Marshal(header)
		if err != nil {
			return err.Error()
		}
		text.Write(encoded)
	}
	return text.String()
}
