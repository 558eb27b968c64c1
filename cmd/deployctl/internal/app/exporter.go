package app

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/grpcapi"
	"github.com/deployctl/deployctl/internal/metrics"
	"github.com/deployctl/deployctl/internal/settings"
	"github.com/deployctl/deployctl/statestore"
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
	return &exporter{metrics.New(), listener, token}, nil
}

// serve answers /metrics, /livez and /readyz until ctx ends.
func (e *exporter) serve(ctx context.Context, v *readiness) error {
	if e == nil {
		<-ctx.Done()
		return nil
	}
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
func (e *exporter) unattended() func() {
	if e == nil {
		return nil
	}
	return e.Unattended
}

// collected counts what workers remove.
func (e *exporter) collected() func(statestore.Collected) {
	if e == nil {
		return nil
	}
	return e.Collected
}

// objects counts the calls of the object store.
func (e *exporter) objects() func(statestore.Objects) statestore.Objects {
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
