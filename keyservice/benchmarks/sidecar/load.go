// Many clients in one process: each has connections of its own.

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
)

// runLoad prints "ready" when all clients are connected. Each line of standard input is a run: records, size in bytes, and records a
// second (0: as fast as it goes); each is answered with an outcome.
func runLoad(arguments []string) error {
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	at, topic, count := flags.String("at", "", "host:port"), flags.String("topic", "", "topic"), flags.Int("clients", 1, "clients")
	ca, certificate, key := flags.String("ca", "", "PEM file"), flags.String("certificate", "", "PEM file"), flags.String("key", "", "PEM file")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	// Java's defaults, and acks=1.
	options := []kgo.Opt{
		kgo.SeedBrokers(*at), kgo.DefaultProduceTopic(*topic), kgo.AllowAutoTopicCreation(), kgo.RequiredAcks(kgo.LeaderAck()), kgo.DisableIdempotentWrite(),
		kgo.ProducerBatchMaxBytes(16 << 10), kgo.ProducerLinger(0), kgo.ProducerBatchCompression(kgo.NoCompression()), kgo.MaxProduceRequestsInflightPerBroker(5),
	}
	if *ca != "" {
		config, err := operator.TLSConfig(*ca, *certificate, *key)
		if err != nil {
			return err
		}
		options = append(options, kgo.DialTLSConfig(config))
	}
	clients, err := connect(*count, options)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		var records, size, perSecond int
		if _, err := fmt.Sscan(lines.Text(), &records, &size, &perSecond); err != nil {
			return err
		}
		o, err := produceAll(clients, records, size, perSecond)
		if err != nil {
			return err
		}
		if err := json.NewEncoder(os.Stdout).Encode(o); err != nil {
			return err
		}
	}
	for _, c := range clients {
		c.Close()
	}
	return nil
}

// connect has each client send one record, a few at a time.
func connect(count int, options []kgo.Opt) ([]*kgo.Client, error) {
	clients, failures := make([]*kgo.Client, count), make([]error, count)
	slots := make(chan struct{}, 16)
	var all sync.WaitGroup
	for i := range clients {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			c, err := kgo.NewClient(options...)
			if err == nil {
				err = c.ProduceSync(ctx, kgo.SliceRecord([]byte("hello"))).FirstErr()
			}
			clients[i], failures[i] = c, err
		})
	}
	all.Wait()
	return clients, errors.Join(failures...)
}

// window is how many records of one client may be on their way.
const window = 1024

func produceAll(clients []*kgo.Client, records, size, perSecond int) (outcome, error) {
	value := letters(size)
	times, failures := make([][]time.Duration, len(clients)), make([]error, len(clients))
	begin := time.Now()
	var all sync.WaitGroup
	for i, c := range clients {
		all.Go(func() { times[i], failures[i] = produceSome(c, records/len(clients), value, perSecond/len(clients)) })
	}
	all.Wait()
	o := outcome{Seconds: time.Since(begin).Seconds()}
	sorted := slices.Concat(times...)
	slices.Sort(sorted)
	if len(sorted) > 0 {
		millis := func(part float64) float64 {
			return float64(sorted[int(part*float64(len(sorted)-1))].Microseconds()) / 1000
		}
		o.P50, o.P99 = millis(0.5), millis(0.99)
	}
	return o, errors.Join(failures...)
}

// produceSome gives the time that each eighth record took, or each where the rate is given.
func produceSome(c *kgo.Client, records int, value []byte, perSecond int) ([]time.Duration, error) {
	var mu sync.Mutex
	var times []time.Duration
	var failure error
	slots, begin := make(chan struct{}, window), time.Now()
	for i := range records {
		if perSecond > 0 {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Second / time.Duration(perSecond))))
		}
		slots <- struct{}{}
		sent := time.Now()
		c.Produce(context.Background(), &kgo.Record{Value: value}, func(_ *kgo.Record, err error) {
			<-slots
			if err == nil && perSecond == 0 && i%8 != 0 {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			times, failure = append(times, time.Since(sent)), errors.Join(failure, err)
		})
	}
	err := c.Flush(context.Background())
	mu.Lock()
	defer mu.Unlock()
	return times, errors.Join(failure, err)
}
