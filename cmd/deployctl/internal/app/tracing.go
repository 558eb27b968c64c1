package app

import (
	"context"
	"crypto/x509"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/build"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/recovery"
)

// exportRest is how long a service that ends goes on to export spans, exportLast how long a command does.
const (
	exportRest = 5 * time.Second
	exportLast = time.Second
)

// tracingOf reads the settings of traces, for a process of a kind; nil if there are to be none. A command has no log,
// and says nothing about an export that fails.
func tracingOf(s settings.Settings, kind, instance string, log *slog.Logger) (*tracing.Tracing, error) {
	endpoint := s.Get(settings.TracingEndpoint)
	if endpoint == "" {
		return nil, nil
	}
	if instance == "" {
		host, _ := os.Hostname() // it is a help only
		instance = host + ":" + strconv.Itoa(os.Getpid())
	}
	o := tracing.Options{Endpoint: endpoint, Service: kind, Instance: instance, Brief: log == nil,
		Version: build.Of(recovery.Build).Version}
	if log != nil {
		o.Failed = func(err error) { log.Warn("spans were not exported", "endpoint", endpoint, "error", err) }
	}
	var err error
	if o.Sample, err = shareOf(s, settings.TracingSample); err != nil {
		return nil, err
	}
	if o.Headers, err = headersOf(s); err != nil {
		return nil, err
	}
	if file := s.Get(settings.TracingCACert); file != "" {
		pem, err := os.ReadFile(file)
		if o.Authorities = x509.NewCertPool(); err != nil || !o.Authorities.AppendCertsFromPEM(pem) {
			return nil, deployments.Errorf(deployments.CodeInvalid, "%s (tracing.ca-cert, set by %s) cannot be read, or has "+
				"no certificate", file, s.Source(settings.TracingCACert))
		}
	}
	t, err := tracing.Open(o)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "tracing.endpoint (set by %s): %w",
			s.Source(settings.TracingEndpoint), err)
	}
	return t, nil
}

// shareOf reads a setting that is a share.
func shareOf(s settings.Settings, key settings.Key) (float64, error) {
	share, err := strconv.ParseFloat(s.Get(key), 64)
	if err != nil || !(share >= 0 && share <= 1) {
		return 0, deployments.Errorf(deployments.CodeInvalid, "%s must be a number from 0 to 1, not %q (set by %s)", key,
			s.Get(key), s.Source(key))
	}
	return share, nil
}

// headersOf reads the headers for the collector.
func headersOf(s settings.Settings) (map[string]string, error) {
	text, err := s.Secret(settings.TracingHeaders)
	if err != nil || text == "" {
		return nil, err
	}
	headers := map[string]string{}
	for one := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(one), "=")
		if !ok || name == "" {
			return nil, deployments.Errorf(deployments.CodeInvalid, "tracing.headers must be NAME=VALUE, separated by commas")
		}
		headers[strings.ToLower(name)] = value
	}
	return headers, nil
}

// closeTracing exports what is left, for a while.
func closeTracing(t *tracing.Tracing, patience time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	t.Close(ctx)
}

// openTracing opens the traces of a serve or a worker.
func (o *start) openTracing(kind string) {
	t, err := tracingOf(o.settings, kind, o.in.instance, o.in.log)
	if o.setting(err); t == nil {
		return
	}
	o.in.tracing = t
	o.in.metrics.spans(t)
	o.opened = append(o.opened, func() { closeTracing(t, exportRest) })
}

// commandTrace is the trace of a command: its span begins when it connects to a service, with the time of the command's
// begin. caller is the place of what has called the command.
type commandTrace struct {
	begun  time.Time
	caller string

	mu      sync.Mutex
	tracing *tracing.Tracing
	span    *tracing.Span
}

// begin begins the span of the command, and returns what its calls are within: that, or what has called it.
func (t *commandTrace) begin(s settings.Settings, command string) (*tracing.Span, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.span != nil {
		return t.span, nil
	}
	var err error
	if t.tracing, err = tracingOf(s, "deployctl", "", nil); err != nil {
		return nil, err
	}
	if t.tracing == nil {
		t.span = tracing.From(t.caller)
		return t.span, nil
	}
	_, t.span = t.tracing.StartAt(tracing.At(context.Background(), t.caller), t.begun, command, tracing.Internal)
	return t.span, nil
}

// end ends the span of the command, and exports it.
func (t *commandTrace) end(code int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.tracing == nil {
		return
	}
	class := ""
	if code != 0 {
		class = strconv.Itoa(code)
	}
	t.span.Set(tracing.ExitCode.Int(code))
	t.span.End(class)
	closeTracing(t.tracing, exportLast)
}
