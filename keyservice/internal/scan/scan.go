// Package scan reads topics from their beginning to their end as of now and counts what is in them: encrypted under which key,
// plaintext, null, unreadable. It commits nothing and writes nothing.
package scan

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/decryptor"
	"github.com/cipherlane/cipherlane/keyservice/internal/envelope"
)

// Options say what to read and how.
type Options struct {
	Topics       []string
	Kafka        []kgo.Opt
	KeyService   KeyService    // nil: decryption is not tried
	MaxPlaintext int           // bytes
	Stall        time.Duration // give up when nothing arrives for so long
	Progress     func(done, all int64)
}

type scanner struct {
	o      Options
	client *kgo.Client
	parts  map[place]*part
	rings  map[string]*keyring
	open   int // partitions not yet at their end
	done   int64
	all    int64
}

type place struct {
	topic     string
	partition int32
}

type part struct {
	*Partition
	ended bool
}

// Run scans. Transactions that were aborted are read too: their records are on the disks of the brokers.
func Run(ctx context.Context, o Options) (*Report, error) {
	client, err := kgo.NewClient(append(slices.Clone(o.Kafka), kgo.KeepControlRecords(), kgo.FetchIsolationLevel(kgo.ReadUncommitted()))...)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	s := &scanner{o: o, client: client, parts: map[place]*part{}, rings: map[string]*keyring{}}
	defer s.wipe()
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	for s.open > 0 {
		if err := s.poll(ctx); err != nil {
			return nil, err
		}
	}
	return s.report(), nil
}

func (s *scanner) wipe() {
	for _, ring := range s.rings {
		ring.wipe()
	}
}

// begin asks where partitions begin and end.
func (s *scanner) begin(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.o.Stall)
	defer cancel()
	admin := kadm.NewClient(s.client)
	begins, err := admin.ListStartOffsets(ctx, s.o.Topics...)
	if err == nil {
		err = begins.Error()
	}
	if err != nil {
		return fmt.Errorf("where the topics begin: %w", err)
	}
	ends, err := admin.ListEndOffsets(ctx, s.o.Topics...)
	if err == nil {
		err = ends.Error()
	}
	if err != nil {
		return fmt.Errorf("where the topics end: %w", err)
	}
	consume := map[string]map[int32]kgo.Offset{}
	ends.Each(func(end kadm.ListedOffset) {
		begin, _ := begins.Lookup(end.Topic, end.Partition)
		s.add(consume, begin.Offset, end)
	})
	s.client.AddConsumePartitions(consume)
	return nil
}

func (s *scanner) add(consume map[string]map[int32]kgo.Offset, begin int64, end kadm.ListedOffset) {
	p := &part{Partition: &Partition{Topic: end.Topic, Partition: end.Partition, Begin: begin, End: end.Offset, Counts: newCounts()}}
	s.parts[place{end.Topic, end.Partition}] = p
	if s.o.KeyService != nil && s.rings[end.Topic] == nil {
		s.rings[end.Topic] = &keyring{service: s.o.KeyService, topic: end.Topic, keys: map[datakey.ID]*given{}}
	}
	if p.ended = begin >= end.Offset; p.ended {
		return
	}
	s.open++
	s.all += end.Offset - begin
	if consume[end.Topic] == nil {
		consume[end.Topic] = map[int32]kgo.Offset{}
	}
	consume[end.Topic][end.Partition] = kgo.NewOffset().At(begin)
}

func (s *scanner) poll(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, s.o.Stall)
	defer cancel()
	fetches := s.client.PollFetches(waiting)
	if failed := fetches.Errors(); len(failed) > 0 {
		return s.failure(ctx, failed[0])
	}
	if err := s.askForKeys(ctx, fetches); err != nil {
		return err
	}
	fetches.EachPartition(func(f kgo.FetchTopicPartition) { s.take(s.parts[place{f.Topic, f.Partition}], f.Records) })
	if s.o.Progress != nil {
		s.o.Progress(s.done, s.all)
	}
	return nil
}

