package environment

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// maxMessage is what the largest records of the suites need.
const maxMessage = "8388608"

// Broker is a KRaft broker that runs, or a cluster of them.
type Broker struct {
	Bootstrap string `json:"bootstrap"`
	LogDir    string `json:"log_dir"`
	Nodes     []Node `json:"nodes"` // of a cluster

	process      *child
	container    *contained // in place of the process
	containerPID int
}

// Node is one broker of a cluster.
type Node struct {
	ID        int32  `json:"node"`
	Bootstrap string `json:"bootstrap"`
	PID       int    `json:"pid"`
	Error     string `json:"error"`
}

func startBroker(log, jar string, nodes int) (*Broker, error) {
	b := &Broker{}
	args := []string{"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", jar, "--until-stdin-closes"}
	if nodes > 1 {
		args = append(args, "--cluster", strconv.Itoa(nodes))
	}
	process, err := start(log, b, "java", args...)
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	b.process = process
	return b, nil
}

// CreateTopic makes a topic of one partition that is ready for use, or of more. Each has a copy on every broker; the first
// node leads partition 0.
func (b *Broker) CreateTopic(name string, partitions int32) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...))
	if err != nil {
		return err
	}
	defer client.Close()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, -1, -1
	topic.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "max.message.bytes", Value: new(maxMessage)}}
	for partition := range partitions {
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, kmsg.CreateTopicsRequestTopicReplicaAssignment{
			Partition: partition, Replicas: b.replicas(int(partition)),
		})
	}
	request := kmsg.NewPtrCreateTopicsRequest()
	request.Topics, request.TimeoutMillis = []kmsg.CreateTopicsRequestTopic{topic}, 30_000
	response, err := request.RequestWith(context.Background(), client)
	if err != nil {
		return err
	}
	if code := response.Topics[0].ErrorCode; code != 0 {
		return fmt.Errorf("create topic %s: Kafka's error %d", name, code)
	}
	return b.awaitTopic(client, name)
}

// awaitTopic waits until the brokers serve what the controller made.
func (b *Broker) awaitTopic(client *kgo.Client, name string) error {
	for until := time.Now().Add(startTimeout); ; time.Sleep(50 * time.Millisecond) {
		ends, err := kadm.NewClient(client).ListEndOffsets(context.Background(), name)
		if err == nil {
			err = ends.Error()
		}
		if err == nil || time.Now().After(until) {
			return err
		}
	}
}

// replicas are all nodes, beginning with another one for each partition.
func (b *Broker) replicas(first int) []int32 {
	if len(b.Nodes) == 0 {
		return []int32{1}
	}
	var all []int32
	for i := range b.Nodes {
		all = append(all, b.Nodes[(first+i)%len(b.Nodes)].ID)
	}
	return all
}

// Seeds are the addresses of the brokers.
func (b *Broker) Seeds() []string { return strings.Split(b.Bootstrap, ",") }

// EndOffset is where the next record of partition 0 would go.
func (b *Broker) EndOffset(ctx context.Context, topic string) (int64, error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...))
	if err != nil {
		return 0, err
	}
	defer client.Close()
	ends, err := kadm.NewClient(client).ListEndOffsets(ctx, topic)
	if err != nil {
		return 0, err
	}
	end, _ := ends.Lookup(topic, 0)
	return end.Offset, end.Err
}

// Write writes records as they are, to partition 0.
func (b *Broker) Write(ctx context.Context, records []*kgo.Record) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...))
	if err != nil {
		return err
	}
	defer client.Close()
	return client.ProduceSync(ctx, records...).FirstErr()
}

// ReadAll reads partition 0 as it stands.
func (b *Broker) ReadAll(ctx context.Context, topic string) (records []*kgo.Record, err error) {
	end, err := b.EndOffset(ctx, topic)
	if err != nil {
		return nil, err
	}
	start := map[string]map[int32]kgo.Offset{topic: {0: kgo.NewOffset().AtStart()}}
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...), kgo.ConsumePartitions(start))
	if err != nil {
		return nil, err
	}
	defer client.Close()
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for int64(len(records)) < end && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(record *kgo.Record) { records = append(records, record) })
	}
	return records, ctx.Err()
}

// Lead makes a node the leader of partition 0 of topics.
func (b *Broker) Lead(first int, topics ...string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Seeds()...))
	if err != nil {
		return err
	}
	defer client.Close()
	admin := kadm.NewClient(client)
	move, elect := kadm.AlterPartitionAssignmentsReq{}, kadm.TopicsSet{}
	for _, topic := range topics {
		move.Assign(topic, 0, b.replicas(first))
		elect.Add(topic, 0)
	}
	moved, err := admin.AlterPartitionAssignments(context.Background(), move)
	if err == nil {
		err = moved.Error()
	}
	if err != nil {
		return err
	}
	_, err = admin.ElectLeaders(context.Background(), kadm.ElectPreferredReplica, elect)
	return err
}

// PIDs are those of the processes of the broker, or of the brokers.
func (b *Broker) PIDs() []int {
	if b.container != nil {
		return []int{b.containerPID}
	}
	if len(b.Nodes) == 0 {
		return []int{b.process.pid()}
	}
	var pids []int
	for _, node := range b.Nodes {
		pids = append(pids, node.PID)
	}
	return pids
}

// Pause stops all brokers where they are.
func (b *Broker) Pause() error { return b.signalAll(syscall.SIGSTOP) }

// Resume lets them go on.
func (b *Broker) Resume() error { return b.signalAll(syscall.SIGCONT) }

func (b *Broker) signalAll(signal syscall.Signal) error {
	var failures []error
	for _, pid := range b.PIDs() {
		failures = append(failures, syscall.Kill(pid, signal))
	}
	return errors.Join(failures...)
}

// Signal sends a signal to one node of a cluster.
func (b *Broker) Signal(node int, signal syscall.Signal) error {
	return syscall.Kill(b.Nodes[node].PID, signal)
}

// Restart starts a node that has ended, or is about to end, again; it is there when this returns.
func (b *Broker) Restart(node int) error {
	until := time.Now().Add(startTimeout)
	for syscall.Kill(b.Nodes[node].PID, 0) == nil && time.Now().Before(until) {
		time.Sleep(50 * time.Millisecond)
	}
	if _, err := fmt.Fprintf(b.process.stdin, "start %d\n", b.Nodes[node].ID); err != nil {
		return err
	}
	again := Node{}
	if err := b.process.read(&again); err != nil {
		return err
	}
	if again.Error != "" {
		return errors.New(again.Error)
	}
	b.Nodes[node] = again
	return nil
}

func (b *Broker) close() {
	if b.container != nil {
		b.container.close()
		return
	}
	b.process.stop()
}
