package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// Every duration, retry policy and limit of the workflows is in this file.

const (
	// heartbeat is the heartbeat timeout: an activity that does not report for so long has lost its worker.
	heartbeat = 30 * time.Second
	// startTimeout is how long a task may wait in a worker's private queue; after that the worker is considered gone.
	startTimeout = 15 * time.Second
	// inquiryHeartbeat is the heartbeat timeout of a worker that is asked what it knows of an attempt that it seems to
	// have lost: it is slow.
	inquiryHeartbeat = 2 * time.Minute
	// maxSilencesAbsent and maxSilencesUndecidable are how many times in a row such a worker does not begin to answer
	// within startTimeout, while another one does, until it is taken for gone: before a create that was not found is
	// made again, and before one that cannot be found is left to a person. After inquiryPatience it is in any case.
	maxSilencesAbsent, maxSilencesUndecidable = 1, 3
	inquiryPatience                           = 10 * time.Minute
	// longestActivity bounds an activity without a timeout of its own.
	longestActivity = 24 * time.Hour
	// longestWait bounds the wait for another workflow.
	longestWait = 365 * 24 * time.Hour
	// stepGrace is added to a step's customTimeouts, so that the provider can time out by itself first.
	stepGrace = time.Minute
	// releaseStart is how long the end of an update waits for its worker to take the release.
	releaseStart = 5 * time.Second
	// short bounds activities that read or write a little.
	short = 2 * time.Minute

	// saveEvery is the time between saves while there is something new.
	saveEvery = time.Second
	// finalSaveBytes limits the deltas, and the events, of a last save that the Run's result carries.
	finalSaveBytes = 256 << 10
	// saveItems (see Revision) and saveBytes limit one save, planItems and planBytes one group of plans, replyItems and
	// replyBytes the answer to one poll: the server rejects payloads from 2 MB on.
	saveBytes              = 512 << 10
	planItems, planBytes   = 50, 512 << 10
	refreshItems           = 128
	replyItems, replyBytes = 500, 512 << 10
	// spillBytes limits a suspended core in the input of the next run; a larger one is stored in parts of this size.
	spillBytes = 512 << 10
	// headerItems is how many headers of the base are loaded at once.
	headerItems = 2000

	// A Run continues as new when nothing is in flight and a soft limit is reached. From a hard limit on it quiesces,
	// for quiesceFor; from a full one on without end. The server ends a history at 51,200 events, 50 MiB or 2,000
	// polls. Suspending the core takes about the bytes that loading it took, which may be half of fullBytes.
	softEvents, hardEvents, fullEvents = 5_000, 8_000, 40_000
	softPolls, hardPolls, fullPolls    = 1_000, 1_500, 1_800
	softBytes, hardBytes, fullBytes    = 4 << 20, 8 << 20, 32 << 20
	quiesceFor                         = time.Minute

	// maxFruitlessEpochs is how many epochs in a row may be lost without progress: a program that dies that often will
	// not get further. maxWorkerLosses is the same for epochs that were lost with their worker, which is rarely caused
	// by the program.
	maxFruitlessEpochs, maxWorkerLosses = 3, 10

	// maxRounds is how many times a step that may be repeated is begun and lost before it fails.
	maxRounds = 16

	// deliverTime bounds one attempt to send an event to a webhook, and deliverPatience all of them.
	deliverTime, deliverPatience = 30 * time.Second, 24 * time.Hour

	// removeAfter is how long a stack that a deployment has destroyed stays, so that whoever watches the deployment sees
	// its end.
	removeAfter = 5 * time.Second

	// linger is how long an idle Stack waits for more work before it ends; it continues as new after stackEvents.
	linger      = time.Minute
	stackEvents = 2_000
	// headPause is the pause between two looks at the head while somebody waits for the active update. The second look
	// that finds it over frees the stack.
	headPause = 2 * time.Minute
	// busyGrace is how long an import or a restore waits for a busy stack: the client may learn of the end of an update
	// before the stack does.
	busyGrace = 5 * time.Second
	// firstRetryPause and longestRetryPause limit the pauses between attempts that may need a repair by a person.
	firstRetryPause, longestRetryPause = 5 * time.Second, 5 * time.Minute
	// queueLimit is the largest number of waiting updates. Requests are remembered as long as they could be repeated (see
	// deployments.RequestWindow), and at least answersKept of them, but no more than answersLimit.
	queueLimit                = 100
	answersKept, answersLimit = 200, 1_000
	// clockSkew is how far the clocks of the service and of Temporal may differ without anybody noticing.
	clockSkew = 2 * time.Minute

	// summaryBytes and detailsBytes are the server's limits.
	summaryBytes = 200
	detailsBytes = 20_000
	// messageBytes limits the message of a failure: the server stores little of one, and its Web UI shows less. The
	// result has all of it.
	messageBytes = 4_000
)

// retryForever is for errors that only time can fix: the store or a server is unreachable.
var retryForever = temporal.RetryPolicy{
	InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
}

