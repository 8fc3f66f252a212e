// A program on librdkafka by way of confluent-kafka-go, which knows nothing of Cipherlane: go-client BOOTSTRAP TOPIC COUNT sends COUNT values, reads
// them back, and compares.
package main

import (
	"fmt"
	"log"
	"os"
	"strconv"
	"time"

	"github.com/confluentinc/confluent-kafka-go/v2/kafka"
)

func value(number int) string { return fmt.Sprintf("canary-go %d", number) }

func produce(bootstrap, topic string, count int) {
	producer, err := kafka.NewProducer(&kafka.ConfigMap{"bootstrap.servers": bootstrap})
	if err != nil {
		log.Fatal(err)
	}
	defer producer.Close()
	reports := make(chan kafka.Event, count)
	for number := range count {
		message := &kafka.Message{TopicPartition: kafka.TopicPartition{Topic: &topic}, Value: []byte(value(number))}
		if err := producer.Produce(message, reports); err != nil {
			log.Fatal(err)
		}
	}
	for number := range count {
		report := (<-reports).(*kafka.Message)
		if report.TopicPartition.Error != nil || string(report.Value) != value(number) {
			log.Fatalf("report %d: %v, %q", number, report.TopicPartition.Error, report.Value)
		}
	}
}

func consume(bootstrap, topic string, count int) {
	consumer, err := kafka.NewConsumer(&kafka.ConfigMap{"bootstrap.servers": bootstrap, "group.id": "go"})
	if err != nil {
		log.Fatal(err)
	}
	defer consumer.Close()
	if err := consumer.Assign([]kafka.TopicPartition{{Topic: &topic, Offset: kafka.OffsetBeginning}}); err != nil {
		log.Fatal(err)
	}
	for number := range count {
		message, err := consumer.ReadMessage(30 * time.Second)
		if err != nil || string(message.Value) != value(number) {
			log.Fatalf("message %d: %v, %v", number, err, message)
		}
	}
}

func main() {
	count, err := strconv.Atoi(os.Args[3])
	if err != nil {
		log.Fatal(err)
	}
	produce(os.Args[1], os.Args[2], count)
	consume(os.Args[1], os.Args[2], count)
}
