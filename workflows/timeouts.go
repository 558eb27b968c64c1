package workflows

import (
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// Every duration, retry policy and limit of the workflows is in this file.

const (
	// heartbeat is how soon the server takes an activity for lost that does not report.
	heartbeat = 30 * time.Second
	// notStarted is how long work may wait on a worker's private queue; then that worker is not there any more.
	notStarted = 15 * time.Second
	// longest bounds an activity without a timeout of its own.
	longest = 24 * time.Hour
	// forever bounds the wait for another workflow.
	forever = 365 * 24 * time.Hour
	// stepGrace is what a step gets on top of its customTimeouts: for the provider to give up by itself.
	stepGrace = time.Minute
	// releaseStart is how long the end of an update waits for its worker to take note.
	releaseStart = 5 * time.Second
	// short bounds activities that read or write a little.
	short = 2 * time.Minute

	// saveEvery is the rhythm of saves while there is something new.
	saveEvery = time.Second
	// carryBytes bound, each, the deltas and the events of a last save that the Run's result carries.
	carryBytes = 256 << 10
	// saveItems (which is of a revision) and saveBytes bound one save, planItems and planBytes one vector of plans,
	// replyItems and replyBytes one answer to a poll: a payload is refused from 2 MB.
	saveBytes              = 512 << 10
	planItems, planBytes   = 50, 512 << 10
	replyItems, replyBytes = 500, 512 << 10
	// asideBytes is how much of a suspended core is carried in one piece.
	asideBytes = 512 << 10
	// headerItems is how many headers of the base are loaded at once.
	headerItems = 2000

	// A Run continues as new at a quiet moment from the soft limits on, starts nothing new from the hard ones on, for
	// holdFor, and from the full ones on for good. The server ends a history at 51,200 events, 50 MiB or 2,000 polls,
	// and putting the core away takes about the bytes that opening it took, which may be half of the full ones.
	softEvents, hardEvents, fullEvents = 5_000, 8_000, 40_000
	softPolls, hardPolls, fullPolls    = 1_000, 1_500, 1_800
	softBytes, hardBytes, fullBytes    = 4 << 20, 8 << 20, 32 << 20
	holdFor                            = time.Minute

	// fruitless is how many epochs in a row may be lost without progress: a program that dies again and again will not
	// get further. homeless is the same for epochs that were lost with their worker, which is rarely the program's
	// doing.
	fruitless, homeless = 3, 10

	// mostRounds is how many times a step is begun that is lost each time, though beginning it again is safe.
	mostRounds = 16

	// linger is how long an idle Stack waits for more, stackEvents when it continues as new.
	linger      = time.Minute
	stackEvents = 2_000
	// soonFree is how long an import or a restore waits for a stack that is busy: whoever asks may know sooner than the
	// stack that its update has ended.
	soonFree = 5 * time.Second
	// firstRepair and longestRepair bound the pauses between a Stack's attempts at what somebody may have to repair.
	firstRepair, longestRepair = 5 * time.Second, 5 * time.Minute
	// queueLimit bounds a stack's waiting updates, answersKept the answers remembered by request id.
	queueLimit  = 100
	answersKept = 200

	// summaryBytes and detailsBytes are what the server takes.
	summaryBytes = 200
	detailsBytes = 20_000
	// messageBytes bounds the message of a failure: the server keeps little of one, and its Web UI shows less. The
	// whole is in the result.
	messageBytes = 4_000
)

// patiently retries for ever: what can pass by itself, passes.
var patiently = temporal.RetryPolicy{
	InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumInterval: 10 * time.Second,
}

// briefly retries what somebody waits for who wants an end.
var briefly = temporal.RetryPolicy{InitialInterval: 200 * time.Millisecond, BackoffCoefficient: 2, MaximumAttempts: 5}

// once does not retry.
var once = temporal.RetryPolicy{MaximumAttempts: 1}

// ifNotDone retries for ever what is known to have had no effect. Whatever leaves the outcome open comes to the
// workflow instead.
var ifNotDone = temporal.RetryPolicy{
	InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute,
	NonRetryableErrorTypes: []string{
		"TemporalTimeout:Heartbeat", "TemporalTimeout:StartToClose", "PanicError", deployments.ErrorUnknownOutcome,
		deployments.ErrorNotStarted,
	},
}

// asAllowed is ifNotDone at the pace that a stack asks for. How many attempts it allows is for the activity to count:
// the server also counts those that asked the provider for nothing.
func asAllowed(r deployments.Retry) *temporal.RetryPolicy {
	p := ifNotDone
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

// onShared are the options of an activity that any worker can do that may have the workflow itself: those of its
// organization, or those that serve all.
func onShared(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: workflow.GetInfo(ctx).TaskQueueName, StartToCloseTimeout: short, RetryPolicy: &patiently,
		Summary: clip(summary, summaryBytes),
	})
}

// onLong are those of one that may take as long as a large stack does.
func onLong(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithHeartbeatTimeout(workflow.WithStartToCloseTimeout(onShared(ctx, summary), longest), heartbeat)
}

// onScheduled are the options of an activity that has one of the few places for what runs by schedule.
func onScheduled(ctx workflow.Context, summary string) workflow.Context {
	places := deployments.ScheduledTaskQueue(workflow.GetInfo(ctx).TaskQueueName)
	return workflow.WithHeartbeatTimeout(workflow.WithTaskQueue(onShared(ctx, summary), places), heartbeat)
}

// onWorker are the options of an activity that only one worker can do.
func onWorker(ctx workflow.Context, worker string, retry *temporal.RetryPolicy) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue: worker, ScheduleToStartTimeout: notStarted, StartToCloseTimeout: longest,
		HeartbeatTimeout:    heartbeat,
		WaitForCancellation: true, RetryPolicy: retry,
	})
}
