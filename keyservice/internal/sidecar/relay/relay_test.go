// Peers, on either side, that do not go on.

package relay

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/protocol"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire/wiretest"
)

const (
	stall    = 600 * time.Millisecond
	inTime   = 15 * time.Second
	maxFrame = 32<<20 - 4 // bytes
)

func options(handlers ...flow.Handler) Options {
	return Options{
		Chain: flow.NewChain(protocol.Versions(), handlers...), MaxFrame: maxFrame, InFlight: 1000, Drain: 50 * time.Millisecond, Stall: stall,
		Requests: wire.NewBudget(4 + maxFrame), Responses: wire.NewBudget(4 + maxFrame),
	}
}

// ends are those of a connection through a relay.
type ends struct {
	client, broker *net.TCPConn
	conn           *flow.Conn
	done           chan error // what Serve gave
}

func serve(t *testing.T, o Options) *ends {
	t.Helper()
	e := &ends{conn: &flow.Conn{}, done: make(chan error, 1)}
	var near, far *net.TCPConn
	e.client, near = wiretest.Connected(t)
	far, e.broker = wiretest.Connected(t)
	go func() {
		e.done <- Serve(context.Background(), e.conn, wire.Plain(near, stall), wire.Plain(far, stall), o)
	}()
	t.Cleanup(func() { _ = errors.Join(e.client.Close(), e.broker.Close()) })
	end := time.Now().Add(inTime)
	if err := errors.Join(e.client.SetDeadline(end), e.broker.SetDeadline(end)); err != nil {
		t.Fatal(err)
	}
	return e
}

func request(r kmsg.Request, id int32) []byte {
	return kmsg.NewRequestFormatter(kmsg.FormatterClientID("c")).AppendRequest(nil, r, id)
}

func heartbeat(id int32) []byte { return request(kmsg.NewPtrHeartbeatRequest(), id) }

func send(t *testing.T, c net.Conn, p []byte) {
	t.Helper()
	if _, err := c.Write(p); err != nil {
		t.Fatal(err)
	}
}

// receive gives a frame without its length.
func receive(t *testing.T, c net.Conn) []byte {
	t.Helper()
	size := make([]byte, 4)
	if _, err := io.ReadFull(c, size); err != nil {
		t.Fatal(err)
	}
	p := make([]byte, binary.BigEndian.Uint32(size))
	if _, err := io.ReadFull(c, p); err != nil {
		t.Fatal(err)
	}
	return p
}

// response is one to a heartbeat.
func response(id int32) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0, 0, 0, 6}, uint32(id)), 0, 0)
}

// exchange sends a heartbeat through and answers it.
func exchange(t *testing.T, e *ends, id int32) {
	t.Helper()
	send(t, e.client, heartbeat(id))
	receive(t, e.broker)
	send(t, e.broker, response(id))
	if p := receive(t, e.client); binary.BigEndian.Uint32(p) != uint32(id) {
		t.Fatal(p)
	}
}

// timedOut sees that the connection is ended for want of time.
func timedOut(t *testing.T, e *ends) {
	t.Helper()
	select {
	case err := <-e.done:
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Error(err)
		}
	case <-time.After(inTime):
		t.Fatal("the connection goes on")
	}
}

// [CL-SDC-030] A frame begins with the first byte of its length: who stops there is not idle.
func TestHalfALength(t *testing.T) {
	for size := 1; size < 4; size++ {
		client := serve(t, options())
		send(t, client.client, heartbeat(0)[:size])
		broker := serve(t, options())
		send(t, broker.client, heartbeat(0))
		receive(t, broker.broker)
		send(t, broker.broker, response(0)[:size])
		timedOut(t, client)
		timedOut(t, broker)
	}
}

// Who sends a length in two pieces is served, and may then be idle for as long as it likes, as may who sends nothing.
func TestIdleIsNotHalfALength(t *testing.T) {
	e := serve(t, options())
	for id := range int32(3) {
		time.Sleep(2 * stall)
		send(t, e.client, heartbeat(id)[:2])
		time.Sleep(stall / 10)
		send(t, e.client, heartbeat(id)[2:])
		receive(t, e.broker)
		time.Sleep(2 * stall)
		send(t, e.broker, response(id)[:3])
		time.Sleep(stall / 10)
		send(t, e.broker, response(id)[3:])
		receive(t, e.client)
	}
	exchange(t, e, 4)
}

// bodies wants to see every message.
type bodies struct{}

func (bodies) Wants(int16, int16) flow.Want {
	return flow.Want{Request: flow.Body, Response: flow.Body}
}
func (bodies) Request(context.Context, *flow.Exchange) error  { return nil }
func (bodies) Response(context.Context, *flow.Exchange) error { return nil }

