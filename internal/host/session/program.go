package session

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"go.temporal.io/sdk/temporal"
)

// errOutOfSight ends a program whose heartbeats are no longer accepted: another worker may start it soon.
var errOutOfSight = errors.New("the service lost sight of the program's host")

// errWorkerStops ends a program whose worker is asked to stop.
var errWorkerStops = errors.New("the worker that hosts the program stops")

// exitDeadline bounds the attempts to report a program's exit to its Run.
const exitDeadline = time.Minute

// mostPrepared bounds the plugins that start before the program asks for them.
const mostPrepared = 32

// headersFunc returns a part of the headers of the checkpoint from which an update starts.
type headersFunc func(context.Context, deployments.HeadersInput) (deployments.Headers, error)

// ProgramOptions are what a start of a program needs besides its session.
type ProgramOptions struct {
	Runs    runlink.Runs
	Headers headersFunc
}

// Program runs the program once, as one epoch, until it has ended.
func (s *Session) Program(
	ctx context.Context, beats *heartbeat.Beats, in deployments.ProgramInput, o ProgramOptions,
) (deployments.ProgramOutput, error) {
	e := &epoch{
		headers: o.Headers, session: s, goal: in.Goal, number: in.Epoch, link: runlink.New(o.Runs, in.Update, in.Epoch),
	}
	s.link.Store(e.link)
	defer s.link.CompareAndSwap(e.link, nil)
	return e.run(ctx, beats)
}

// epoch is one start of the program.
type epoch struct {
	headers headersFunc
	session *Session
	goal    engine.Goal
	number  int
	link    *runlink.Link
}

func (e *epoch) run(ctx context.Context, p *heartbeat.Beats) (deployments.ProgramOutput, error) {
	serving, closeLink := context.WithCancel(context.WithoutCancel(ctx))
	var closed sync.WaitGroup
	closed.Go(func() { e.link.Serve(serving) })
	defer closed.Wait()
	defer closeLink()

	living, kill := context.WithCancelCause(ctx)
	defer kill(nil)
	go e.guard(living, kill, p)

	e.link.Send(deployments.Message{Started: &engine.RunStarted{Epoch: e.number}})
	stop := e.answerAhead(living)
	err := e.program(living)
	stop()
	if living.Err() != nil && err != nil {
		err = context.Cause(living)
	}
	flushing, done := context.WithTimeout(context.WithoutCancel(ctx), exitDeadline)
	defer done()
	_ = e.session.log.Flush(flushing) // only output is lost
	if failure.Interrupted(err) {
		if p.CancelRequested(ctx) {
			return deployments.ProgramOutput{}, temporal.NewCanceledError()
		}
		err = errWorkerStops
	}
	return e.end(flushing, err)
}

// guard ends the program when it is cancelled, the worker stops, the Run has ended, or the heartbeats are about to
// expire.
func (e *epoch) guard(ctx context.Context, kill context.CancelCauseFunc, p *heartbeat.Beats) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Cancelled():
			kill(temporal.NewCanceledError())
		case <-p.Stopping():
			kill(errWorkerStops)
		case <-e.link.Ended():
			kill(e.link.Err())
		case <-tick.C:
			if p.Expiring() {
				kill(errOutOfSight)
			}
		}
	}
}

// program runs the program, or an import in its place, to its end.
func (e *epoch) program(ctx context.Context) error {
	s := e.session
	if s.project == nil {
		return deployments.Errorf(deployments.CodeInvalid, "the update has no program: its bundle has no Pulumi.yaml")
	}
	if err := s.policyPacks.Load(ctx); err != nil {
		return err
	}
	if err := s.installDependencies(ctx); err != nil {
		return err
	}
	language, err := s.host.Language(ctx, s.project.Runtime.Name())
	if err != nil {
		return err
	}
	defer language.Close()
	required, err := language.RequiredPackages(ctx)
	if err != nil {
		return err
	}
	for _, pkg := range required[:min(len(required), mostPrepared)] {
		s.host.Prepare(pkg) // the plugin starts while the program does
	}
	m, err := s.ServeMonitor(ctx, e.link, e.goal, required)
	if err != nil {
		return err
	}
	defer m.Stop()
	if s.request.Kind == engine.KindImport {
		return (&importing{epoch: e, monitor: m, language: language}).run(ctx)
	}
	return language.Run(ctx, pluginhost.RunRequest{
		Organization: e.goal.Organization, Project: e.goal.Project, Stack: e.goal.Stack,
		SecretKeys: s.config.SecretKeys(), DryRun: e.goal.DryRun, Parallel: e.goal.Parallel,
		MonitorAddress: m.Address(),
	})
}

// end returns the activity's result for err. If the program ended by itself, it first reports the exit to the Run.
func (e *epoch) end(ctx context.Context, err error) (deployments.ProgramOutput, error) {
	hide := e.session.redactor(ctx)
	exited := engine.ProgramExited{Epoch: e.number}
	var lost *pluginhost.LostError
	var program *pluginhost.ProgramError
	switch {
	case err == nil:
	// the cases that return do not flush the link: the program's next start sends its messages again
	case errors.Is(err, errWorkerStops):
		return deployments.ProgramOutput{}, failure.NotStarted(err.Error())
	case errors.As(err, &lost), errors.Is(err, errOutOfSight):
		return deployments.ProgramOutput{Lost: true, OutOfSight: errors.Is(err, errOutOfSight),
			Error: hide(err.Error())}, nil
	case errors.As(err, &program):
		exited.Error, exited.Bailed = hide(program.Error()), program.Logged
	case errors.Is(err, runlink.ErrRunEnded):
		return deployments.ProgramOutput{Error: err.Error()}, nil
	case failure.Retryable(err):
		return deployments.ProgramOutput{}, hide.Failure(err)
	default:
		exited.Error = hide(err.Error())
	}
	out := deployments.ProgramOutput{Error: exited.Error}
	e.link.Send(deployments.Message{Exited: &exited})
	switch err := e.link.Flush(ctx); {
	case errors.Is(err, runlink.ErrRefused): // another start of the program would send the same
		return out, failure.Of(deployments.Errorf(deployments.CodeInvalid, "%w; Temporal's limit.blobSize.error must be at "+
			"least 2 MiB, and the program should register smaller values", err))
	case err != nil && !errors.Is(err, runlink.ErrRunEnded):
		return out, failure.Of(deployments.Errorf(deployments.CodeUnavailable,
			"telling the update how its program ended: %w", err))
	}
	return out, nil
}
