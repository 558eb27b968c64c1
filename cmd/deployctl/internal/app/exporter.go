package app

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/internal/service/metrics"
	"github.com/deployctl/deployctl/internal/sys/build"
	"github.com/deployctl/deployctl/internal/sys/diskspace"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/recovery"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
)

// exporter collects the metrics of this process and serves them on the address of the setting metrics-listen. Off
// loopback it uses the certificate of the settings, if there is one. Without an address it is nil and collects nothing.
type exporter struct {
	*metrics.Metrics
	listener net.Listener
	token    string // empty on loopback, unless it is set
}

func openExporter(s settings.Settings, log *slog.Logger) (*exporter, error) {
	address := s.Get(settings.Metrics)
	if address == "" {
		return nil, nil
	}
	token, err := s.Secret(settings.MetricsToken)
	if err != nil {
		return nil, err
	}
	if token == "" && !grpcapi.IsLoopback(address) {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			"%s (metrics-listen) is not on loopback, so metrics need a token: set metrics-token-file, or listen on "+
				"127.0.0.1", address)
	}
	var secure *tls.Config
	if !grpcapi.IsLoopback(address) {
		if secure, err = certificate(s, log); err != nil {
			return nil, err
		}
	}
	listener, err := grpcapi.Open(address)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeUnavailable,
			"cannot listen on %s for metrics (metrics-listen): %w", address, err)
	}
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	} else if !grpcapi.IsLoopback(address) && log != nil {
		log.Warn("metrics and their token cross the network unencrypted: set tls-cert and tls-key", "address", address)
	}
	e := &exporter{metrics.New(build.Of(recovery.Build)), listener, token}
	if secure != nil {
		e.certificate(secure)
	}
	return e, nil
}

// serve answers /metrics, /livez and /readyz until ctx ends.
func (e *exporter) serve(ctx context.Context, v *readiness) error {
	if e == nil {
		<-ctx.Done()
		return nil
	}
	e.Ready(func() bool { ready, _ := v.ready(); return ready })
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", e.Handler(e.token))
	v.register(mux)
	return serveHTTP(ctx, e.listener, mux)
}

// close frees the address, also if serve was never called.
func (e *exporter) close() {
	if e != nil {
		_ = e.listener.Close() // serve may have closed it
	}
}

func (e *exporter) sdk() client.MetricsHandler {
	if e == nil {
		return nil
	}
	return e.SDK()
}

func (e *exporter) work() []interceptor.WorkerInterceptor {
	if e == nil {
		return nil
	}
	return []interceptor.WorkerInterceptor{e.Work()}
}

// unattended counts waits for a worker.
func (e *exporter) unattended() func(attended bool) {
	if e == nil {
		return nil
	}
	return e.Unattended
}

// hosts takes what tells which updates the worker hosts.
func (e *exporter) hosts() func(since func() []time.Time) {
	if e == nil {
		return nil
	}
	return e.Hosts
}

// certificate shows when the certificate in use expires.
func (e *exporter) certificate(secure *tls.Config) {
	if e != nil && secure != nil {
		e.CertificateEnds(func() (time.Time, error) { return grpcapi.CertificateEnds(secure) })
	}
}

// disk shows how much room there is for the files of programs.
func (e *exporter) disk(dir string) {
	if e != nil {
		e.FreeDisk(func() (uint64, bool) {
			space, told := diskspace.Of(dir)
			return space.Free, told
		})
	}
}

// schedules shows how many schedules there are.
func (e *exporter) schedules(count metrics.CountSchedules) {
	if e != nil {
		e.Schedules(count)
	}
}

// followQuotas shows what organizations use, until ctx ends.
func (e *exporter) followQuotas(ctx context.Context, s *service.Service, log *slog.Logger) error {
	if e == nil {
		<-ctx.Done()
		return nil
	}
	return e.FollowQuotas(ctx, func(ctx context.Context) ([]deployments.QuotaUse, error) { return s.Quotas(ctx, "") }, log)
}

// previewEnded counts previews of the stock CLI.
func (e *exporter) previewEnded() func(deployments.UpdateInfo) {
	if e == nil {
		return nil
	}
	return e.PreviewEnded
}

// spans shows what became of the spans of this process.
func (e *exporter) spans(t *tracing.Tracing) {
	if e != nil && t != nil {
		e.Spans(t.Counts)
	}
}

// pulumi counts calls of the Pulumi Service API.
func (e *exporter) pulumi() func(route string, status int, took time.Duration) {
	if e == nil {
		return nil
	}
	return e.Pulumi
}

// auditFailed counts entries that are not in the audit log.
func (e *exporter) auditFailed() func(entries int) {
	if e == nil {
		return nil
	}
	return e.AuditFailed
}

// collected counts what workers remove.
func (e *exporter) collected() func(statestore.Collected) {
	if e == nil {
		return nil
	}
	return e.Collected
}

// settled counts what settling creates came to.
func (e *exporter) settled() func(pkg, rule, result string) {
	if e == nil {
		return nil
	}
	return e.Settled
}

// objects counts the calls of the object store.
func (e *exporter) objects() func(bucket.Objects) bucket.Objects {
	if e == nil {
		return nil
	}
	return e.Objects
}

// calls counts calls of the API.
func (e *exporter) calls(c grpcapi.Config) grpcapi.Config {
	if e != nil {
		c.Unary, c.Stream = e.Unary, e.Stream
	}
	return c
}
