module cipherlane.dev/tests/go-client

go 1.24

require github.com/confluentinc/confluent-kafka-go/v2 v2.0.2
