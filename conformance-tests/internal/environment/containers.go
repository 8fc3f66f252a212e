package environment

// Kafka and Vault as containers, where a Docker engine answers. The folder with Kafka's log is mounted, so that a suite can search
// it; hence the engine has to be on this machine.

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/testcontainers/testcontainers-go"
	"github.com/testcontainers/testcontainers-go/log"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	kafkaImage = "apache/kafka:4.3.1"
	vaultImage = "hashicorp/vault:1.21.1"

	engineTimeout = 10 * time.Second
	engineSchema  = "unix://"
	logTail       = 4000 // bytes of what a container printed, in an error

	mounted = "/cipherlane" // where the container finds the broker's folder
	// The same port inside and outside, so that one address is right for clients and for the broker itself.
	brokerProperties = `process.roles=broker,controller
node.id=1
listeners=PLAINTEXT://0.0.0.0:%[1]d,CONTROLLER://127.0.0.1:%[2]d
advertised.listeners=PLAINTEXT://127.0.0.1:%[1]d
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=PLAINTEXT
controller.listener.names=CONTROLLER
controller.quorum.voters=1@127.0.0.1:%[2]d
log.dirs=` + mounted + `/log
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
`
	// The name of the cluster is as long as Kafka wants it: 22 characters.
	brokerCommand = "/opt/kafka/bin/kafka-storage.sh format --cluster-id cipherlane-conformance --config " + mounted + "/broker.properties && " +
		"exec /opt/kafka/bin/kafka-server-start.sh " + mounted + "/broker.properties"
)

// Engine says why there is no Docker engine that these tests can use, or nil.
func Engine() error {
	named := os.Getenv("DOCKER_HOST")
	if named != "" && !strings.HasPrefix(named, engineSchema) {
		// Its value may hold a password.
		return errors.New("DOCKER_HOST does not begin with " + engineSchema + ": the engine has to be on this machine, for the folder with Kafka's log is mounted")
	}
	log.SetDefault(log.NewNoopLogger())
	answered := make(chan error, 1)
	go func() { answered <- askEngine(named) }()
	select {
	case err := <-answered:
		if err != nil {
			return fmt.Errorf("no Docker engine answers (DOCKER_HOST=%q): %w", named, err)
		}
		return nil
	case <-time.After(engineTimeout): // a socket that nobody serves
		return fmt.Errorf("no Docker engine answers within %s (DOCKER_HOST=%q)", engineTimeout, named)
	}
}

// askEngine asks the engine that is named, and not another one that can be found in its place.
func askEngine(named string) error {
	provider, err := testcontainers.NewDockerProvider()
	if err != nil {
		return err
	}
	defer func() { _ = provider.Close() }()
	if host := provider.Client().DaemonHost(); !strings.HasPrefix(host, engineSchema) || (named != "" && host != named) {
		return fmt.Errorf("another one, %q, does", host)
	}
	return provider.Health(context.Background())
}

// contained is a container that runs; its port is that of the host, on the loopback.
type contained struct {
	testcontainers.Container

	image string
}

// runContainer starts a program in an image as the user of this process, who then owns all that it writes.
func runContainer(image string, port int, environment map[string]string, mount, entrypoint string, command ...string) (*contained, error) {
	inside, err := network.ParsePort(fmt.Sprintf("%d/tcp", port))
	if err != nil {
		return nil, err
	}
	c := &contained{image: image}
	made, err := testcontainers.Run(context.Background(), image,
		testcontainers.WithEntrypoint(entrypoint), testcontainers.WithCmd(command...), testcontainers.WithEnv(environment),
		testcontainers.WithExposedPorts(inside.String()),
		testcontainers.WithConfigModifier(func(config *container.Config) {
			config.User = fmt.Sprintf("%d:%d", os.Getuid(), os.Getgid())
		}),
		testcontainers.WithHostConfigModifier(func(host *container.HostConfig) {
			host.PortBindings = network.PortMap{inside: {{HostIP: netip.MustParseAddr("127.0.0.1"), HostPort: strconv.Itoa(port)}}}
			if mount != "" {
				host.Binds = []string{mount + ":" + mounted}
			}
		}))
	if made != nil {
		c.Container = made
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("container of %s: %w", image, err)
	}
	return c, nil
}

// await repeats what must come to pass while the container runs; the error has the end of what it printed.
func (c *contained) await(test func() error) error {
	for until := time.Now().Add(startTimeout); ; time.Sleep(100 * time.Millisecond) {
		err := test()
		if err == nil {
			return nil
		}
		state, broken := c.State(context.Background())
		if broken != nil || !state.Running || time.Now().After(until) {
			return fmt.Errorf("container of %s did not get ready: %w\n%s", c.image, errors.Join(err, broken), c.printed())
		}
	}
}

func (c *contained) printed() []byte {
	logs, err := c.Logs(context.Background())
	if err != nil {
		return []byte(err.Error())
	}
	defer func() { _ = logs.Close() }()
	text, _ := io.ReadAll(logs)
	return text[max(0, len(text)-logTail):]
}

// pid is that of its first process, on the host.
func (c *contained) pid() (int, error) {
	state, err := c.State(context.Background())
	if err != nil {
		return 0, err
	}
	return state.Pid, nil
}

func (c *contained) close() {
	if c.Container != nil {
		_ = c.Terminate(context.Background())
	}
}

// startContainedBroker runs one broker with its files in the folder, which it makes.
func startContainedBroker(folder string) (*Broker, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	controller, err := freePort()
	if err != nil {
		return nil, err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(folder, "broker.properties"), fmt.Appendf(nil, brokerProperties, port, controller), 0o600); err != nil {
		return nil, err
	}
	b := &Broker{Bootstrap: fmt.Sprintf("127.0.0.1:%d", port), LogDir: filepath.Join(folder, "log")}
	environment := map[string]string{"LOG_DIR": mounted + "/printed", "KAFKA_HEAP_OPTS": "-Xmx512m"}
	if b.container, err = runContainer(kafkaImage, port, environment, folder, "sh", "-c", brokerCommand); err != nil {
		return nil, err
	}
	err = b.container.await(b.ping)
	if err == nil {
		b.containerPID, err = b.container.pid()
	}
	if err != nil {
		b.container.close()
		return nil, err
	}
	return b, nil
}

func (b *Broker) ping() error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...))
	if err != nil {
		return err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(context.Background(), operatorTimeout)
	defer cancel()
	return client.Ping(ctx)
}

// startContainedVault runs one in memory, with the engines of the key service.
func startContainedVault() (*Vault, error) {
	port, err := freePort()
	if err != nil {
		return nil, err
	}
	v := &Vault{nodes: []*vaultNode{{address: fmt.Sprintf("http://127.0.0.1:%d", port)}}, root: rand.Text()}
	// By the environment, so that the token does not stand among the processes of the host.
	environment := map[string]string{"VAULT_DEV_ROOT_TOKEN_ID": v.root, "VAULT_DEV_LISTEN_ADDRESS": fmt.Sprintf("0.0.0.0:%d", port), "HOME": "/tmp"}
	if v.container, err = runContainer(vaultImage, port, environment, "", "vault", "server", "-dev"); err != nil {
		return nil, err
	}
	// In this mode the engine at secret/ is mounted last.
	if err := v.container.await(func() error { return v.call(v.nodes[0], http.MethodGet, "sys/mounts/secret", nil, nil) }); err != nil {
		v.container.close()
		return nil, err
	}
	if err := v.mount(); err != nil {
		v.container.close()
		return nil, err
	}
	return v, nil
}
