package access

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

// harmlessKeys are all that need no right. Whoever adds one says here why nobody can learn or change anything with it.
var harmlessKeys = map[kmsg.Key]string{
	kmsg.ApiVersions:               "which requests the broker knows",
	kmsg.SASLHandshake:             "how to log in at the broker",
	kmsg.SASLAuthenticate:          "logging in at the broker, which decides",
	kmsg.DescribeCluster:           "the brokers' addresses, which every client needs",
	kmsg.GetTelemetrySubscriptions: "which of its own figures the broker wants",
	kmsg.PushTelemetry:             "these figures",
}

// [CL-ACC-010] Every request that there is stands in the table, and none without a right but those listed here.
func TestTableIsClosed(t *testing.T) {
	for key := int16(0); key <= kmsg.MaxKey; key++ {
		r, there := rules[kmsg.Key(key)]
		name := kmsg.NameForKey(key)
		if !there {
			t.Errorf("%d %s is not in the table", key, name)
		}
		if _, listed := harmlessKeys[kmsg.Key(key)]; listed != r.harmless {
			t.Errorf("%s: harmless %v, but listed %v", name, r.harmless, listed)
		}
		if r.harmless && r.judge != nil {
			t.Errorf("%s is harmless and judged", name)
		}
	}
	if len(rules) != int(kmsg.MaxKey)+1 {
		t.Errorf("%d rules for %d requests", len(rules), kmsg.MaxKey+1)
	}
	if r := rules[kmsg.Key(kmsg.MaxKey+1)]; !r.refuses() {
		t.Error("a request that nobody knows is not refused")
	}
}

// filled makes a request in which everything that can name something does: each list has one entry, each text is "x".
func filled(key, version int16) kmsg.Request {
	r := kmsg.RequestForKey(key)
	r.SetVersion(version)
	fill(reflect.ValueOf(r).Elem())
	r.SetVersion(version)
	switch q := r.(type) {
	case *kmsg.FetchRequest:
		q.ReplicaID, q.ReplicaState.ID, q.SessionID, q.SessionEpoch = -1, -1, 0, 0
	case *kmsg.ListOffsetsRequest:
		q.ReplicaID = -1
	case *kmsg.OffsetForLeaderEpochRequest:
		q.ReplicaID = -2
	case *kmsg.FindCoordinatorRequest:
		q.CoordinatorType = 0
	}
	return r
}

func fill(v reflect.Value) {
	switch v.Kind() { //nolint:exhaustive // all others stay as they are
	case reflect.String:
		v.SetString("x")
	case reflect.Array: // an id
		v.Index(0).SetUint(1)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name != "UnknownTags" {
				fill(v.Field(i))
			}
		}
	}
}

func passWith(known answer) *pass {
	return &pass{look: func(Check) answer { return known }, topicOf: func(topicID) (string, bool) { return "x", true }}
}

// filters are judged by their answers only.
var filters = []kmsg.Key{kmsg.ListGroups, kmsg.ListTransactions}

