package main

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
	"github.com/deployctl/deployctl/internal/settings"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// How often Temporal and S3 are asked, how long an answer may take, and for how long the last answer of both makes a
// process ready.
const (
	vitalsPause, vitalsPatience = 5 * time.Second, 2 * time.Second
	vitalsRest                  = time.Second // between looks, however much somebody wants to know
	readyFor                    = 12 * time.Second
)

// vitals reports whether a process can do its work: over HTTP, and for serve also by gRPC's health protocol.
type vitals struct {
	// answers reports which part does not answer now.
	answers  func(context.Context) error
	grpc     *health.Server
	log      *slog.Logger
	reported bool          // what was reported last; of watch alone
	asked    chan struct{} // somebody wants to know

	mu       sync.Mutex
	answered time.Time // when all parts last did
	err      error     // why they do not, now
}

// newVitals begins with everything well: the caller has just connected.
func newVitals(answers func(context.Context) error, log *slog.Logger) *vitals {
	return &vitals{answers: answers, grpc: health.NewServer(), log: log, reported: true, answered: time.Now(),
		asked: make(chan struct{}, 1)}
}

// alsoNeeds has the process be ready only while need says nothing, too. It is called before watch.
func (v *vitals) alsoNeeds(need func() error) {
	answers := v.answers
	v.answers = func(ctx context.Context) error {
		if err := need(); err != nil {
			return err
		}
		return answers(ctx)
	}
}

// watch asks the parts again and again until ctx ends.
func (v *vitals) watch(ctx context.Context) error {
	ticks := time.NewTicker(vitalsPause)
	defer ticks.Stop()
	for {
		v.look(ctx)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(vitalsRest):
		}
		select {
		case <-ctx.Done():
			return nil
		case <-v.asked:
		case <-ticks.C:
		}
	}
}

// look asks the parts once, and tells what that changes.
func (v *vitals) look(ctx context.Context) {
	asking, cancel := context.WithTimeout(ctx, vitalsPatience)
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

// away says which part did not answer when they were asked last, and has them asked again soon.
func (v *vitals) away() error {
	select {
	case v.asked <- struct{}{}:
	default: // somebody else has asked
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.err
}

// ready says whether all parts answered lately, and why not.
func (v *vitals) ready() (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.err == nil || time.Since(v.answered) < readyFor {
		return true, nil
	}
	return false, v.err
}

// register adds /livez, which answers while the process does, and /readyz, which answers 200 while it can work.
func (v *vitals) register(mux *http.ServeMux) {
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if ready, _ := v.ready(); !ready { // why not is in the log: anybody may ask here
			http.Error(w, "not ready: see the log for the reason", http.StatusServiceUnavailable)
			return
		}
		_, _ = fmt.Fprintln(w, "ready")
	})
}

// openHealth opens the address of the setting health-listen; nil without one. It shows nothing that is anybody's, so it
// may be off loopback.
func openHealth(s settings.Settings) (net.Listener, error) {
	address := s.Get(settings.Health)
	if address == "" {
		return nil, nil
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeUnavailable,
			"cannot listen on %s for health checks (health-listen): %w", address, err)
	}
	return listener, nil
}

// serveHealth answers on the listener, which it closes, until ctx ends; without one it waits for that.
func (v *vitals) serveHealth(ctx context.Context, listener net.Listener) error {
	if listener == nil {
		<-ctx.Done()
		return nil
	}
	mux := http.NewServeMux()
	v.register(mux)
	return serveHTTP(ctx, listener, mux)
}

// serveHTTP answers on the listener, which it closes, until ctx ends. A handler that panics ends its own request.
func serveHTTP(ctx context.Context, listener net.Listener, handler http.Handler) error {
	server := &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, IdleTimeout: time.Minute,
		MaxHeaderBytes: 16 << 10,
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
