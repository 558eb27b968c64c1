package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// readinessPause is the interval of checks of Temporal and S3, readinessTimeout bounds one check, and readyFor is how
// long a process stays ready after the last successful check.
const (
	readinessPause, readinessTimeout = 5 * time.Second, 2 * time.Second
	readinessRest                    = time.Second // the pause between checks that clients request
	readyFor                         = 12 * time.Second
)

// readiness reports whether a process can do its work: over HTTP, and for serve also by gRPC's health protocol.
type readiness struct {
	// answers reports which part does not answer now.
	answers  func(context.Context) error
	grpc     *health.Server
	log      *slog.Logger
	reported bool          // last reported state; used by watch only
	asked    chan struct{} // asks for a check

	mu       sync.Mutex
	answered time.Time // when all parts last answered
	err      error     // of the last check
}

// newReadiness starts as ready: the caller has just connected.
func newReadiness(answers func(context.Context) error, log *slog.Logger) *readiness {
	return &readiness{answers: answers, grpc: health.NewServer(), log: log, reported: true, answered: time.Now(),
		asked: make(chan struct{}, 1)}
}

// alsoNeeds adds a condition: the process is ready only while need returns nil. Call it before watch.
func (v *readiness) alsoNeeds(need func() error) {
	answers := v.answers
	v.answers = func(ctx context.Context) error {
		if err := need(); err != nil {
			return err
		}
		return answers(ctx)
	}
}

// watch checks the parts until ctx ends.
func (v *readiness) watch(ctx context.Context) error {
	ticks := time.NewTicker(readinessPause)
	defer ticks.Stop()
	for {
		v.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(readinessRest):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-v.asked:
		case <-ticks.C:
		}
	}
}

// look checks the parts once, and logs a change.
func (v *readiness) look(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, readinessTimeout)
	defer cancel()
	err := v.answers(asking)
	if ctx.Err() != nil {
		return
	}
	v.mu.Lock()
	if v.err = err; err == nil {
		v.answered = time.Now()
	}
	v.mu.Unlock()
	now, why := v.ready()
	switch before := v.reported; {
	case before && !now:
		v.grpc.SetServingStatus("", grpc_health_v1.HealthCheckResponse_NOT_SERVING)
		v.log.Warn("not ready", "error", why)
	case now && !before:
		v.grpc.SetServingStatus("", grpc_health_v1.HealthCheckResponse_SERVING)
		v.log.Info("ready again")
	}
	v.reported = now
}

// away returns which part did not answer at the last check, and asks for another check.
func (v *readiness) away() error {
	select {
	case v.asked <- struct{}{}:
	default: // a check was requested already
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.err
}

// ready reports whether all parts have answered within readyFor; if not, it returns the reason.
func (v *readiness) ready() (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err == nil || time.Since(v.answered) < readyFor {
		return true, nil
	}
	return false, v.err
}

// register adds /livez, which answers while the process runs, and /readyz, which answers 200 while it can work.
func (v *readiness) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ready, _ := v.ready(); !ready { // the reason is in the log: this is public
			http.Error(w, "not ready: see the log for the reason", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ready")
	})
}

// openHealth opens the address of the setting health-listen; nil without one. It shows nothing private, so it may be
// off loopback.
func openHealth(s settings.Settings) (net.Listener, error) {
	address := s.Get(settings.Health)
	if address == "" {
		return nil, nil
	}
	listener, err := grpcapi.Open(address)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeUnavailable,
			"cannot listen on %s for health checks (health-listen): %w", address, err)
	}
	return listener, nil
}

// serveHealth serves on the listener, which it closes, until ctx ends; without one it waits for that.
func (v *readiness) serveHealth(ctx context.Context, listener net.Listener) error {
	if listener == nil {
		<-ctx.Done()
		return nil
	}
	mux := http.NewServeMux()
	v.register(mux)
	return serveHTTP(ctx, listener, mux)
}

// serveHTTP serves on the listener, which it closes, until ctx ends. A handler that panics ends its own request.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(grpcapi.Limited(listener)); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
