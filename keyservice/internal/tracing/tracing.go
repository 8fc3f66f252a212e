// Package tracing sends OpenTelemetry spans of calls, and of what they ask of Vault, over OTLP/HTTP. It is off unless configured. A
// span has method, path, status and times; it never has a body, a key or a token.
package tracing

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"time"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	"go.opentelemetry.io/otel/sdk/trace"
)

const exportTimeout = 10 * time.Second

// Options say where spans go.
type Options struct {
	Endpoint string      // https://host:port, or http:// on loopback; the path defaults to /v1/traces
	TLS      *tls.Config // nil for what the system trusts
	OneIn    int         // one call of so many is traced
	Instance string      // name of the replica
}

// CheckEndpoint says why text is no endpoint, or nil.
func CheckEndpoint(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "" || u.User != nil:
	case u.Scheme == "https":
		return nil
	case u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q is not an endpoint for traces: https://host:port, or http:// on loopback", text)
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Tracer makes spans. A nil one makes none.
type Tracer struct{ provider *trace.TracerProvider }

// Start begins to send. A collector that is away costs spans, never calls.
func Start(ctx context.Context, o Options, log *slog.Logger) (*Tracer, error) {
	options := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(o.Endpoint), otlptracehttp.WithTimeout(exportTimeout)}
	if o.TLS != nil {
		options = append(options, otlptracehttp.WithTLSClientConfig(o.TLS))
	}
	exporter, err := otlptracehttp.New(ctx, options...)
	if err != nil {
		return nil, fmt.Errorf("traces: %w", err)
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { log.Warn("traces could not be sent", "error", err) }))
	// The caller's own decision to trace is not followed: callers must not choose what this service spends.
	return &Tracer{trace.NewTracerProvider(
		trace.WithBatcher(exporter),
		trace.WithSampler(trace.TraceIDRatioBased(1/float64(max(1, o.OneIn)))),
		trace.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "cipherlane-keyservice"), attribute.String("service.instance.id", o.Instance),
		)),
	)}, nil
}

// Handler makes a span for each call.
func (t *Tracer) Handler(h http.Handler) http.Handler {
	if t == nil {
		return h
	}
	return otelhttp.NewHandler(h, "call", otelhttp.WithTracerProvider(t.provider), otelhttp.WithPublicEndpointFn(func(*http.Request) bool { return true }),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return spanName(r) }))
}

// spanName is the path with the names in it left out, so that there are few.
func spanName(r *http.Request) string {
	if r.Pattern != "" {
		return r.Pattern
	}
	return r.Method
}

// Transport makes a span for each request, below that of the call.
func (t *Tracer) Transport(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return otelhttp.NewTransport(next, otelhttp.WithTracerProvider(t.provider),
		otelhttp.WithSpanNameFormatter(func(_ string, r *http.Request) string { return "vault " + r.Method }))
}

// Close sends what is left.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}
