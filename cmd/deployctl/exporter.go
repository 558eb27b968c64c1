package main

import (
	"context"
	"net"

	"github.com/deployctl/deployctl/internal/grpcapi"
	"github.com/deployctl/deployctl/internal/metrics"
	"github.com/deployctl/deployctl/internal/settings"
	"github.com/deployctl/deployctl/statestore"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/interceptor"
)

// exporter counts what this process does and shows it on the address of the setting metrics-listen. Without that it is nil,
// and counts nothing.
type exporter struct {
	*metrics.Metrics
	listener net.Listener
}

func openExporter(s settings.Settings) (*exporter, error) {
	address := s.Get(settings.Metrics)
	if address == "" {
		return nil, nil
	}
	listener, err := metrics.Listen(address)
	if err != nil {
		return nil, err
	}
	return &exporter{metrics.New(), listener}, nil
}

// serve answers until ctx ends.
func (e *exporter) serve(ctx context.Context) error {
	if e == nil {
		<-ctx.Done()
		return nil
	}
	return e.Serve(ctx, e.listener)
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

// calls makes the API's calls count.
func (e *exporter) calls(c grpcapi.Config) grpcapi.Config {
	if e != nil {
		c.Unary, c.Stream = e.Unary, e.Stream
	}
	return c
}
