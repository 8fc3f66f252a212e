package server

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/config"
)

// hungLog is an audit log on a disk that no longer answers.
type hungLog struct{ until chan struct{} }

func (l hungLog) Write(context.Context, ...audit.Record) error { return audit.ErrUnavailable }
func (l hungLog) Check(context.Context) error                  { return audit.ErrUnavailable }
func (l hungLog) Close() error                                 { <-l.until; return nil }
func (l hungLog) Rotate() error                                { return audit.ErrUnavailable }
func (l hungLog) Head() audit.Head                             { return audit.Head{} }

// [CL-API-019]
func TestHungDiskDoesNotKeepTheServiceFromStopping(t *testing.T) {
	until := make(chan struct{})
	defer close(until)
	s := &Server{
		cfg: config.Config{GracePeriod: time.Second}, log: slog.New(slog.DiscardHandler), audit: hungLog{until},
		api: &http.Server{ReadHeaderTimeout: time.Second}, admin: &http.Server{ReadHeaderTimeout: time.Second},
	}
	start := time.Now()
	err := s.shutdown()
	if took := time.Since(start); err == nil || took > closeTimeout+2*time.Second {
		t.Fatalf("%v after %s", err, took)
	}
}

func TestWithin(t *testing.T) {
	failure := errors.New("failure")
	for _, want := range []error{nil, failure} {
		if err := within(time.Second, func() error { return want }); !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
	}
}
