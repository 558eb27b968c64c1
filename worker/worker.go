package worker

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/pluginhost/process"
	"github.com/deployctl/deployctl/internal/runclient"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/workflows"
)

// Options are a worker process's own.
type Options struct {
	// Instance names the process; empty means a random name. No two processes ever have the same.
	Instance string
	// Gone are instances that are known to have ended, however: what they were doing is reported as lost.
	Gone []string
	// Dir is where the files of programs are kept; empty means a temporary directory.
	Dir string
	// Sandbox keeps what is run for updates apart from this process and from each other; nil: nothing does.
	Sandbox *sandbox.Policy
	// Builtin are the packages that are served in this process, by name, with the environment of the update.
	Builtin map[string]func(process.Surroundings) pulumirpc.ResourceProviderServer
	// Retention is what is kept of stacks; nil: all. Collected, if not nil, is told what was removed.
	Retention *statestore.Retention
	Collected func(statestore.Collected)
	// Interceptors see every activity.
	Interceptors []interceptor.WorkerInterceptor
	// Deployment names the worker deployment that this worker is of, on a server that knows versions; empty means that it
	// carries out the workflows of every build.
	Deployment string
	// Workflows are settings for tests.
	Workflows workflows.Settings
}

const (
	// stopTimeout is how long running activities may take to report when the worker stops.
	stopTimeout = 30 * time.Second
	// deadlock is how long workflow code may run without a yield: a loaded machine is no defect.
	deadlock = 10 * time.Second
	// sticky is how long a workflow waits for the worker that has it in memory: one that sleeps is not to hold it up for long.
	sticky = 2 * time.Second
	// concurrent bounds the activities of a queue: the steps of the largest update, half as many ahead, and room for others.
	concurrent = 2 * deployments.MaxParallel
	// places are how many updates may begin by schedule at a time: however many are due at once, who works here is not crowded out.
	places = 4
)

// Run carries updates out until ctx ends; then it finishes the steps that run, for stopTimeout at most, and ends what it has
// started. A worker polls the queue that all share, one of its own on which it does everything of
// the updates that it hosts, and the one where what runs by schedule waits for a place.
func (c *Connection) Run(ctx context.Context, o Options) error {
	if o.Instance == "" {
		o.Instance = uuid.NewString()
	}
	if o.Dir == "" {
		dir, remove, err := temporaryPlace(o.Sandbox.Mode())
		if err != nil {
			return deployments.Errorf(deployments.CodeUnavailable, "make a directory for programs: %w", err)
		}
		defer remove()
		o.Dir = dir
	}
	private := deployments.PrivateTaskQueue(o.Instance)
	c.eager.serve(private)
	acts := activities.New(activities.Options{
		Store: c.Store, Runs: runclient.New(c.Client), Heart: heart{c.Client}, Worker: private, Dir: o.Dir,
		Env: os.Environ(), Builtin: o.Builtin, Sandbox: o.Sandbox,
		Housekeeping: activities.Housekeeping{Retention: o.Retention, Collected: c.collected(o.Collected)}, Unseen: c.unseenVersion,
	})
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
		defer cancel()
		activities.Close(closing, acts)
	}()
	failed := make(chan error, 2)
	options := worker.Options{
		Identity: private,
		DeploymentOptions: worker.DeploymentOptions{Version: worker.WorkerDeploymentVersion{
			DeploymentName: deployments.SharedTaskQueue,
			BuildID:        build, // else the SDK takes a checksum of the whole binary at every start
		}},
		WorkerStopTimeout: stopTimeout, DeadlockDetectionTimeout: deadlock, StickyScheduleToStartTimeout: sticky,
		MaxConcurrentActivityExecutionSize: concurrent,
		Interceptors:                       append([]interceptor.WorkerInterceptor{&panics{}, &contexts{}, &resets{}, &names{}}, o.Interceptors...),
		OnFatalError:                       func(err error) { failed <- err },
	}
	alone := options
	alone.DisableWorkflowWorker = true
	hosting, err := c.eager.room(alone)
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "make room for activities: %w", err)
	}
	own := worker.New(c.Client, private, hosting)
	own.RegisterActivity(acts)
	if o.Deployment != "" {
		options.DeploymentOptions.UseVersioning, options.DeploymentOptions.Version.DeploymentName = true, o.Deployment
	} else if len(o.Gone) > 0 {
		c.moveUnfit(ctx)
	}
	shared := worker.New(c.Client, deployments.SharedTaskQueue, options)
	workflows.New(o.Workflows).Register(shared)
	shared.RegisterActivity(acts)
	shared.RegisterActivity(&recovery{c, acts})
	scheduled := &scheduling{c, c.Service()}
	shared.RegisterActivity(scheduled)
	few := alone
	few.MaxConcurrentActivityExecutionSize = places
	beginning := worker.New(c.Client, deployments.ScheduledTaskQueue, few)
	beginning.RegisterActivity(scheduled)
	stop, err := start(own, shared, beginning)
	defer stop()
	if err != nil {
		return deployments.Errorf(deployments.CodeUnavailable, "start the worker: %w", err)
	}
	go c.disown(ctx, o.Gone)
	go c.closeUnbound(ctx)
	go c.reap(ctx, acts)
	if o.Deployment != "" {
		go c.keepCurrent(ctx, o.Deployment)
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return deployments.Errorf(deployments.CodeUnavailable, "the worker cannot go on: %w", err)
	}
}

// start starts workers one after another, and gives what stops those that were started, all at once.
func start(workers ...worker.Worker) (stop func(), err error) {
	var started []worker.Worker
	for _, w := range workers {
		if err = w.Start(); err != nil {
			break
		}
		started = append(started, w)
	}
	return func() {
		var stopping sync.WaitGroup
		for _, w := range started {
			stopping.Go(w.Stop)
		}
		stopping.Wait()
	}, err
}
