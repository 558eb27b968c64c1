package worker

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/recovery"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// Config configures a service or a worker.
type Config struct {
	Temporal Temporal
	S3       bucket.S3Options
	// Keepers wrap the keys with which everything is sealed: the first is the current one, others are former ones.
	Keepers []seal.Keeper
	// Adopt is that of statestore.Options.
	Adopt bool
	// SetUp lets an empty bucket get its keys and identity; without it an empty bucket is an error.
	SetUp bool
	// ReadOnly makes Examine write nothing.
	ReadOnly bool
	// Patience is how long to wait for unreachable parts, at the start and later.
	Patience time.Duration
	Log      *slog.Logger
	// Metrics gets the SDK's metrics; nil for none.
	Metrics client.MetricsHandler
	// Tracing makes spans of the worker's activities; nil: none.
	Tracing *tracing.Tracing
	// WrapObjects decorates the object store, for metrics; nil for none.
	WrapObjects func(bucket.Objects) bucket.Objects
}

// Connection is a Temporal client whose payloads are sealed, and a store.
type Connection struct {
	Client client.Client
	Store  *statestore.Store

	*objects
	readers service.Readers
	config  Config
	eager   *eager
	reports *reports
	stop    context.CancelFunc // of FollowKeys
}

// objects is a bucket and its store.
type objects struct {
	*statestore.Store
	s3      *bucket.S3
	once    bucket.Objects // makes one attempt at each call
	retried bucket.Objects
}

// Connect opens the store and the client. It retries unreachable parts until the patience of the configuration ends;
// then the error says what could not be reached.
func Connect(ctx context.Context, c Config) (*Connection, error) {
	store, err := openStore(ctx, c)
	if err == nil {
		err = c.setUp(ctx, store)
	}
	if err != nil {
		return nil, err
	}
	return connectTo(ctx, c, store)
}

// connectTo connects to Temporal; the store is open.
func connectTo(ctx context.Context, c Config, store *objects) (*Connection, error) {
	c.Patience = c.patience()
	options, err := c.Temporal.options(c, store.Keys.Ring())
	if err != nil {
		return nil, err
	}
	eager, reports := newEager(), &reports{}
	options.ConnectionOptions.DialOptions = []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(eager.intercept, reports.intercept)}
	dialing, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	connected, err := c.Temporal.dial(dialing, options)
	if err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	go store.Keys.Follow(following, c.log())
	readers := service.Readers{Data: options.DataConverter, Failures: options.FailureConverter,
		Namespace: c.Temporal.Namespace}
	return &Connection{Client: connected, Store: store.Store, objects: store, readers: readers, config: c, eager: eager,
		reports: reports, stop: stop}, nil
}

// log returns the log, which goes nowhere if there is none.
func (c Config) log() *slog.Logger { return cmp.Or(c.Log, slog.New(slog.DiscardHandler)) }

// patience returns how long to wait for unreachable parts.
func (c Config) patience() time.Duration {
	if c.Patience <= 0 {
		return bucket.Patience
	}
	return c.Patience
}

// OpenStore opens only the store, with its keys.
func OpenStore(ctx context.Context, c Config) (*statestore.Store, error) {
	store, err := openStore(ctx, c)
	if err == nil {
		err = c.setUp(ctx, store)
	}
	if err != nil {
		return nil, err
	}
	return store.Store, nil
}

// setUp sets up an empty bucket, if the configuration says so.
func (c Config) setUp(ctx context.Context, store *objects) error {
	switch {
	case store.Keys.IsSetUp():
		return nil
	case !c.SetUp:
		return empty(store)
	}
	return store.Keys.SetUp(ctx)
}

// empty returns the error about a bucket that is not set up.
func empty(store *objects) error {
	return deployments.Errorf(deployments.CodeInvalid, "the %s is empty: start `deployctl serve` on it first, or set "+
		"s3.bucket and s3.prefix "+
		"to those of the service", store.s3)
}

// openStore opens a bucket and its store, and checks that the bucket answers and belongs to the keys of c. An empty
// bucket is accepted.
func openStore(ctx context.Context, c Config) (*objects, error) {
	s3, err := bucket.OpenS3(ctx, c.S3)
	if err != nil {
		return nil, err
	}
	o := &objects{s3: s3, once: s3}
	if c.WrapObjects != nil {
		o.once = c.WrapObjects(s3)
	}
	o.retried = bucket.NewRetry(o.once, c.patience())
	options := statestore.Options{Keepers: c.Keepers, Adopt: c.Adopt, KeepEmpty: true}
	if o.Store, err = statestore.New(o.retried, options); err != nil {
		return nil, err
	}
	return o, o.Check(ctx)
}

// Service returns the service on the connection.
func (c *Connection) Service() *service.Service { return service.New(c.Client, c.Store, c.readers) }

// recovery returns the recovery of the store's updates.
func (c *Connection) recovery() *recovery.Recovery {
	opener := newCodec(c.Store.Keys.Ring(), c.config.Temporal.Namespace)
	opener.earlier = true // updates that older releases began are recovered, too
	data := newDataConverter(opener)
	return &recovery.Recovery{
		Client: c.Client, Namespace: c.config.Temporal.Namespace, Store: c.Store,
		Log:  c.config.log(),
		Data: data, Failures: newFailures(data), Unbound: unbound,
	}
}

// Close ends the client's connections.
func (c *Connection) Close() {
	c.stop()
	c.Client.Close()
}
