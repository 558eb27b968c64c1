package worker

import (
	"context"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/catalogue"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/bundlecache"
	"github.com/deployctl/deployctl/internal/host/runlink/runclient"
	"github.com/deployctl/deployctl/internal/host/session"
	"github.com/deployctl/deployctl/internal/jobs/deployment"
	"github.com/deployctl/deployctl/internal/jobs/scheduled"
	"github.com/deployctl/deployctl/internal/jobs/webhooks"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/recovery"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/workflows"
)

// Options are those of a worker process.
type Options struct {
	// Instance is the name of the process, which no other process ever has; empty for a random one.
	Instance string
	// Gone are instances that are known to have ended: their activities are reported as lost.
	Gone []string
	// Organizations restricts the worker to the updates of these organizations, which then run on no other workers;
	// empty: all organizations without their own workers.
	Organizations []string
	// Dir is the directory for the files of programs.
	Dir string
	// Sandbox isolates the processes of updates from this one and from each other; nil: no isolation.
	Sandbox *sandbox.Policy
	// Plugins are the servers from which plugins may be downloaded; nil: none.
	Plugins *plugins.Network
	// Sources decides from which git servers deployments may take programs.
	Sources deployment.Sources
	// Webhooks are the servers to which events may be sent.
	Webhooks webhooks.Network
	// Included are the packages whose plugin is this binary under the plugin's name, with what the environment of its
	// process ends with, as KEY=value.
	Included map[string][]string
	// Retention is what is kept of stacks; nil: everything. Collected, if not nil, is called with what was removed.
	Retention *statestore.Retention
	Collected func(statestore.Collected)
	// Taken, if not nil, is given what returns how much memory the worker has given to what strangers have made large.
	Taken func(taken func() int64)
	// Settled, if not nil, counts what settling a create came to; see activities.Options.CountSettled.
	Settled func(pkg, rule, result string)
	// Hosts, if not nil, is called at the start with what tells since when each update is hosted that this worker hosts.
	Hosts func(since func() []time.Time)
	// Interceptors are added to every activity.
	Interceptors []interceptor.WorkerInterceptor
	// Deployment is the worker deployment to which this worker belongs, on a server that supports versions; empty: it
	// runs the workflows of every build.
	Deployment string
	// Workflows are settings for tests.
	Workflows workflows.Settings
}

const (
	// stopTimeout is how long running activities may take when the worker stops.
	stopTimeout = 30 * time.Second
	// deadlock is how long workflow code may run without a yield, also on a loaded machine.
	deadlock = 10 * time.Second
	// sticky is how long a workflow task waits for the worker that has the workflow in memory, which may be suspended.
	sticky = 2 * time.Second
	// scheduledSlots is how many scheduled updates may begin at a time, so that they do not delay interactive ones.
	scheduledSlots = 4
	// deliverySlots is how many events are sent to webhooks at a time, so that slow receivers hold up nothing else.
	deliverySlots = 8
)

// Run executes updates until ctx ends; then it waits for running steps, for stopTimeout at most, and ends its
// processes. A worker polls the shared queue or those of its organizations, a private one for the updates that it
// hosts, and the queues of scheduled work.
func (c *Connection) Run(ctx context.Context, o Options) error {
	if o.Instance == "" {
		o.Instance = uuid.NewString()
	}
	if err := c.dedicate(ctx, o.Organizations); err != nil {
		if ctx.Err() != nil {
			return nil // it was asked to end while it started
		}
		return err
	}
	private := deployments.PrivateTaskQueue(o.Instance)
	c.eager.serve(private)
	if err := process.Guard(); err != nil {
		c.config.log().Warn("the guard did not start: if this worker is killed, processes that its plugins started may go on",
			"error", err)
	}
	acts := c.newActivities(o, private)
	c.reports.to(func(token []byte, err error) { activities.Reported(acts, token, err) })
	if o.Taken != nil {
		o.Taken(func() int64 { return activities.Taken(acts) })
	}
	if o.Hosts != nil {
		o.Hosts(func() []time.Time { return activities.HostedSince(acts) })
	}
	defer func() {
		ctx := context.WithoutCancel(ctx)
		activities.Depart(ctx, acts)
		closing, cancel := context.WithTimeout(ctx, stopTimeout)
		defer cancel()
		activities.Close(closing, acts)
	}()
	failed := make(chan error, 2)
	if o.Deployment == "" && len(o.Gone) > 0 {
		c.recovery().MigrateIncompatible(ctx)
	}
	all, err := c.workers(o, acts, func(err error) { failed <- err })
	if err != nil {
		return err
	}
	stop, err := start(all...)
	defer stop()
	if err != nil {
		return deployments.Errorf(deployments.CodeUnavailable, "start the worker: %w", err)
	}
	go c.recovery().FailOrphans(ctx, o.Gone)
	go c.goOn(ctx)
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

// workers makes the workers of each queue, the private one first. broken takes the error after which one cannot go on.
func (c *Connection) workers(o Options, acts *activities.Activities, broken func(error)) ([]worker.Worker, error) {
	private := deployments.PrivateTaskQueue(o.Instance)
	fence := &runFence{data: c.readers.Data}
	options := workerOptions(private, c.config.log(), fence, o.Interceptors)
	if c.config.Tracing != nil {
		options.Interceptors = append([]interceptor.WorkerInterceptor{&traces{tracing: c.config.Tracing, sealed: fence.at}},
			options.Interceptors...)
	}
	options.OnFatalError = broken
	alone := options
	alone.DisableWorkflowWorker = true
	hosting, err := c.eager.withSlots(c.sharing(alone))
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInternal, "make room for activities: %w", err)
	}
	own := worker.New(c.Client, private, hosting)
	registerActivities(own, acts)
	all := []worker.Worker{own}
	for _, queue := range c.queues(o.Organizations) {
		all = append(all, c.serving(queue, o, options, acts)...)
	}
	return all, nil
}

