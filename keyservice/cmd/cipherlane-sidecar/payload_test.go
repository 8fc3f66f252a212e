// Clients without an SDK behind a sidecar that encrypts, and Java's SDK on the other side.

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const claimsPolicy = `version: 1
topics:
  - topics: [claims, answers]
    mode: encrypt
    scope: claims
grants:
  - principals: ["spiffe://dev.cipherlane/producer", "spiffe://dev.cipherlane/consumer"]
    actions: [encrypt, decrypt]
    topics: [claims, answers]
`

// javaTool runs one of Kafka's console tools, with the SDK on its class path.
func javaTool(t *testing.T, input, class string, arguments ...string) string {
	t.Helper()
	lib, err := filepath.Abs("../../../java/benchmarks/target/lib")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lib); err != nil {
		t.Fatal("Kafka's tools and the SDK are missing: run make -C java build")
	}
	cmd := exec.CommandContext(within(t, 2*time.Minute), "java", append([]string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-cp", lib + "/*", class}, arguments...)...)
	cmd.Stdin = strings.NewReader(input)
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v; %s", class, err, said.String())
	}
	return out.String()
}

// properties writes a file of settings for the SDK.
func properties(t *testing.T, s *testservice.KeyService, principal, more string) string {
	t.Helper()
	p, path := s.Principals[principal], filepath.Join(t.TempDir(), "client.properties")
	text := fmt.Sprintf("cipherlane.keyservice.urls=%s\ncipherlane.keyservice.tls.ca=%s\ncipherlane.keyservice.tls.certificate=%s\ncipherlane.keyservice.tls.key=%s\n%s",
		s.URL, s.CA, p.Certificate, p.Key, more)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// encryptingPair is a pair of sidecars of which the client side encrypts, with the key service's own test certificates.
func encryptingPair(t *testing.T, s *testservice.KeyService, brokers string) (clientSide *testservice.Sidecar) {
	t.Helper()
	brokerSide := testservice.StartSidecar(t, fmt.Sprintf(
		"side: broker\nkafka: {listen: '127.0.0.1:0', upstream: %s, brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\ntls: {ca: %s, certificate: %s, key: %s}\n",
		list(brokers), freeRange(t, 2), s.CA, filepath.Join(s.Dir, "server.pem"), filepath.Join(s.Dir, "server-key.pem")))
	own := s.Principals["producer"]
	return testservice.StartSidecar(t, fmt.Sprintf(
		"side: client\nkafka: {listen: '127.0.0.1:0', upstream: ['%s'], brokers: {base_port: %d}}\nadmin_listen: 127.0.0.1:0\ntls: {ca: %s, certificate: %s, key: %s}\npayload: {urls: ['%s'], ca: %s}\n",
		brokerSide.Listeners["kafka"], freeRange(t, 10), s.CA, own.Certificate, own.Key, s.URL, s.CA))
}

// [CL-SDC-100] [CL-SDC-101]
func TestConsoleToolsThroughTheSidecarAndTheSDK(t *testing.T) {
	broker := testservice.RunBroker(t, "--topics", "claims:1,answers:1")
	service := testservice.StartKeyService(t, claimsPolicy)
	sidecar := encryptingPair(t, service, broker.Bootstrap)
	lines := []string{"canary one", "canary two", "", "canary four"}
	javaTool(t, strings.Join(lines, "\n")+"\n", "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", sidecar.Listeners["kafka"], "--topic", "claims")

	consumer := "org.apache.kafka.tools.consumer.ConsoleConsumer"
	reading := []string{"--from-beginning", "--max-messages", "4", "--timeout-ms", "60000", "--topic"}
	sdk := properties(t, service, "consumer", "interceptor.classes=dev.cipherlane.kafka.DecryptingConsumerInterceptor\n"+
		"value.deserializer=org.apache.kafka.common.serialization.ByteArrayDeserializer\nkey.deserializer=org.apache.kafka.common.serialization.ByteArrayDeserializer\n")
	want := strings.Join(lines, "\n") + "\n"
	if got := javaTool(t, "", consumer, slices.Concat([]string{"--bootstrap-server", broker.Bootstrap, "--command-config", sdk}, reading, []string{"claims"})...); got != want {
		t.Errorf("the SDK reads %q, want %q", got, want)
	}

	writing := properties(t, service, "producer", "interceptor.classes=dev.cipherlane.kafka.EncryptingProducerInterceptor\n")
	javaTool(t, want, "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", broker.Bootstrap, "--command-config", writing, "--topic", "answers")
	if got := javaTool(t, "", consumer, slices.Concat([]string{"--bootstrap-server", sidecar.Listeners["kafka"]}, reading, []string{"answers"})...); got != want {
		t.Errorf("through the sidecar one reads %q, want %q", got, want)
	}
	stored := kafkaClient(t, broker.Bootstrap, kgo.ConsumeTopics("claims", "answers"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for value := range consume(t, stored, 8) {
		if !strings.HasPrefix(value, "\xc1\x9e\x01") {
			t.Errorf("the broker has %q", value)
		}
	}
}
