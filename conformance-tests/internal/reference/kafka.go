package reference

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
)

var codecs = map[string]kgo.CompressionCodec{
	"": kgo.NoCompression(), "none": kgo.NoCompression(), "gzip": kgo.GzipCompression(),
	"snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

func produce(request driver.Request) (any, error) {
	sdk, err := open(request.Settings)
	if err != nil {
		return nil, err
	}
	defer sdk.keys.close()
	client, err := newProducer(request.Settings)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	if request.Transaction != "" {
		if err := client.BeginTransaction(); err != nil {
			return nil, err
		}
	}
	results := sendAll(client, sdk, request)
	if request.Transaction != "" {
		commit := kgo.TransactionEndTry(request.Transaction == "commit")
		if err := client.EndTransaction(context.Background(), commit); err != nil {
			return nil, err
		}
	}
	return map[string]any{"results": results}, nil
}

func newProducer(settings map[string]string) (*kgo.Client, error) {
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(settings["bootstrap.servers"], ",")...),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(codecs[settings["compression.type"]]),
		kgo.ProducerBatchMaxBytes(8 << 20), kgo.MaxProduceRequestsInflightPerBroker(1),
	}
	if id := settings["transactional.id"]; id != "" {
		options = append(options, kgo.TransactionalID(id))
	}
	return kgo.NewClient(options...)
}

func sendAll(client *kgo.Client, sdk *sdk, request driver.Request) []driver.Outcome {
	results := make([]driver.Outcome, len(request.Records))
	for i, record := range request.Records {
		value, err := sdk.encrypt(request.Topic, record.Value)
		if err != nil {
			results[i].Error = asError(err)
			continue
		}
		client.Produce(context.Background(), kafkaRecord(request.Topic, record, value), func(sent *kgo.Record, err error) {
			results[i].Offset = sent.Offset
			if err != nil {
				results[i].Error = asError(err)
			}
		})
	}
	if err := client.Flush(context.Background()); err != nil {
		results[0].Error = asError(err)
	}
	return results
}

func kafkaRecord(topic string, record driver.Record, value []byte) *kgo.Record {
	sent := &kgo.Record{Topic: topic, Partition: record.Partition, Key: record.Key, Value: value}
	for _, header := range record.Headers {
		sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
	}
	return sent
}

func consume(request driver.Request) (any, error) {
	sdk, err := open(request.Settings)
	if err != nil {
		return nil, err
	}
	defer sdk.keys.close()
	client, err := newConsumer(request)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	records := []driver.Record{}
	ctx, cancel := context.WithTimeout(context.Background(), time.Duration(request.TimeoutMillis)*time.Millisecond)
	defer cancel()
	for len(records) < request.Count && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(read *kgo.Record) {
			records = append(records, readRecord(sdk, read))
		})
	}
	return map[string]any{"records": records}, nil
}

func newConsumer(request driver.Request) (*kgo.Client, error) {
	isolation := kgo.ReadUncommitted()
	if request.Settings["isolation.level"] == "read_committed" {
		isolation = kgo.ReadCommitted()
	}
	seeds := kgo.SeedBrokers(strings.Split(request.Settings["bootstrap.servers"], ",")...)
	client, err := kgo.NewClient(seeds, kgo.FetchIsolationLevel(isolation))
	if err != nil {
		return nil, err
	}
	topics, err := kadm.NewClient(client).ListTopics(context.Background(), request.Topic)
	if err == nil {
		err = topics.Error()
	}
	if err != nil {
		client.Close()
		return nil, fmt.Errorf("topic %s: %w", request.Topic, err)
	}
	start := map[int32]kgo.Offset{}
	for partition := range topics[request.Topic].Partitions {
		start[partition] = kgo.NewOffset().AtStart()
	}
	client.AddConsumePartitions(map[string]map[int32]kgo.Offset{request.Topic: start})
	return client, nil
}

func readRecord(sdk *sdk, read *kgo.Record) driver.Record {
	record := driver.Record{Partition: read.Partition, Offset: read.Offset, Key: read.Key}
	for _, header := range read.Headers {
		record.Headers = append(record.Headers, driver.Header{Name: header.Key, Value: header.Value})
	}
	value, err := sdk.decrypt(read.Topic, read.Value, driver.Key(read.Key))
	if err != nil {
		record.Error = asError(err)
	}
	record.Value = value
	return record
}
