package update

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// questions are the questions for a confirmation, by kind of update.
var questions = map[engine.Kind]string{
	engine.KindUp:      "Perform this update of %s?",
	engine.KindRefresh: "Write this to the state of %s?",
	engine.KindDestroy: "Destroy all of this of %s? It cannot be undone.",
	engine.KindImport:  "Import these resources into %s?",
}

// question asks for the confirmation of a request, and says of which stack, and of which service unless it is the
// user's own.
func question(s *console.Session, r deployments.UpdateRequest) string {
	where := r.Stack.String()
	if address := s.Settings.Get(settings.Server); address != "" {
		where += " on " + address
	}
	return fmt.Sprintf(questions[r.Kind], where)
}

// change returns the action of a command that makes an update of a kind.
func change(kind engine.Kind) func(context.Context, *console.Session) error {
	return func(ctx context.Context, s *console.Session) error { return changeStack(ctx, s, kind, nil) }
}

// changeStack previews, asks for confirmation, and updates. The update runs exactly what was confirmed: the same bundle
// on the same version of the stack. If the stack was updated meanwhile, the preview is repeated. If complete is not
// nil, it adds to the request what only one command has.
func changeStack(
	ctx context.Context, s *console.Session, kind engine.Kind, complete func(*deployments.UpdateRequest) error,
) error {
	if err := s.NeedProject(); err != nil {
		return err
	}
	previewOnly, err := onlyPreviews(s)
	if err != nil {
		return err
	}
	stack, err := existingStack(ctx, s)
	if err != nil {
		return err
	}
	request, err := flagRequest(ctx, s, kind, stack)
	if err == nil && complete != nil {
		err = complete(&request)
	}
	if err == nil && !previewOnly { // whatever else is wrong is said first; from here on something is stored
		err = s.MustAsk()
	}
	if err == nil {
		err = fillRequest(ctx, s, &request, nil)
	}
	if busy := stack.Active; err == nil && busy != nil && request.OnBusy == deployments.OnBusyFail && !previewOnly {
		err = deployments.Errorf(deployments.CodeConflict, "%s is busy with %s; wait for it, or use --on-busy queue",
			stack.Stack, display.Holder(*busy))
	}
	if err == nil {
		err = followPlan(ctx, s, &request, stack)
	}
	if err != nil {
		return err
	}
	warnOfOtherDirectory(s, kind, stack)
	noteRunning(s, stack)
	if previewOnly {
		_, err := showPreview(ctx, s, request, "")
		return err
	}
	return confirmAndRun(ctx, s, stack, request)
}

// confirmAndRun previews a request until it is confirmed for the version that the stack has, and runs it.
func confirmAndRun(
	ctx context.Context, s *console.Session, stack deployments.StackInfo, request deployments.UpdateRequest,
) (err error) {
	skip := s.Flags.Bool("skip-preview") || s.Flags.Bool("json")
	var previewed *projection.State
	for plan := request.Plan; ; {
		if !skip {
			if previewed, err = previewAndAsk(ctx, s, stack, request); err != nil {
				return err
			}
			version := stack.Version
			request.BaseVersion = &version
			if request.Plan = plan; request.Kind == engine.KindUp && asksNothing(s, stack, request, previewed) {
				request.Plan = &engine.SavedPlan{Steps: map[urn.URN]engine.StepKind{}} // nothing that nobody has confirmed
			}
		} else if err := askBlindly(ctx, s, request); err != nil {
			return err
		}
		request.RequestID = newRequestID()
		accepted, err := submit(ctx, s, request)
		for lost := 1; err == nil; lost++ {
			err = follow(ctx, s, accepted, request.Kind, previewed)
			if deployments.CodeOf(err) != deployments.CodeNotFound || lost == mostLost {
				return err
			}
			s.Note("The update lost its place in the queue because the stack's workflow was terminated; " +
				"submitting it again.")
			if !pause(ctx, time.Duration(lost)*time.Second) {
				return err
			}
			// the RequestID makes this the same update if the service has it after all
			accepted, err = submit(ctx, s, request)
		}
		now, moved := hasMoved(ctx, s, err, request)
		if ctx.Err() != nil && deployments.CodeOf(err) == deployments.CodeConflict {
			return context.Canceled // while it waited to preview again
		}
		if !moved || plan != nil {
			return err
		}
		s.Note("The stack has been updated since the preview; previewing again.")
		stack = now
	}
}