// [CL-ACC-011] [CL-ACC-012] Whoever may nothing gets nothing through, in any version of any request, and an answer that says why; the
// answer can be written and read.
func TestNothingPassesWithoutARight(t *testing.T) {
	for key, r := range rules {
		if r.judge == nil || slices.Contains(filters, key) {
			continue
		}
		highest := kmsg.RequestForKey(int16(key)).MaxVersion()
		for version := int16(0); version <= highest; version++ {
			q := filled(int16(key), version)
			p := passWith(refused)
			v := r.judge(p, q)
			name := fmt.Sprintf("%s version %d", kmsg.NameForKey(int16(key)), version)
			if len(p.denied) == 0 {
				t.Errorf("%s: nothing is denied", name)
			}
			if key == kmsg.Metadata || key == kmsg.ShareFetch { // these go on, with nothing left
				continue
			}
			if v.answer == nil {
				t.Errorf("%s passes", name)
				continue
			}
			v.answer.SetVersion(version)
			again := kmsg.ResponseForKey(int16(key))
			again.SetVersion(version)
			if err := again.ReadFrom(v.answer.AppendTo(nil)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if version == highest && !refuses(reflect.ValueOf(again).Elem()) {
				t.Errorf("%s: no error in %+v", name, again)
			}
		}
	}
}

// refuses tells whether some error code of an answer is one for a refusal.
func refuses(v reflect.Value) bool { return holds(v, 29, 30, 31, 53, 100) }

// holds tells whether some error code of an answer is one of these.
func holds(v reflect.Value, codes ...int64) bool {
	switch v.Kind() { //nolint:exhaustive // nothing else holds error codes
	case reflect.Int16:
		return slices.Contains(codes, v.Int())
	case reflect.Slice:
		for i := range v.Len() {
			if holds(v.Index(i), codes...) {
				return true
			}
		}
	case reflect.Struct:
		for _, field := range v.Fields() {
			if holds(field, codes...) {
				return true
			}
		}
	}
	return false
}

// [CL-ACC-011] Whoever may everything has his requests pass as they are, but for fetch sessions.
func TestEverythingPassesWithAllRights(t *testing.T) {
	for key, r := range rules {
		if r.judge == nil {
			continue
		}
		for version := int16(0); version <= kmsg.RequestForKey(int16(key)).MaxVersion(); version++ {
			v := r.judge(passWith(allowed), filled(int16(key), version))
			if v.answer != nil || v.merge != nil || v.request != nil && key != kmsg.Fetch {
				t.Errorf("%s version %d does not pass: %+v", kmsg.NameForKey(int16(key)), version, v)
			}
		}
	}
}

// A look at what is not known changes nothing, and says what is missing.
func TestLooksChangeNothing(t *testing.T) {
	for key, r := range rules {
		if r.judge == nil || slices.Contains(filters, key) {
			continue
		}
		version := kmsg.RequestForKey(int16(key)).MaxVersion()
		q, same := filled(int16(key), version), filled(int16(key), version)
		p := passWith(unknown)
		r.judge(p, q)
		if p.complete() || !reflect.DeepEqual(q, same) {
			t.Errorf("%s: complete %v, or changed", kmsg.NameForKey(int16(key)), p.complete())
		}
	}
}

// some allows what names it.
func some(names ...string) *pass {
	return &pass{
		look: func(c Check) answer {
			if slices.Contains(names, c.Name) {
				return allowed
			}
			return refused
		},
		topicOf: func(id topicID) (string, bool) { return string(id[:1]), id[0] != 0 },
	}
}

// [CL-ACC-011] Refusals stand where the request has them, and answers of the broker at theirs, in whatever order it gives them.
func TestAnswersKeepTheOrderOfTheRequest(t *testing.T) {
	q := kmsg.NewPtrProduceRequest()
	for _, name := range []string{"no1", "a", "b", "no2", "a", "c", "no3"} {
		topic := kmsg.NewProduceRequestTopic()
		topic.Topic = name
		topic.Partitions = make([]kmsg.ProduceRequestTopicPartition, 1)
		q.Topics = append(q.Topics, topic)
	}
	v := produce(some("a", "b", "c"), q)
	sent, ok := v.request.(*kmsg.ProduceRequest)
	if !ok || len(sent.Topics) != 4 || len(q.Topics) != 7 {
		t.Fatalf("%+v", v)
	}
	r := kmsg.NewPtrProduceResponse()
	for i, name := range []string{"c", "a", "b", "a", "more"} {
		topic := kmsg.NewProduceResponseTopic()
		topic.Topic = name
		topic.Partitions = []kmsg.ProduceResponseTopicPartition{{BaseOffset: int64(i)}}
		r.Topics = append(r.Topics, topic)
	}
	v.merge(r)
	var got []string
	for _, topic := range r.Topics {
		p := topic.Partitions[0]
		got = append(got, fmt.Sprintf("%s:%d:%d", topic.Topic, p.ErrorCode, p.BaseOffset))
	}
	want := []string{"no1:29:-1", "a:0:1", "b:0:2", "no2:29:-1", "a:0:3", "c:0:0", "no3:29:-1", "more:0:4"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

func fetchOf(t *testing.T, version int16) *kmsg.FetchRequest {
	t.Helper()
	q, ok := filled(int16(kmsg.Fetch), version).(*kmsg.FetchRequest)
	if !ok {
		t.Fatal("no Fetch")
	}
	return q
}

// [CL-ACC-013] An answer is cut to what is allowed when it comes; topics go by their ids.
func TestDeliveryIsLookedAtAgain(t *testing.T) {
	v := fetch(passWith(allowed), fetchOf(t, 18))
	r := kmsg.NewPtrFetchResponse()
	r.SetVersion(18)
	for _, name := range []byte("ab\x00") {
		topic := kmsg.NewFetchResponseTopic()
		topic.TopicID = topicID{name, 1}
		topic.Partitions = []kmsg.FetchResponseTopicPartition{{Partition: 3, RecordBatches: []byte("records")}}
		r.Topics = append(r.Topics, topic)
	}
	p := some("a")
	p.topicOf = func(id topicID) (string, bool) {
		if id[0] == 0 {
			return "", true
		}
		return string(id[:1]), true
	}
	v.deliver(p, r)()
	for i, code := range []int16{0, topicRefused, topicIDUnknown} {
		if got := r.Topics[i].Partitions[0]; got.ErrorCode != code || (len(got.RecordBatches) > 0) != (code == 0) || got.Partition != 3 {
			t.Errorf("%d: %+v", i, got)
		}
	}
}

// [CL-ACC-017] No fetch session comes about, so that each request says all that it asks for.
func TestNoFetchSessions(t *testing.T) {
	q := fetchOf(t, 12)
	v := fetch(passWith(allowed), q)
	if sent, ok := v.request.(*kmsg.FetchRequest); !ok || sent.SessionEpoch != -1 || sent.ForgottenTopics != nil {
		t.Errorf("%+v", sent)
	}
	for _, change := range []func(*kmsg.FetchRequest){
		func(q *kmsg.FetchRequest) { q.SessionID = 7 }, func(q *kmsg.FetchRequest) { q.SessionEpoch = 1 }, func(q *kmsg.FetchRequest) { q.SessionID, q.SessionEpoch = 7, 2 },
	} {
		q := fetchOf(t, 12)
		change(q)
		v := fetch(passWith(allowed), q)
		if r, ok := v.answer.(*kmsg.FetchResponse); !ok || r.ErrorCode != sessionUnknown {
			t.Errorf("%+v", v)
		}
	}
}

// Brokers' own requests, and names that cannot be, are refused whatever the policy says.
func TestNeverAllowed(t *testing.T) {
	for _, change := range []func(*kmsg.FetchRequest){
		func(q *kmsg.FetchRequest) { q.ReplicaID = 1 }, func(q *kmsg.FetchRequest) { q.ReplicaState.ID = 1 },
		func(q *kmsg.FetchRequest) { q.Topics[0].Topic, q.Topics[0].TopicID = "a b", topicID{} }, func(q *kmsg.FetchRequest) { q.Topics[0].Topic = ".." },
	} {
		q := fetchOf(t, 15)
		change(q)
		if v := fetch(passWith(allowed), q); v.answer == nil {
			t.Errorf("%+v passes", q)
		}
	}
	for _, c := range []Check{{policy.ActionGroup, ""}, {policy.ActionGroup, "a\x00b"}, {policy.ActionRead, ""}, {policy.ActionCluster, "x"}, {policy.ActionTransaction, string(make([]byte, 600))}} {
		if p := passWith(allowed); p.can(c.Action, c.Name, topicRefused) == 0 {
			t.Errorf("%+v", c)
		}
	}
}