func (s *scanner) failure(ctx context.Context, e kgo.FetchError) error {
	switch {
	case ctx.Err() != nil:
		return errors.New("interrupted: what was not read is not known")
	case errors.Is(e.Err, context.DeadlineExceeded):
		return fmt.Errorf("nothing arrived for %s, and %d partitions are not read to their end", s.o.Stall, s.open)
	default:
		return fmt.Errorf("read %s-%d: %w", e.Topic, e.Partition, e.Err)
	}
}

// askForKeys asks for all keys that a fetch needs, together for each topic.
func (s *scanner) askForKeys(ctx context.Context, fetches kgo.Fetches) error {
	if s.o.KeyService == nil {
		return nil
	}
	wanted := map[string]map[datakey.ID]bool{}
	fetches.EachRecord(func(r *kgo.Record) {
		if !envelope.Is(r.Value) || r.Attrs.IsControl() {
			return
		}
		if e, err := envelope.Parse(r.Value); err == nil {
			if wanted[r.Topic] == nil {
				wanted[r.Topic] = map[datakey.ID]bool{}
			}
			wanted[r.Topic][e.Kid] = true
		}
	})
	for _, topic := range slices.Sorted(maps.Keys(wanted)) {
		if err := s.rings[topic].want(ctx, wanted[topic]); err != nil {
			return err
		}
	}
	return nil
}

func (s *scanner) take(p *part, records []*kgo.Record) {
	for _, r := range records {
		if p.ended || r.Offset >= p.End {
			break
		}
		s.count(p.Partition, r)
	}
	if p.ended || len(records) == 0 {
		return
	}
	last := records[len(records)-1].Offset
	s.done += min(last, p.End-1) - max(records[0].Offset, p.Begin) + 1
	if last >= p.End-1 {
		p.ended = true
		s.open--
		s.client.PauseFetchPartitions(map[string][]int32{p.Topic: {p.Partition.Partition}})
	}
}

func (s *scanner) count(p *Partition, r *kgo.Record) {
	if r.Attrs.IsControl() {
		return
	}
	p.Records++
	switch {
	case r.Value == nil:
		p.Null++
		return
	case !envelope.Is(r.Value):
		p.Plaintext++
		if p.FirstPlaintext == nil {
			p.FirstPlaintext = &r.Offset
		}
		return
	}
	e, err := envelope.Parse(r.Value)
	if err != nil {
		p.bad(r.Offset, err)
		return
	}
	p.Encrypted++
	p.Kids[e.Kid.String()]++
	if ring := s.rings[r.Topic]; ring != nil {
		s.decrypt(p, ring, r)
	}
}

func (s *scanner) decrypt(p *Partition, ring *keyring, r *kgo.Record) {
	reader := &decryptor.Reader{Keys: ring.get, MaxPlaintext: s.o.MaxPlaintext}
	plaintext, err := reader.Read(r.Value, decryptor.RecordKey{Known: true, Bytes: r.Key})
	clear(plaintext)
	if err != nil {
		p.bad(r.Offset, err)
		return
	}
	p.Decrypted++
}

func (s *scanner) report() *Report {
	r := &Report{Tried: s.o.KeyService != nil, Total: newCounts(), KeyCodes: map[string]string{}}
	for _, p := range s.parts {
		r.Partitions = append(r.Partitions, p.Partition)
		r.Total.add(p.Counts)
	}
	slices.SortFunc(r.Partitions, func(a, b *Partition) int {
		if a.Topic != b.Topic {
			return map[bool]int{true: -1, false: 1}[a.Topic < b.Topic]
		}
		return int(a.Partition - b.Partition)
	})
	for _, ring := range s.rings {
		for kid, k := range ring.keys {
			if k.err != nil {
				r.KeyCodes[kid.String()] = string(codeOf(k.err))
			}
		}
	}
	return r
}
