package reference

import (
	"bytes"
	"context"
	"encoding/binary"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
)

// Looking for a file takes longer than writing a record.
const lookEvery = 100

func soakWrite(request driver.Request) (any, error) {
	prefix, sdk, err := begin(request)
	if err != nil {
		return nil, err
	}
	defer sdk.keys.close()
	client, err := newProducer(request.Settings)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	numbers := driver.Numbers{Reasons: map[string]int64{}}
	written, begun := uint64(0), time.Now()
	for tried := 0; tried%lookEvery != 0 || exists(request.While); tried++ {
		envelope, err := sdk.encrypt(request.Topic, binary.BigEndian.AppendUint64(bytes.Clone(prefix), written))
		if err == nil {
			written++
			client.Produce(context.Background(), &kgo.Record{Topic: request.Topic, Value: envelope}, count(&numbers))
		} else {
			numbers.Refused++
			numbers.Reasons[asError(err).Code]++
		}
		time.Sleep(time.Until(begun.Add(time.Duration(tried) * time.Second / time.Duration(request.Rate))))
	}
	return &numbers, client.Flush(context.Background())
}

func count(numbers *driver.Numbers) func(*kgo.Record, error) {
	return func(_ *kgo.Record, err error) {
		if err == nil {
			atomic.AddInt64(&numbers.Acknowledged, 1)
		} else {
			atomic.AddInt64(&numbers.Failed, 1)
		}
	}
}

func soakRead(request driver.Request) (any, error) {
	prefix, sdk, err := begin(request)
	if err != nil {
		return nil, err
	}
	defer sdk.keys.close()
	client, err := newConsumer(request)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	numbers := driver.Numbers{Reasons: map[string]int64{}}
	for exists(request.While) {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second/2)
		client.PollFetches(ctx).EachRecord(func(read *kgo.Record) {
			expected := binary.BigEndian.AppendUint64(bytes.Clone(prefix), uint64(numbers.Read+numbers.Wrong+numbers.Unreadable))
			value, err := sdk.decrypt(read.Topic, read.Value, driver.Key(read.Key))
			switch {
			case err != nil:
				numbers.Unreadable++
				numbers.Reasons[asError(err).Code]++
			case bytes.Equal(value, expected):
				numbers.Read++
			default:
				numbers.Wrong++
			}
		})
		cancel()
	}
	return numbers, nil
}
