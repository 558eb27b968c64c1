package worker

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"google.golang.org/grpc"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/seal"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/recovery"
	"github.com/deployctl/deployctl/statestore"
)

// Config is what a service and its workers stand on.
type Config struct {
	Temporal Temporal
	S3       statestore.S3Options
	// Keepers wrap the keys that everything is sealed with: the first is the service's, others are those that it had
	// before.
	Keepers []seal.Keeper
	// Adopt: see statestore.Options.
	Adopt bool
	// SetUp: an empty bucket gets its keys and the store in it its identity; else an empty bucket is an error.
	SetUp bool
	// Look: Examine writes nothing.
	Look bool
	// Patience is how long parts that cannot be reached are waited for, at the start and later.
	Patience time.Duration
	Log      *slog.Logger
	// Metrics takes what the SDK counts; nil for nothing.
	Metrics client.MetricsHandler
	// Watched decorates the object store with what counts its calls; nil for nothing.
	Watched func(statestore.Objects) statestore.Objects
}

// Connection is a Temporal client that seals everything, and the store beside it.
type Connection struct {
	Client client.Client
	Store  *statestore.Store

	*objects
	readers service.Readers
	config  Config
	eager   *eager
	stop    context.CancelFunc // of what follows the keys
}

// objects is a bucket, and the store in it.
type objects struct {
	*statestore.Store
	s3      *statestore.S3
	once    statestore.Objects // makes one attempt of each call
	retried statestore.Objects
}

// Connect opens the store and the client. Parts that do not answer are tried again, quietly, for as long as the
// configuration's patience lasts; then the error says what could not be reached.
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

// connectTo connects to Temporal, for a store that is open.
func connectTo(ctx context.Context, c Config, store *objects) (*Connection, error) {
	c.Patience = c.patience()
	options, err := c.Temporal.options(c, store.Keyring())
	if err != nil {
		return nil, err
	}
	eager := newEager()
	options.ConnectionOptions.DialOptions = []grpc.DialOption{grpc.WithChainUnaryInterceptor(eager.intercept)}
	dialing, cancel := context.WithTimeout(ctx, c.Patience)
	defer cancel()
	connected, err := c.Temporal.dial(dialing, options)
	if err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	go store.FollowKeys(following, cmp.Or(c.Log, slog.New(slog.DiscardHandler)))
	readers := service.Readers{Data: options.DataConverter, Failures: options.FailureConverter,
		Namespace: c.Temporal.Namespace}
	return &Connection{Client: connected, Store: store.Store, objects: store, readers: readers, config: c, eager: eager,
		stop: stop}, nil
}

// patience is how long parts are waited for.
func (c Config) patience() time.Duration {
	if c.Patience <= 0 {
		return 30 * time.Second
	}
	return c.Patience
}

// OpenStore opens the store alone, with its keys.
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

// setUp has an empty bucket set up, if that is asked for.
func (c Config) setUp(ctx context.Context, store *objects) error {
	switch {
	case store.IsSetUp():
		return nil
	case !c.SetUp:
		return empty(store)
	}
	return store.SetUp(ctx)
}

// empty is the error about a bucket that nobody has set up.
func empty(store *objects) error {
	return deployments.Errorf(deployments.CodeInvalid, "the %s is empty: start `deployctl serve` on it first, or set "+
		"s3.bucket and s3.prefix "+
		"to those of the service", store.s3)
}

// openStore opens a bucket and the store in it, and checks that it can be used, with its keys.
func openStore(ctx context.Context, c Config) (*objects, error) {
	bucket, err := statestore.OpenS3(ctx, c.S3)
	if err != nil {
		return nil, err
	}
	o := &objects{s3: bucket, once: bucket}
	if c.Watched != nil {
		o.once = c.Watched(bucket)
	}
	o.retried = statestore.NewRetry(o.once, c.patience())
	options := statestore.Options{Keepers: c.Keepers, Adopt: c.Adopt, KeepEmpty: true}
	if o.Store, err = statestore.New(o.retried, options); err != nil {
		return nil, err
	}
	return o, o.Check(ctx)
}

// Service is the service on the connection.
func (c *Connection) Service() *service.Service { return service.New(c.Client, c.Store, c.readers) }

// recovery returns the recovery of the store's updates.
func (c *Connection) recovery() *recovery.Recovery {
	opener := newCodec(c.Store.Keyring(), c.config.Temporal.Namespace)
	opener.earlier = true // updates that earlier builds began are recovered, too
	data := converter.NewCodecDataConverter(converter.GetDefaultDataConverter(), opener)
	return &recovery.Recovery{
		Client: c.Client, Namespace: c.config.Temporal.Namespace, Store: c.Store,
		Log:  cmp.Or(c.config.Log, slog.New(slog.DiscardHandler)),
		Data: data, Failures: newFailures(data), Unbound: unbound,
	}
}

// Close ends the client's connections.
func (c *Connection) Close() {
	c.stop()
	c.Client.Close()
}