// [CL-SDC-014] [CL-SDC-030] Peers that claim all the memory there is for frames, and send nothing more, do not keep it from others.
func TestFramesThatAreClaimed(t *testing.T) {
	o := options(bodies{})
	claim := binary.BigEndian.AppendUint32(nil, uint32(o.MaxFrame)) // which is all there is in its direction
	claimers := []*ends{serve(t, o), serve(t, o)}
	send(t, claimers[0].client, append(append(claim, heartbeat(0)[4:]...), make([]byte, smallHeader)...))
	send(t, claimers[1].client, heartbeat(0))
	receive(t, claimers[1].broker)
	send(t, claimers[1].broker, append(claim, response(0)[4:]...))
	time.Sleep(stall)

	other := serve(t, o)
	q := kmsg.NewPtrHeartbeatRequest()
	q.Version, q.Group = 4, strings.Repeat("g", 1<<20)
	began := time.Now()
	send(t, other.client, request(q, 1))
	if got := receive(t, other.broker); len(got) < 1<<20 {
		t.Errorf("%d bytes", len(got))
	}
	tag := append(binary.AppendUvarint([]byte{1, 9}, 1<<20), make([]byte, 1<<20)...) // one field, number 9
	answer := append([]byte{0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, tag...)
	send(t, other.broker, append(binary.BigEndian.AppendUint32(nil, uint32(len(answer))), answer...))
	if got := receive(t, other.client); len(got) != len(answer) {
		t.Errorf("%d bytes", len(got))
	}
	t.Logf("another waited for %s", time.Since(began))
	timedOut(t, claimers[0])
	timedOut(t, claimers[1])
}

// holder holds something for each message, does what is said, and counts what is given back.
type holder struct {
	bodies

	do         func(*flow.Exchange) error
	held, back *atomic.Int32
	requests   *atomic.Int32 // that a response still had
}

func (h holder) Request(_ context.Context, x *flow.Exchange) error {
	h.hold(x)
	return h.do(x)
}

func (h holder) Response(_ context.Context, x *flow.Exchange) error {
	h.hold(x)
	if x.Request != nil && !x.Answered() {
		h.requests.Add(1)
	}
	return nil
}

func (h holder) hold(x *flow.Exchange) {
	h.held.Add(2)
	for range 2 {
		x.Hold(func() { h.back.Add(1) })
	}
}

// What a handler holds is given back, once, whatever becomes of the message; what waits for its response holds no request.
func TestWhatHandlersHold(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(*flow.Exchange) error
		held int32
		ends bool
	}{
		"a request that is sent on":   {func(*flow.Exchange) error { return nil }, 4, false},
		"one that is changed":         {func(x *flow.Exchange) error { x.ChangeRequest(); return nil }, 4, false},
		"one that is answered":        {func(x *flow.Exchange) error { x.Answer(kmsg.NewPtrHeartbeatResponse()); return nil }, 2, false},
		"one that ends all":           {func(*flow.Exchange) error { return errors.New("no") }, 2, true},
		"one of which a panic is had": {func(*flow.Exchange) error { panic("no") }, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			h := holder{do: c.do, held: &atomic.Int32{}, back: &atomic.Int32{}, requests: &atomic.Int32{}}
			e := serve(t, options(h))
			send(t, e.client, heartbeat(1))
			if c.held == 4 {
				receive(t, e.broker)
				send(t, e.broker, response(1))
			}
			if !c.ends {
				receive(t, e.client)
				_ = e.client.Close()
			}
			<-e.done
			if h.held.Load() != c.held || h.back.Load() != c.held || h.requests.Load() != 0 {
				t.Errorf("held %d, given back %d; requests: %d", h.held.Load(), h.back.Load(), h.requests.Load())
			}
		})
	}
}

// large answers every Metadata in the broker's place.
type large struct{ asked *atomic.Int32 }

func (large) Wants(key, _ int16) flow.Want {
	if key == int16(kmsg.Metadata) {
		return flow.Want{Request: flow.Head}
	}
	return flow.Want{}
}

const largeAnswer = 300 << 10

func (l large) Request(_ context.Context, x *flow.Exchange) error {
	l.asked.Add(1)
	r := kmsg.NewPtrMetadataResponse()
	text := strings.Repeat("x", largeAnswer)
	r.ClusterID = &text
	x.Answer(r)
	return nil
}

func (large) Response(context.Context, *flow.Exchange) error { return nil }

// [CL-SDC-030] Answers that wait for that of the broker are bounded by their bytes: while there are too many, no request is read.
func TestAnswersThatWait(t *testing.T) {
	const many = 50
	asked := &atomic.Int32{}
	e := serve(t, options(large{asked}))
	all := heartbeat(0)
	for id := range int32(many) {
		q := kmsg.NewPtrMetadataRequest()
		q.Version = 12
		all = append(all, request(q, id+1)...)
	}
	send(t, e.client, all)
	receive(t, e.broker)
	time.Sleep(2 * stall)
	if n := int(asked.Load()); n < 2 || n > maxHeld/largeAnswer+1 {
		t.Errorf("%d answers of %d bytes wait", n, largeAnswer)
	}
	send(t, e.broker, response(0))
	for id := range uint32(many + 1) {
		if p := receive(t, e.client); binary.BigEndian.Uint32(p) != id || id > 0 && len(p) < largeAnswer {
			t.Fatalf("%d bytes with id %x, expected %d", len(p), p[:4], id)
		}
	}
	exchange(t, e, many+1)
}

// A connection whose time is over while a response is on its way is cut off; what was gathered of it is sent by nobody else, which the race
// detector sees.
func TestTimeEndsWhileAResponseComes(t *testing.T) {
	for range 10 {
		e := serve(t, options())
		send(t, e.client, heartbeat(0))
		receive(t, e.broker)
		go func() { _, _ = io.Copy(io.Discard, e.client) }()
		e.conn.Drain("test")
		const size = 16 << 20
		send(t, e.broker, append(binary.BigEndian.AppendUint32(nil, size), response(0)[4:8]...))
		piece := make([]byte, 1<<10)
		for sent, failed := 0, error(nil); failed == nil && sent < size-len(piece); sent += len(piece) {
			_, failed = e.broker.Write(piece)
		}
		if err := <-e.done; err != nil {
			t.Error(err)
		}
	}
}
