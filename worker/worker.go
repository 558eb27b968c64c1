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
	"github.com/deployctl/deployctl/recovery"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/workflows"
)

// Options are a worker process's own.
type Options struct {
	// Instance names the process; empty means a random name. No two processes ever have the same.
	Instance string
	// Gone are instances that are known to have ended, however: what they were doing is reported as lost.
	Gone []string
	// Organizations are those whose updates run on this worker, and on others of theirs, and nowhere else; empty: those
	// of all organizations that have no workers of their own.
	Organizations []string
	// Dir is where the files of programs are kept.
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
	// Deployment names the worker deployment that this worker is of, on a server that knows versions; empty means that
	// it carries out the workflows of every build.
	Deployment string
	// Workflows are settings for tests.
	Workflows workflows.Settings
}

const (
	// stopTimeout is how long running activities may take to report when the worker stops.
	stopTimeout = 30 * time.Second
	// deadlock is how long workflow code may run without a yield: a loaded machine is no defect.
	deadlock = 10 * time.Second
	// sticky is how long a workflow waits for the worker that has it in memory: one that sleeps is not to hold it up
	// for long.
	sticky = 2 * time.Second
	// concurrent bounds the activities of a queue: the steps of the largest update, half as many ahead, and room for
	// others.
	concurrent = 2 * deployments.MaxParallel
	// places are how many updates may begin by schedule at a time: however many are due at once, who works here is not
	// crowded out.
	places = 4
)

// Run carries updates out until ctx ends; then it finishes the steps that run, for stopTimeout at most, and ends what
// it has started. A worker polls the queue that all share, or those of its organizations, one of its own on which it
// does everything of the updates that it hosts, and the ones where what runs by schedule waits for a place.
func (c *Connection) Run(ctx context.Context, o Options) error {
	if o.Instance == "" {
		o.Instance = uuid.NewString()
	}
	if err := c.dedicate(ctx, o.Organizations); err != nil {
		return err
	}
	private := deployments.PrivateTaskQueue(o.Instance)
	c.eager.serve(private)
	acts := activities.New(activities.Options{
		Store: c.Store, Runs: runclient.New(c.Client), Heart: heart{c.Client}, Worker: private,
		Organizations: o.Organizations, Dir: o.Dir,
		Env: os.Environ(), Builtin: o.Builtin, Sandbox: o.Sandbox,
		Housekeeping: activities.Housekeeping{Retention: o.Retention, Collected: c.collected(o.Collected)},
		Unseen:       c.unseenVersion,
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
			BuildID:        recovery.Build, // else the SDK takes a checksum of the whole binary at every start
		}},
		WorkerStopTimeout: stopTimeout, DeadlockDetectionTimeout: deadlock, StickyScheduleToStartTimeout: sticky,
		MaxConcurrentActivityExecutionSize: concurrent,
		Interceptors: append([]interceptor.WorkerInterceptor{&panicGuard{}, &contexts{}, &resets{},
			&names{}}, o.Interceptors...),
		OnFatalError: func(err error) { failed <- err },
	}
	alone := options
	alone.DisableWorkflowWorker = true
	hosting, err := c.eager.room(alone)
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "make room for activities: %w", err)
	}
	own := worker.New(c.Client, private, hosting)
	own.RegisterActivity(acts)
	if o.Deployment == "" && len(o.Gone) > 0 {
		c.recovery().MigrateIncompatible(ctx)
	}
	all := []worker.Worker{own}
	for _, queue := range c.queues(o.Organizations) {
		all = append(all, c.serving(queue, o, options, acts)...)
	}
	stop, err := start(all...)
	defer stop()
	if err != nil {
		return deployments.Errorf(deployments.CodeUnavailable, "start the worker: %w", err)
	}
	go c.recovery().FailOrphans(ctx, o.Gone)
	go c.recovery().CloseUnbound(ctx)
	go c.reap(ctx, acts)
	if o.Deployment != "" {
		for _, queue := range c.queues(o.Organizations) {
			go c.recovery().KeepCurrent(ctx, recovery.Deployment{Name: deploymentOf(o.Deployment, queue), Queue: queue})
		}
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-failed:
		return deployments.Errorf(deployments.CodeUnavailable, "the worker cannot go on: %w", err)
	}
}

// serving makes the workers of a queue that others poll, too: one for its workflows and what any worker of the queue
// can do, and one that takes few of those that run by schedule.
func (c *Connection) serving(
	queue string, o Options, options worker.Options, acts *activities.Activities,
) []worker.Worker {
	few := options
	few.DisableWorkflowWorker, few.MaxConcurrentActivityExecutionSize = true, places
	if o.Deployment != "" {
		options.DeploymentOptions.UseVersioning = true
		options.DeploymentOptions.Version.DeploymentName = deploymentOf(o.Deployment, queue)
	}
	shared := worker.New(c.Client, queue, options)
	workflows.New(o.Workflows).Register(shared)
	shared.RegisterActivity(acts)
	shared.RegisterActivity(c.recovery().Activities(acts))
	scheduled := &scheduling{c, c.Service()}
	shared.RegisterActivity(scheduled)
	beginning := worker.New(c.Client, deployments.ScheduledTaskQueue(queue), few)
	beginning.RegisterActivity(scheduled)
	return []worker.Worker{shared, beginning}
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