// retryDelivery is for events that a webhook does not accept.
var retryDelivery = temporal.RetryPolicy{
	InitialInterval: time.Second, BackoffCoefficient: 3, MaximumInterval: time.Hour,
}

// retryBriefly is for activities that somebody waits for.
var retryBriefly = temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2,
	MaximumAttempts: 5}

// noRetry makes one attempt.
var noRetry = temporal.RetryPolicy{MaximumAttempts: 1}

// retryIfNotDone retries attempts that are known to have had no effect, forever. An unknown outcome is not retried: the
// workflow settles it.
var retryIfNotDone = temporal.RetryPolicy{
	InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute,
	NonRetryableErrorTypes: []string{
		"TemporalTimeout:Heartbeat", "TemporalTimeout:StartToClose", "PanicError", deployments.ErrorUnknownOutcome,
		deployments.ErrorNotStarted,
	},
}

// stepRetryPolicy returns retryIfNotDone with the pauses that the stack's own policy asks for. The activity counts the
// attempts that the policy allows: the server also counts attempts that did not call the provider.
func stepRetryPolicy(r deployments.Retry) *temporal.RetryPolicy {
	p := retryIfNotDone
	if r.Initial > 0 {
		p.InitialInterval, p.MaximumInterval = r.Initial, max(p.MaximumInterval, r.Initial)
	}
	if r.Backoff > 0 {
		p.BackoffCoefficient = r.Backoff
	}
	if r.Longest > 0 {
		p.InitialInterval, p.MaximumInterval = min(p.InitialInterval, r.Longest), r.Longest
	}
	return &p
}

// onShared returns the options of an activity for the queue of this workflow: any worker of its organization, or of the
// shared ones, can execute it.
func onShared(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: workflow.GetInfo(ctx).TaskQueueName, StartToCloseTimeout: short, RetryPolicy: &retryForever,
		Summary: clip(summary, summaryBytes),
	})
}

// onLong returns those of an activity that may take long for a large stack.
func onLong(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithHeartbeatTimeout(workflow.WithStartToCloseTimeout(onShared(ctx, summary), longestActivity),
		heartbeat)
}

// onScheduled returns those of an activity that takes one of the few slots for scheduled work.
func onScheduled(ctx workflow.Context, summary string) workflow.Context {
	places := deployments.ScheduledTaskQueue(workflow.GetInfo(ctx).TaskQueueName)
	return workflow.WithHeartbeatTimeout(workflow.WithTaskQueue(onShared(ctx, summary), places), heartbeat)
}

// onRemote returns those of an activity of a deployment that waits, or prepares an update: it may take up to d.
func onRemote(ctx workflow.Context, summary string, d time.Duration) workflow.Context {
	places := deployments.RemoteTaskQueue(workflow.GetInfo(ctx).TaskQueueName)
	return workflow.WithHeartbeatTimeout(workflow.WithStartToCloseTimeout(
		workflow.WithTaskQueue(onShared(ctx, summary), places), d), heartbeat)
}

// onDeliveries returns those of an activity that sends an event to a webhook.
func onDeliveries(ctx workflow.Context, webhook string, once bool) workflow.Context {
	o := workflow.ActivityOptions{
		TaskQueue:           deployments.DeliveryTaskQueue(workflow.GetInfo(ctx).TaskQueueName),
		StartToCloseTimeout: deliverTime, ScheduleToCloseTimeout: deliverPatience, RetryPolicy: &retryDelivery,
		Summary: clip("send it to "+webhook, summaryBytes),
	}
	if once {
		o.RetryPolicy = &retryBriefly
	}
	return workflow.WithActivityOptions(ctx, o)
}

// onInquiry returns the options of an activity that asks a worker, which may be slow or gone, about a lost attempt.
func onInquiry(ctx workflow.Context, worker, summary string) workflow.Context {
	o := workflow.GetActivityOptions(onWorker(ctx, worker, &retryForever))
	o.HeartbeatTimeout, o.WaitForCancellation, o.Summary = inquiryHeartbeat, false, clip(summary, summaryBytes)
	return workflow.WithActivityOptions(ctx, o)
}

// onPing returns the options of an activity that shows that a worker is alive.
func onPing(ctx workflow.Context, worker string) workflow.Context {
	o := workflow.GetActivityOptions(onWorker(ctx, worker, &noRetry))
	o.StartToCloseTimeout, o.Summary = startTimeout, "ask whether it is alive"
	return workflow.WithActivityOptions(ctx, o)
}

// onWorker returns the options of an activity that only one worker can execute.
func onWorker(ctx workflow.Context, worker string, retry *temporal.RetryPolicy) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: worker, ScheduleToStartTimeout: startTimeout, StartToCloseTimeout: longestActivity,
		HeartbeatTimeout:    heartbeat,
		WaitForCancellation: true, RetryPolicy: retry,
	})
}
