package reference

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
)

// load is the operation of that name: records at a steady rate, whatever happens meanwhile.
func load(request driver.Request) (any, error) {
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
	var results []*driver.Outcome
	begun := time.Now()
	for time.Since(begun) < time.Duration(request.TimeoutMillis)*time.Millisecond && exists(request.While) {
		value := binary.BigEndian.AppendUint64(append([]byte{}, prefix...), uint64(len(results)))
		result := &driver.Outcome{Millis: time.Since(begun).Milliseconds()}
		results = append(results, result)
		sendOne(client, sdk, request.Topic, value, result)
		time.Sleep(time.Second / time.Duration(request.Rate))
	}
	return map[string]any{"results": results}, client.Flush(context.Background())
}

// begin reads what every value starts with, and opens what the settings say.
func begin(request driver.Request) (prefix driver.Bytes, opened *sdk, err error) {
	if err := json.Unmarshal(request.Value, &prefix); err != nil {
		return nil, nil, err
	}
	opened, err = open(request.Settings)
	return prefix, opened, err
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func sendOne(client *kgo.Client, sdk *sdk, topic string, value []byte, result *driver.Outcome) {
	envelope, err := sdk.encrypt(topic, value)
	if err != nil {
		result.Error = asError(err)
		return
	}
	client.Produce(context.Background(), &kgo.Record{Topic: topic, Value: envelope}, func(sent *kgo.Record, err error) {
		result.Offset = sent.Offset
		if err != nil {
			result.Error = asError(err)
		}
	})
}
