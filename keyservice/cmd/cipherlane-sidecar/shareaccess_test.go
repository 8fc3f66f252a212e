// Share groups behind a sidecar that controls access.

package main

import (
	"errors"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// [CL-ACC-011] A share group needs rights as any group: to read, and to see and set its offsets, of each topic by itself.
func testShareGroups(t *testing.T, broker string) {
	t.Helper()
	g := startGuarded(t, broker, accessPolicy)
	g.readShared(t)
	if _, err := readError(t, g.as(t, "reader", kgo.ShareGroup("others"), kgo.ConsumeTopics("mixed"))); !errors.Is(err, kerr.GroupAuthorizationFailed) {
		t.Errorf("a share group of others: %v", err)
	}
	reader := g.as(t, "reader").SeedBrokers()[0] // the client itself would ask for the coordinator first, and be refused that
	ask := func(q kmsg.Request) kmsg.Response {
		r, err := reader.Request(within(t, 30*time.Second), q)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	group := func(name string, topics ...string) (q kmsg.DescribeShareGroupOffsetsRequestGroup) {
		q.GroupID = name
		for _, topic := range topics {
			q.Topics = append(q.Topics, kmsg.DescribeShareGroupOffsetsRequestGroupTopic{Topic: topic, Partitions: []int32{0}})
		}
		return q
	}
	topic, refused := kerr.TopicAuthorizationFailed.Code, kerr.GroupAuthorizationFailed.Code
	q := kmsg.NewPtrDescribeShareGroupOffsetsRequest()
	q.Groups = append(q.Groups, group("others", "mixed"), group("readers-share", "other", "mixed"))
	if r, ok := ask(q).(*kmsg.DescribeShareGroupOffsetsResponse); !ok || len(r.Groups) != 2 || r.Groups[0].ErrorCode != refused || r.Groups[1].ErrorCode != 0 ||
		len(r.Groups[1].Topics) != 2 || r.Groups[1].Topics[0].Partitions[0].ErrorCode != topic || r.Groups[1].Topics[1].Partitions[0].ErrorCode != 0 {
		t.Errorf("%+v", r)
	}
	q.Groups = append(q.Groups[:0], group("readers-share")) // all topics
	if r, ok := ask(q).(*kmsg.DescribeShareGroupOffsetsResponse); !ok || len(r.Groups[0].Topics) != 1 || r.Groups[0].Topics[0].Topic != "mixed" {
		t.Errorf("%+v", r)
	}
	alter := kmsg.NewPtrAlterShareGroupOffsetsRequest()
	alter.GroupID = "readers-share"
	for _, name := range []string{"mixed", "other"} {
		alter.Topics = append(alter.Topics, kmsg.AlterShareGroupOffsetsRequestTopic{Topic: name, Partitions: make([]kmsg.AlterShareGroupOffsetsRequestTopicPartition, 1)})
	}
	eventually(t, "the end of the group's members", func() bool {
		r, ok := ask(alter).(*kmsg.AlterShareGroupOffsetsResponse)
		return ok && r.ErrorCode == 0 && len(r.Topics) == 2 && r.Topics[0].Partitions[0].ErrorCode == 0 && r.Topics[1].Partitions[0].ErrorCode == topic
	})
	remove := kmsg.NewPtrDeleteShareGroupOffsetsRequest()
	remove.GroupID, remove.Topics = "readers-share", []kmsg.DeleteShareGroupOffsetsRequestTopic{{Topic: "other"}, {Topic: "mixed"}}
	if r, ok := ask(remove).(*kmsg.DeleteShareGroupOffsetsResponse); !ok || r.ErrorCode != 0 || len(r.Topics) != 2 || r.Topics[0].ErrorCode != topic || r.Topics[1].ErrorCode != 0 {
		t.Errorf("%+v", r)
	}
	remove.GroupID = "others"
	if r, ok := ask(remove).(*kmsg.DeleteShareGroupOffsetsResponse); !ok || r.ErrorCode != refused {
		t.Errorf("%+v", r)
	}
}

// readShared reads a record in a share group, which begins at the end of the topic, and leaves it.
func (g *guarded) readShared(t *testing.T) {
	t.Helper()
	member, writer, ctx := g.as(t, "reader", kgo.ShareGroup("readers-share"), kgo.ConsumeTopics("mixed")), g.as(t, "writer"), within(t, time.Minute)
	go func() {
		for ctx.Err() == nil {
			writer.ProduceSync(ctx, &kgo.Record{Topic: "mixed", Value: []byte("shared")})
			time.Sleep(100 * time.Millisecond)
		}
	}()
	for got := 0; got == 0; {
		fetches := member.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		got = fetches.NumRecords()
	}
	member.Close()
}