// noteRunning says that another update is changing the stack: a preview shows the state before it.
func noteRunning(s *console.Session, stack deployments.StackInfo) {
	if busy := stack.Active; busy != nil && !s.Flags.Bool("skip-preview") && !s.Flags.Bool("json") {
		s.Note(fmt.Sprintf("%s is being changed by %s; a preview shows it as it was before that.", stack.Stack,
			display.Holder(*busy)))
		if hint := display.LostClient(busy); hint != "" {
			s.Note(hint)
		}
	}
}

// onlyPreviews reports whether the command only previews.
func onlyPreviews(s *console.Session) (bool, error) {
	if !s.Flags.Bool("preview-only") {
		return false, nil
	}
	for _, other := range []string{"yes", "skip-preview"} {
		if s.Flags.Bool(other) {
			return false, deployments.Errorf(deployments.CodeInvalid, "--preview-only and --%s exclude each other; pass "+
				"one of them", other)
		}
	}
	return true, nil
}

// mostLost is how many times in a row an update may lose its place in the queue. After that, submitting again does not
// help: the stack's workflow is terminated again and again.
const mostLost = 3

// pause waits for d; it returns false if ctx ends first.
func pause(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// submit submits the confirmed update, and repeats that while no worker is running. If it is interrupted before the
// answer, it is unknown whether the service has accepted the update.
func submit(ctx context.Context, s *console.Session, r deployments.UpdateRequest) (deployments.Accepted, error) {
	accepted, err := s.Service.Submit(ctx, r)
	for warned := false; deployments.CodeOf(err) == deployments.CodeNoWorker; warned = true {
		if !warned {
			s.Note(err.Error())
		}
		if !pause(ctx, time.Second) {
			break
		}
		accepted, err = s.Service.Submit(ctx, r) // the same RequestID is the same update
	}
	if err == nil && r.Kind == engine.KindUp {
		rememberDirectory(s, r.Stack)
	}
	if err != nil && ctx.Err() != nil {
		_, _ = fmt.Fprintf(s.Err, "Interrupted while the update was being submitted; it may have been accepted.\n"+
			"  deployctl attach --stack %s   shows the stack's running or latest update\n"+
			"  deployctl cancel --stack %s   cancels the running one\n", r.Stack, r.Stack)
		err = console.Reported(console.ExitDetached)
	}
	return accepted, err
}

// hasMoved reports whether a request was rejected because the stack is no longer at the previewed version, and returns
// the current stack. It first waits for a running update of the stack, as the queue would, unless --on-busy is fail.
func hasMoved(
	ctx context.Context, s *console.Session, refusal error, r deployments.UpdateRequest,
) (deployments.StackInfo, bool) {
	previewed, confirmed := r.Previewed()
	if !confirmed || deployments.CodeOf(refusal) != deployments.CodeConflict {
		return deployments.StackInfo{}, false
	}
	now, err := s.Service.Stack(ctx, r.Stack)
	var waited deployments.UpdateName // for which the command waits; the stack may name it a moment longer
	for err == nil && now.Active != nil && now.Active.Error == "" && r.OnBusy != deployments.OnBusyFail {
		if waited != now.Active.Update {
			waited = now.Active.Update
			s.Note(fmt.Sprintf("Waiting for %s; then all is previewed again.", display.Holder(*now.Active)))
		}
		if err = s.Service.Watch(ctx, now.Active.Update,
			func(deployments.WatchEvent) error { return nil }); err == nil {
			now, err = s.Service.Stack(ctx, r.Stack)
		}
	}
	return now, err == nil && (waited != deployments.UpdateName{} || now.Version != previewed)
}

// askBlindly asks for confirmation without a preview.
func askBlindly(ctx context.Context, s *console.Session, request deployments.UpdateRequest) error {
	if s.Flags.Bool("yes") {
		return nil
	}
	return s.Confirm(ctx, question(s, request), nil)
}

// previewAndAsk shows what the request would do, and asks for confirmation.
func previewAndAsk(
	ctx context.Context, s *console.Session, stack deployments.StackInfo, request deployments.UpdateRequest,
) (*projection.State, error) {
	state, err := showPreview(ctx, s, request, fmt.Sprintf("Preview of %s (%s):", request.Kind, request.Stack))
	if err != nil || s.Flags.Bool("yes") {
		return state, err
	}
	if asksNothing(s, stack, request, state) {
		s.Say("%s", nothingAsked[request.Kind])
		return state, nil
	}
	return state, s.Confirm(ctx, question(s, request), func() {
		lines := display.Details(state, display.Options{Color: s.Color(), Screen: s.Screen})
		if len(lines) == 0 {
			lines = []string{"Nothing changes."}
		}
		for _, line := range lines {
			_, _ = fmt.Fprintln(s.Out, line)
		}
	})
}

// nothingAsked says why a kind of update is not confirmed when its preview changes nothing. It runs nevertheless:
// schedules repeat the program and the configuration of the last up, and a refresh says that nothing has drifted.
var nothingAsked = map[engine.Kind]string{
	engine.KindUp: "No resource changes, so there is nothing to confirm. The update stops if it comes to a change " +
		"after all.",
	engine.KindRefresh: "The state is what the resources are, so there is nothing to confirm.",
}

// asksNothing reports whether an update has nothing that is to be confirmed. A refresh that settles what is pending may
// write what its preview does not know.
func asksNothing(
	s *console.Session, stack deployments.StackInfo, r deployments.UpdateRequest, preview *projection.State,
) bool {
	if nothingAsked[r.Kind] == "" || r.Kind == engine.KindRefresh && stack.Pending > 0 {
		return false
	}
	return !s.Flags.Bool("yes") && !preview.Changed() && !preview.Noted()
}

// showPreview runs and shows a preview of the request. An interrupt cancels the preview too. The heading is printed
// above it.
func showPreview(
	ctx context.Context, s *console.Session, request deployments.UpdateRequest, heading string,
) (*projection.State, error) {
	request.DryRun, request.RequestID, request.Message, request.BaseVersion = true, newRequestID(), "", nil
	accepted, err := s.Service.Submit(ctx, request)
	if err != nil {
		return nil, err
	}
	state := projection.NewState()
	options := viewOptions(s, request.Kind, state)
	options.Preview, options.Heading = true, heading
	if err := showUpdate(ctx, s, accepted, options); err != nil {
		if ctx.Err() != nil {
			abandon(s, accepted.Update)
		}
		return nil, err
	}
	return state, console.ExitOfEnd(*state.End)
}

// abandonTime is how long an interrupted command tries to cancel its preview.
const abandonTime = 5 * time.Second

// abandon cancels the preview of an interrupted command.
func abandon(s *console.Session, u deployments.UpdateName) {
	ctx, cancel := context.WithTimeout(context.Background(), abandonTime)
	defer cancel()
	_ = s.Service.Cancel(ctx, u, true) // a preview changes nothing, and ends by itself
}

// follow shows an update until its end. From here on an interrupt only detaches. previewed is the preview of the
// update, for the expected number of changes; nil if there was none.
func follow(
	ctx context.Context, s *console.Session, accepted deployments.Accepted, kind engine.Kind, previewed *projection.State,
) error {
	state, u := projection.NewState(), accepted.Update
	options := viewOptions(s, kind, state)
	if previewed != nil {
		options.Expected, options.Previewed, options.Diff = previewed.Told(), true, false
		options.Heading = fmt.Sprintf("\n%s (%s):", kind, u)
	}
	err := showUpdate(ctx, s, accepted, options)
	if err != nil && ctx.Err() != nil {
		_, _ = fmt.Fprintf(s.Err, "Detached; %s continues.\n  deployctl attach %s   follows it again\n  deployctl "+
			"cancel %s   cancels it\n", u, u, u)
		return console.Reported(console.ExitDetached)
	}
	if code := deployments.CodeOf(err); err != nil && code != deployments.CodeNotFound { // see change
		return deployments.Errorf(code, "%w; update %s may continue: check with deployctl attach %s", err, u, u)
	}
	if err == nil {
		err = declared(s, state)
	}
	if err != nil {
		return err
	}
	return console.ExitOfEnd(*state.End)
}

// viewOptions returns how this command shows an update.
func viewOptions(s *console.Session, kind engine.Kind, state *projection.State) display.Options {
	screen := s.Screen
	if s.Flags.Bool("non-interactive") {
		screen = nil
	}
	state.Parallel = s.Flags.Int("parallel") // 0 if the command has no such flag
	return display.Options{
		Out: s.Out, Color: s.Color(), Screen: screen, State: state, Kind: string(kind),
		JSON: s.Flags.Bool("json"), Quiet: s.Flags.Bool("quiet"), Diff: s.Flags.Bool("diff"),
	}
}

// showUpdate shows an update until its end; if it is queued, first its position.
func showUpdate(ctx context.Context, s *console.Session, accepted deployments.Accepted, o display.Options) error {
	view := display.New(o)
	s.BeginView(view)
	if accepted.Position > 0 {
		s.ShowEvent(deployments.WatchEvent{Progress: &deployments.Progress{Position: accepted.Position,
			Behind: accepted.Behind}})
	}
	err := s.Service.Watch(ctx, accepted.Update, func(e deployments.WatchEvent) error {
		s.ShowEvent(e)
		return nil
	})
	s.EndView()
	if err == nil && o.State.End == nil {
		err = errors.New("the event log ended before the update did")
	}
	return err
}
