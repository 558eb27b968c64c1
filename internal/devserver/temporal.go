package devserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver/parts"
	"github.com/gofrs/flock"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Namespace is the Temporal namespace of the embedded service.
const Namespace = "deployctl"

// retention is how long closed workflows stay readable.
const retention = 30 * 24 * time.Hour

// SearchAttributes are the attributes that updates are found by in the Web UI; every start makes sure of them.
func SearchAttributes() map[string]enums.IndexedValueType {
	kinds := map[string]enums.IndexedValueType{}
	for _, name := range deployments.SearchAttributes {
		kinds[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	return kinds
}

// Temporal is a running Temporal server with the namespace Namespace in it.
type Temporal struct {
	Address string // host:port of its gRPC frontend
	// path of the certificate, its key and its authority, all in one PEM file, that a client must show
	Credentials string

	stop      func() error // nil until it was started
	lock      *flock.Flock
	log       *logFile
	listeners []net.Listener
}

// StartTemporal runs the Temporal server of a home in this process and returns once it answers. It is a part of Start,
// and stands alone for tests that kill the parts one by one.
func StartTemporal(ctx context.Context, homePath string, servers parts.Servers) (*Temporal, error) {
	h, err := openHome(homePath)
	if err != nil {
		return nil, err
	}
	var r reserved
	defer r.release()
	data, err := ensureData(ctx, h, Ports{}, &r)
	if err != nil {
		return nil, err
	}
	return startTemporal(ctx, h, data, servers)
}

func startTemporal(ctx context.Context, h home, data data, servers parts.Servers) (*Temporal, error) {
	lock, err := acquire(ctx, h, lockTemporal, 10*time.Second)
	if err != nil {
		return nil, fmt.Errorf("open Temporal's database in %s: %w", h.temporal(), err)
	}
	t := &Temporal{Address: address(data.ports.Temporal), Credentials: data.identity.path, lock: lock}
	if err := t.start(ctx, h, data, servers); err != nil {
		return nil, errors.Join(err, t.Close(context.WithoutCancel(ctx)))
	}
	return t, nil
}

func (t *Temporal) start(ctx context.Context, h home, data data, servers parts.Servers) error {
	err := ensureDatabase(h, servers)
	if err != nil {
		return err
	}
	if t.log, err = openLog(h, "temporal.log"); err != nil {
		return err
	}
	config := parts.Temporal{
		Database: h.database(),
		Server:   data.identity.server(), Client: data.identity.client(),
		Log: t.log, LogPath: t.log.path, StartLimit: startPatience,
		Namespace: Namespace, Retention: retention, SearchAttributes: SearchAttributes(),
	}
	if config.Frontend, err = openPort(data.ports.Temporal); err != nil {
		return err
	}
	t.listeners = append(t.listeners, config.Frontend)
	for i := range config.Inner { // nobody outside knows these: chosen at every start
		if config.Inner[i], err = openInner(); err != nil {
			return err
		}
		t.listeners = append(t.listeners, config.Inner[i])
	}
	if t.stop, err = servers.StartTemporal(config); err != nil {
		return err
	}
	if err := t.prepare(ctx, data.identity); err != nil {
		return fmt.Errorf("wait for the Temporal server (see %s): %w", t.log.path, err)
	}
	return nil
}

// Close ends the server. Workers and clients are to be closed before. It gives up waiting when ctx ends; what the
// server was doing then is as safe as after a kill, and the database stays locked until the process ends.
func (t *Temporal) Close(ctx context.Context) error {
	var err error
	if t.stop != nil {
		stopped := make(chan error, 1)
		go func() { stopped <- t.stop() }()
		select {
		case err = <-stopped:
		case <-ctx.Done():
			return fmt.Errorf("wait for the Temporal server to end: %w", ctx.Err())
		}
	}
	for _, l := range t.listeners {
		_ = l.Close() // the server has, if it was started
	}
	if t.log != nil {
		err = errors.Join(err, t.log.Close())
	}
	return errors.Join(err, t.lock.Close())
}

// prepare waits until the namespace answers and has the search attributes of this version. Namespaces made by an
// earlier version have fewer.
func (t *Temporal) prepare(ctx context.Context, id *identity) error {
	conn, err := grpc.NewClient(t.Address, grpc.WithTransportCredentials(credentials.NewTLS(id.client())))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	frontend, operator := workflowservice.NewWorkflowServiceClient(conn), operatorservice.NewOperatorServiceClient(conn)
	err = eventually(ctx, func(ctx context.Context) error {
		_, err := frontend.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: Namespace})
		return err
	})
	if err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) error {
		have, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{
			Namespace: Namespace})
		if err != nil {
			return err
		}
		missing := map[string]enums.IndexedValueType{}
		for name, kind := range SearchAttributes() {
			if _, ok := have.GetCustomAttributes()[name]; !ok {
				missing[name] = kind
			}
		}
		if len(missing) == 0 {
			return nil
		}
		_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
			Namespace: Namespace, SearchAttributes: missing,
		})
		return errors.Join(err, errors.New("search attributes were just added"))
	})
}

// startPatience is how long a server that was started may take until it answers.
const startPatience = 60 * time.Second

// eventually tries until try succeeds, and returns its last error when ctx ends or a start has taken too long.
func eventually(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := try(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(lockRetry):
		}
	}
}
