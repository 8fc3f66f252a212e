// Requests of which only a part is allowed.

package access

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// mixedTopics are asked for in this order; only a and b are allowed.
var mixedTopics = []string{"n", "a", "m", "b"}

func mixedPass() *pass { return some("a", "b", "x") } // x is what everything else is called

type versioned interface {
	GetVersion() int16
	SetVersion(version int16)
	AppendTo(to []byte) []byte
	ReadFrom(from []byte) error
}

// again gives a message as whoever reads it has it: its version may leave things out.
func again[M versioned](t *testing.T, m M) M {
	t.Helper()
	read, ok := reflect.TypeAssert[M](reflect.New(reflect.TypeOf(m).Elem()))
	if !ok {
		t.Fatalf("%T", m)
	}
	read.SetVersion(m.GetVersion())
	if err := read.ReadFrom(m.AppendTo(nil)); err != nil {
		t.Fatalf("%T version %d: %v", m, m.GetVersion(), err)
	}
	return read
}

// topicsIn gives the list, of a request or its answer, whose entries are about a topic each.
func topicsIn(m versioned) reflect.Value {
	all := reflect.ValueOf(m).Elem()
	if groups := all.FieldByName("Groups"); groups.IsValid() && groups.Len() > 0 {
		all = groups.Index(0)
	}
	if resources := all.FieldByName("Resources"); resources.IsValid() {
		return resources
	}
	return all.FieldByName("Topics")
}

// naming makes a message one about these topics, with one partition of each: its number is the topic's place in mixedTopics.
func naming[M versioned](t *testing.T, m M, topics ...string) M {
	t.Helper()
	m = again(t, m)
	list := topicsIn(m)
	list.Set(reflect.MakeSlice(list.Type(), len(topics), len(topics)))
	for i, topic := range topics {
		entry := list.Index(i)
		fill(entry)
		set(entry, "Topic", topic)
		set(entry, "ResourceName", topic)
		set(entry, "ResourceType", kmsg.ConfigResourceTypeTopic)
		set(entry, "TopicID", topicID{topic[0]})
		if number := numberOf(entry); number.IsValid() {
			number.SetInt(int64(slices.Index(mixedTopics, topic)))
		}
	}
	return again(t, m)
}

func set(entry reflect.Value, field string, value any) {
	if f := entry.FieldByName(field); f.IsValid() {
		f.Set(reflect.ValueOf(value))
	}
}

// topicOf is what an entry names, by name or by id.
func topicOf(entry reflect.Value) string {
	for _, field := range []string{"Topic", "ResourceName"} {
		if f := entry.FieldByName(field); f.IsValid() && f.String() != "" {
			return f.String()
		}
	}
	id, _ := reflect.TypeAssert[topicID](entry.FieldByName("TopicID"))
	return string(id[:1])
}

// numberOf is the number of the only partition of an entry, if it has partitions.
func numberOf(entry reflect.Value) (number reflect.Value) {
	partitions := entry.FieldByName("Partitions")
	switch {
	case !partitions.IsValid():
		return number
	case partitions.Index(0).Kind() == reflect.Int32:
		return partitions.Index(0)
	default:
		return partitions.Index(0).FieldByName("Partition")
	}
}

// codeOf is the error code of the only partition of an answer's entry, or else its own.
func codeOf(entry reflect.Value) reflect.Value {
	if partitions := entry.FieldByName("Partitions"); partitions.IsValid() {
		entry = partitions.Index(0)
	}
	return entry.FieldByName("ErrorCode")
}

// checkMixed sees that an answer has every topic in the order of the request, with these codes.
func checkMixed(t *testing.T, answer kmsg.Response, codes ...int16) {
	t.Helper()
	var got, want []string
	list := topicsIn(again(t, answer))
	for i := range list.Len() {
		entry := list.Index(i)
		got = append(got, fmt.Sprintf("%s:%d", topicOf(entry), codeOf(entry).Int()))
		if number := numberOf(entry); number.IsValid() && number.Int() != int64(i) {
			t.Errorf("%s: partition %d instead of %d", topicOf(entry), number.Int(), i)
		}
	}
	for i, topic := range mixedTopics {
		want = append(want, fmt.Sprintf("%s:%d", topic, codes[i]))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// [CL-ACC-011] Of a request, in any version, only what is allowed goes on; its answer has the refusals in their places, and the broker's own codes.
func TestMixedRequests(t *testing.T) {
	for _, key := range []kmsg.Key{
		kmsg.OffsetCommit, kmsg.OffsetFetch, kmsg.TxnOffsetCommit, kmsg.ListOffsets, kmsg.OffsetForLeaderEpoch, kmsg.DescribeConfigs, kmsg.ShareFetch, kmsg.ShareAcknowledge,
	} {
		for version := range kmsg.RequestForKey(int16(key)).MaxVersion() + 1 {
			t.Run(fmt.Sprintf("%s version %d", kmsg.NameForKey(int16(key)), version), func(t *testing.T) {
				v := rules[key].judge(mixedPass(), naming(t, filled(int16(key), version), mixedTopics...))
				if v.request == nil || v.merge == nil || v.answer != nil {
					t.Fatalf("%+v", v)
				}
				sent := topicsIn(again(t, v.request))
				if sent.Len() != 2 || topicOf(sent.Index(0)) != "a" || topicOf(sent.Index(1)) != "b" {
					t.Fatalf("%+v goes on", sent)
				}
				answer := brokerAnswer(t, v.request)
				if v.deliver != nil && v.deliver(mixedPass(), answer) != nil {
					t.Error("the answer is cut")
				}
				v.merge(answer)
				checkMixed(t, answer, topicRefused, storageError, topicRefused, storageError)
			})
		}
	}
}

// brokerAnswer is about what goes on, in another order, with an error of the broker's own.
func brokerAnswer(t *testing.T, q kmsg.Request) kmsg.Response {
	t.Helper()
	answer := q.ResponseKind()
	fill(reflect.ValueOf(answer).Elem())
	answer = naming(t, answer, "b", "a")
	list := topicsIn(answer)
	for i := range list.Len() {
		codeOf(list.Index(i)).SetInt(int64(storageError))
	}
	return again(t, answer)
}

// [CL-ACC-011] A transaction takes all partitions or none: the refused topics are named, and nothing was attempted for the others.
func TestMixedTransactions(t *testing.T) {
	const ofBrokers = 4 // the version from which several transactions can be named
	for version := range int16(ofBrokers) {
		v := rules[kmsg.AddPartitionsToTxn].judge(mixedPass(), naming(t, filled(int16(kmsg.AddPartitionsToTxn), version), mixedTopics...))
		if v.answer == nil || v.request != nil {
			t.Fatalf("version %d: %+v", version, v)
		}
		checkMixed(t, v.answer, topicRefused, operationUnattempted, topicRefused, operationUnattempted)
	}
}
