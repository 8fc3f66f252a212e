// Asking the cluster for the names of topics.

package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/protocol"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// askWithin bounds one question, on a connection of its own: topics are new seldom.
const askWithin = 5 * time.Second

// metadataVersion is the first that takes topic ids without names.
const metadataVersion = 12

func (s *Server) askTopics(ctx context.Context, ids [][16]byte) (*kmsg.MetadataResponse, error) {
	if s.cfg.Kafka == nil {
		return nil, errors.New("the names of topics cannot be asked for without kafka.upstream")
	}
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	failures := []error{errors.New("the names of topics could not be asked for")}
	for _, address := range shuffled(s.cfg.Kafka.Upstream) {
		r, err := s.ask(ctx, address, ids)
		if err == nil {
			return r, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", address, err))
	}
	return nil, errors.Join(failures...)
}

func (s *Server) ask(ctx context.Context, address string, ids [][16]byte) (*kmsg.MetadataResponse, error) {
	stream, _, _, err := s.gateway.Connect(ctx, address, s.nameOf())
	if err != nil {
		return nil, err
	}
	defer func() { _ = stream.Close() }()
	deadline, _ := ctx.Deadline()
	if err := stream.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	request := kmsg.NewPtrMetadataRequest()
	request.SetVersion(metadataVersion)
	for _, id := range ids {
		topic := kmsg.NewMetadataRequestTopic()
		topic.TopicID = id
		request.Topics = append(request.Topics, topic)
	}
	if err := stream.WriteAll([][]byte{kmsg.NewRequestFormatter(kmsg.FormatterClientID("cipherlane-sidecar")).AppendRequest(nil, request, 0)}); err != nil {
		return nil, err
	}
	return readMetadata(wire.NewReader(stream), s.cfg.Limits.Frame)
}

func readMetadata(from *wire.Reader, limit int) (*kmsg.MetadataResponse, error) {
	defer from.Close()
	frame, err := protocol.ReadFrame(from, limit)
	if err != nil {
		return nil, err
	}
	r, _, err := protocol.DecodeResponse(int16(kmsg.Metadata), metadataVersion, frame)
	if err != nil {
		return nil, err
	}
	metadata, ok := r.(*kmsg.MetadataResponse)
	if !ok {
		return nil, protocol.ErrUnknownAPI
	}
	return metadata, nil
}
