// Package rewrite holds the handlers without which Kafka would not work through a sidecar: clients are told only of APIs that are
// understood, and only of addresses that lead through a sidecar.
package rewrite

import (
	"context"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/protocol"
)

// Versions leaves of ApiVersions what the sidecar understands [CL-SDC-010].
type Versions struct{}

// Wants implements flow.Handler.
func (Versions) Wants(key, _ int16) flow.Want {
	if key == int16(kmsg.ApiVersions) {
		return flow.Want{Response: flow.Body}
	}
	return flow.Want{}
}

// Request implements flow.Handler.
func (Versions) Request(context.Context, *flow.Exchange) error { return nil }

// Response implements flow.Handler.
func (Versions) Response(_ context.Context, x *flow.Exchange) error {
	if r, ok := x.Response.(*kmsg.ApiVersionsResponse); ok && protocol.Clamp(r) {
		x.ChangeResponse()
	}
	return nil
}
