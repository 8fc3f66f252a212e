// How the tool connects to Kafka.

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
)

type kafkaFlags struct {
	Bootstrap    []string `group:"Connection to Kafka" required:"" env:"CIPHERLANE_BOOTSTRAP" placeholder:"HOST:PORT" help:"Brokers to begin with."`
	TLS          bool     `group:"Connection to Kafka" name:"kafka-tls" help:"Use TLS; implied by the next three. It is always verified."`
	CA           string   `group:"Connection to Kafka" name:"kafka-ca" type:"path" placeholder:"FILE" help:"CA of the brokers' certificates, PEM (default: those of the system)."`
	Certificate  string   `group:"Connection to Kafka" name:"kafka-certificate" type:"path" placeholder:"FILE" help:"Client certificate for Kafka, PEM."`
	Key          string   `group:"Connection to Kafka" name:"kafka-key" type:"path" placeholder:"FILE" help:"Its private key, PEM, mode 0600."`
	SASL         string   `group:"Connection to Kafka" name:"kafka-sasl" enum:"plain,scram-sha-256,scram-sha-512," default:"" placeholder:"MECHANISM" help:"plain, scram-sha-256 or scram-sha-512."`
	User         string   `group:"Connection to Kafka" name:"kafka-user" placeholder:"NAME" help:"User for SASL."`
	PasswordFile string   `group:"Connection to Kafka" name:"kafka-password-file" type:"path" placeholder:"FILE" help:"File with the password, mode 0600."`
}

const maxPassword = 4096

// options are those of a client that only reads.
func (k *kafkaFlags) options() ([]kgo.Opt, error) {
	o := []kgo.Opt{kgo.SeedBrokers(k.Bootstrap...), kgo.ClientID("cipherlane")}
	if k.TLS || k.CA != "" || k.Certificate != "" || k.Key != "" {
		cfg, err := operator.TLSConfig(k.CA, k.Certificate, k.Key)
		if err != nil {
			return nil, fmt.Errorf("kafka: %w", err)
		}
		o = append(o, kgo.DialTLSConfig(cfg))
	}
	if k.SASL == "" {
		return o, nil
	}
	mechanism, err := k.mechanism()
	return append(o, kgo.SASL(mechanism)), err
}

func (k *kafkaFlags) mechanism() (sasl.Mechanism, error) {
	if k.User == "" || k.PasswordFile == "" {
		return nil, errors.New("--kafka-sasl needs --kafka-user and --kafka-password-file")
	}
	password, err := files.ReadCredential(k.PasswordFile, maxPassword)
	if err != nil {
		return nil, fmt.Errorf("password for Kafka: %w", err)
	}
	text := strings.TrimRight(string(password), "\r\n")
	switch k.SASL {
	case "plain":
		return plain.Auth{User: k.User, Pass: text}.AsMechanism(), nil
	case "scram-sha-256":
		return scram.Auth{User: k.User, Pass: text}.AsSha256Mechanism(), nil
	default:
		return scram.Auth{User: k.User, Pass: text}.AsSha512Mechanism(), nil
	}
}