// goOn has the stacks whose workflows an earlier build has begun recover their updates.
func (c *Connection) goOn(ctx context.Context) {
	for _, id := range c.recovery().CloseUnbound(ctx) {
		name, ok := stackOf(id)
		if !ok {
			continue
		}
		if _, err := c.Service().Recover(ctx, deployments.RecoverRequest{Stack: name}); err != nil && ctx.Err() == nil {
			c.config.log().Warn("The next update of a stack recovers the one before, which an earlier build has begun.",
				"stack", name.String(), "error", err)
		}
	}
}

// newActivities makes the activities of this worker, whose private task queue is given.
func (c *Connection) newActivities(o Options, private string) *activities.Activities {
	return activities.New(activities.Options{
		Options: session.Options{
			Store: c.Store, Worker: private, Organizations: o.Organizations, Dir: o.Dir,
			Env: os.Environ(), Included: o.Included, Sandbox: o.Sandbox, Plugins: o.Plugins,
			CountSettled: o.Settled,
			Catalogue:    func() settlerule.Catalogue { return catalogue.New().Rules },
		},
		Runs: runclient.New(c.Client), Heart: heartbeatRecorder{c.Client},
		Housekeeping: activities.Housekeeping{Retention: o.Retention, Collected: c.collected(o.Collected)},
		Unseen:       c.unseenVersion, Ended: c.Service().UpdateEnded,
	})
}

// workerOptions returns what the workers of all task queues have in common. More interceptors run after our own.
func workerOptions(
	identity string, log *slog.Logger, fence *runFence, more []interceptor.WorkerInterceptor,
) worker.Options {
	return worker.Options{
		Identity: identity,
		DeploymentOptions: worker.DeploymentOptions{Version: worker.WorkerDeploymentVersion{
			DeploymentName: deployments.SharedTaskQueue,
			BuildID:        recovery.Build, // else the SDK hashes the whole binary at every start
		}},
		WorkerStopTimeout: stopTimeout, DeadlockDetectionTimeout: deadlock, StickyScheduleToStartTimeout: sticky,
		MaxConcurrentActivityExecutionSize: slotsOfQueue,
		Interceptors: append([]interceptor.WorkerInterceptor{&workLog{log: log}, &panicGuard{}, &activityContexts{}, fence,
			&workflowNames{}}, more...),
	}
}

// sharing returns the options of a worker whose slots organizations share.
func (c *Connection) sharing(o worker.Options) worker.Options {
	o.Interceptors = append([]interceptor.WorkerInterceptor{newShares(c.config.log())}, o.Interceptors...)
	return o
}

// serving makes the workers of a queue that others poll, too: one for workflows and activities that any worker can do,
// one that takes a few scheduled activities at a time, and one that sends events to webhooks.
func (c *Connection) serving(
	queue string, o Options, options worker.Options, acts *activities.Activities,
) []worker.Worker {
	few := options
	few.DisableWorkflowWorker, few.MaxConcurrentActivityExecutionSize = true, scheduledSlots
	if o.Deployment != "" {
		options.DeploymentOptions.UseVersioning = true
		options.DeploymentOptions.Version.DeploymentName = deploymentOf(o.Deployment, queue)
	}
	shared := worker.New(c.Client, queue, c.sharing(options))
	workflows.New(o.Workflows).Register(shared)
	registerActivities(shared, acts)
	registerActivities(shared, c.recovery().Activities(acts))
	runs := &scheduled.Activities{Temporal: c.Client, Store: c.Store, Service: c.Service()}
	registerActivities(shared, runs)
	remote := deployment.New(deployment.Activities{Temporal: c.Client, Store: c.Store, Service: c.Service(),
		Sandbox: o.Sandbox, Rooms: bundlecache.New(o.Dir).Rooms(), Env: os.Environ(), Sources: o.Sources})
	registerActivities(shared, remote)
	beginning := worker.New(c.Client, deployments.ScheduledTaskQueue(queue), few)
	registerActivities(beginning, runs)
	sending := few
	sending.MaxConcurrentActivityExecutionSize, sending.MaxConcurrentActivityTaskPollers = deliverySlots, 1
	telling := worker.New(c.Client, deployments.DeliveryTaskQueue(queue), sending)
	registerActivities(telling, &webhooks.Activities{Store: c.Store, Network: o.Webhooks})
	many := options
	many.DisableWorkflowWorker = true
	waiting := worker.New(c.Client, deployments.RemoteTaskQueue(queue), c.sharing(many))
	registerActivities(waiting, remote)
	return []worker.Worker{shared, beginning, telling, waiting}
}

// start starts workers one after another, and returns a function that stops all that were started at once.
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
