package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

// stage is where a transcript is played: a driver of the core that does what the lines say, and holds the core to its
// promises after every one of them.
type stage struct {
	suspend bool // put the run away at every quiet moment

	goal    engine.Goal
	base    []engine.State
	pending []engine.PendingOperation
	names   map[string]name
	made    map[string]int // creates by name, for ids

	run        *engine.Run
	epoch, seq int
	open       []engine.Command   // issued and not answered
	replayed   *snapshot.Snapshot // the base with the deltas applied
	pre        map[int]bool       // operations that were shown to begin
	ended      bool
	out        *strings.Builder
}

func (w *stage) printf(format string, args ...any) { fmt.Fprintf(w.out, format, args...) }

// do plays one line.
func (w *stage) do(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	rest = strings.TrimSpace(rest)
	switch word {
	case "fresh":
		*w = stage{suspend: w.suspend, names: map[string]name{}, made: map[string]int{}, out: w.out}
		return nil
	case "base":
		return w.store(rest)
	case "update":
		return w.begin(rest)
	case "state":
		w.printStates()
		return nil
	}
	ev, err := w.event(word, rest)
	if err != nil || ev == nil {
		return err
	}
	w.run.Handle(ev)
	return w.settle()
}

// store adds a state, or a pending operation, to the base.
func (w *stage) store(rest string) error {
	w.carry()
	kind, isPending := "", strings.HasPrefix(rest, "pending ")
	if isPending {
		kind, rest, _ = strings.Cut(strings.TrimPrefix(rest, "pending "), " ")
	}
	it, err := parseItem(rest)
	if err != nil {
		return err
	}
	s, err := w.state(it)
	if isPending {
		identified := slices.ContainsFunc(it.opts, func(o string) bool { return strings.HasPrefix(o, "id=") })
		if !identified {
			s.ID = ""
		}
		w.pending = append(w.pending, engine.PendingOperation{
			Kind: kind, State: s, Seed: []byte("seed of " + it.name), Done: identified && !snapshot.IsProvider(s.Type),
		})
		return err
	}
	w.base = append(w.base, s)
	return err
}

// carry makes what the update before left the base of the next one.
func (w *stage) carry() {
	if w.run != nil && !w.goal.DryRun {
		w.base, w.pending = w.run.Snapshot()
	}
	w.run = nil
}

// begin starts an update over what the one before left.
func (w *stage) begin(rest string) error {
	w.carry()
	words := strings.Fields(rest)
	w.goal = engine.Goal{
		Kind: engine.Kind(words[0]), Organization: "org", Project: "proj", Stack: "dev", Parallel: 10,
		Version: w.goal.Version + 1,
	}
	if words[0] == "preview" {
		w.goal.Kind, w.goal.DryRun = engine.KindUp, true
	}
	for _, o := range words[1:] {
		key, value, _ := strings.Cut(o, "=")
		switch key {
		case "preview":
			w.goal.DryRun = true
		case "refresh":
			w.goal.Refresh = true
		case "target", "exclude", "replace":
			list := map[string]*[]string{
				"target": &w.goal.Targets, "exclude": &w.goal.Excludes, "replace": &w.goal.Replace,
			}[key]
			for _, u := range w.urnsOf(value) {
				*list = append(*list, string(u))
			}
		case "planned":
			w.goal.Plan = &engine.SavedPlan{Steps: map[urn.URN]engine.StepKind{}}
			for _, step := range strings.FieldsFunc(value, func(c rune) bool { return c == ',' }) {
				who, kind, _ := strings.Cut(step, ":")
				w.goal.Plan.Steps[w.urnOf(who)] = engine.StepKind(kind)
			}
		case "dependents":
			w.goal.TargetDependents, w.goal.ExcludeDependents = w.goal.Targets != nil, w.goal.Excludes != nil
		case "run-program":
			w.goal.RunProgram = true
		case "clear-pending-creates":
			w.goal.ClearPendingCreates = true
		case "settle":
			w.goal.Settle = &engine.Settling{}
		case "created", "absent": // URN:ID, or a URN alone
			who, id, _ := strings.Cut(value, ":")
			w.goal.Settle.Answers = append(w.goal.Settle.Answers, engine.Resolved{URN: w.urnOf(who), ID: id})
		case "exclude-protected":
			w.goal.ExcludeProtected = true
		case "ignore-protect":
			w.goal.IgnoreProtect = true
		case "continue-on-error":
			w.goal.ContinueOnError = true
		case "default":
			w.goal.Defaults = append(w.goal.Defaults, engine.DefaultProvider{Package: value,
				Inputs: bag([]string{"region=1"})})
		case "look":
			w.goal.Look, w.goal.Identity = true, []byte("key")
		case "adopt":
			w.goal.Adopt = append(w.goal.Adopt, value)
		case "generation": // NAME:N
			who, n, _ := strings.Cut(value, ":")
			if w.goal.Generations == nil {
				w.goal.Generations = map[string]int{}
			}
			w.goal.Generations[engine.Label(w.urnOf(who))], _ = strconv.Atoi(n)
		case "policies":
			w.goal.Policies = true
		case "wait-on-unknown":
			w.goal.WaitOnUnknown = true
		case "parallel":
			w.goal.Parallel, _ = strconv.Atoi(value)
		default:
			return fmt.Errorf("an update has no option %q", o)
		}
	}
	w.open, w.pre, w.epoch, w.ended = nil, map[int]bool{}, 0, false
	w.run = engine.New(w.goal, w.base, w.pending)
	w.replayed = snapshot.New(w.base, w.pending)
	return w.settle()
}

// event reads an event.
func (w *stage) event(word, rest string) (engine.Event, error) {
	switch word {
	case "epoch":
		w.epoch, _ = strconv.Atoi(rest)
		w.seq = 0
		return engine.RunStarted{Epoch: w.epoch}, nil
	case "register", "read", "outputs":
		return w.asked(word, rest)
	case "refused":
		return w.refused(rest)
	case "waits":
		w.seq++
		return engine.ProgramWaits{Epoch: w.epoch, Seq: w.seq}, nil
	case "hook":
		return w.hook(rest)
	case "stack-analyzed":
		return w.stackAnalyzed(rest)
	case "exit":
		return engine.ProgramExited{Epoch: w.epoch, Error: rest}, nil
	case "cancel":
		return engine.Cancelled{}, nil
	case "force-cancel":
		return engine.Cancelled{Forced: true}, nil
	case "resolve":
		who, id, _ := strings.Cut(rest, " ")
		return engine.Resolved{URN: w.urnOf(who), ID: strings.TrimPrefix(id, "id=")}, nil
	case "pause-ended":
		p, err := take[engine.Pause](w, w.urnOf(rest))
		return engine.PauseEnded{Op: p.Op}, err
	case "plan":
		return w.plan(rest)
	case "compare":
		return w.compare(rest)
	case "cascade":
		return w.cascade(rest)
	}
	return w.finish(word, rest)
}

// asked reads what the program asks for.
func (w *stage) asked(word, rest string) (engine.Event, error) {
	it, err := parseItem(rest)
	if err != nil {
		return nil, err
	}
	g, unknown, err := w.registration(it)
	if err != nil {
		return nil, err
	}
	w.seq++
	if word == "outputs" {
		return engine.OutputsRegistered{Epoch: w.epoch, Seq: w.seq, URN: w.urnOf(it.name), Outputs: g.Inputs}, nil
	}
	u := makeURN(g.Parent, g.Type, g.Name)
	w.names[short(u)] = name{u, w.names[short(u)].id}
	if word == "register" {
		if len(unknown) > 0 {
			return nil, fmt.Errorf("a registration has no option %q", unknown)
		}
		return engine.Registered{Epoch: w.epoch, Seq: w.seq, Registration: g}, nil
	}
	read := engine.ReadRequested{
		Epoch: w.epoch, Seq: w.seq, Type: g.Type, Name: g.Name, Parent: g.Parent, Provider: g.Provider,
		Inputs:       g.Inputs,
		Dependencies: g.Dependencies, Digest: g.Digest,
	}
	for _, o := range unknown {
		read.ID = strings.TrimPrefix(o, "id=")
	}
	read.Digest += read.ID
	return read, nil
}

// refused reads "[kind] name [option…]: message", or ": message" of what was no registration.
func (w *stage) refused(rest string) (engine.Event, error) {
	who, message, _ := strings.Cut(" "+rest, ": ")
	ev := engine.Refused{Epoch: w.epoch, Message: message}
	if who = strings.TrimSpace(who); who == "" {
		return ev, nil
	}
	it, err := parseItem(who)
	if err != nil {
		return nil, err
	}
	g, _, err := w.registration(it)
	ev.Type, ev.Name, ev.Parent, ev.Aliases = g.Type, g.Name, g.Parent, g.Aliases
	return ev, err
}

// plan reads "NAME: same|answered|unanswered|update|replace [before] (keys)", "NAME: protected OUTPUTS" of what is the
// same but for the secretness of outputs, "NAME: invalid prop: reason; …" or "NAME: error why". What policies have
// found may come first: "violates LEVEL POLICY: …" and "remediated POLICY prop=value…: …".
func (w *stage) plan(rest string) (engine.Event, error) {
	who, what, _ := strings.Cut(rest, ": ")
	p, err := take[engine.Plan](w, w.urnOf(who))
	if err != nil {
		return nil, err
	}
	ev := engine.Planned{Op: p.Op, Inputs: p.Goal.Inputs}
	for _, b := range p.Goal.Bound {
		ev.Inputs = merged(ev.Inputs, b.Bag)
	}
	what, ev.Views = views(what)
	word, tail, _ := strings.Cut(what, " ")
	if word == "checked" { // the provider fills its defaults in
		var props string
		props, what, _ = strings.Cut(tail, ": ")
		ev.Inputs = bag(strings.Fields(props))
		word, tail, _ = strings.Cut(what, " ")
	}
	if p.Analyze {
		ev.Analysis = &engine.Analysis{Packs: []engine.PolicyPack{pack}}
	}
	for ; word == "violates" || word == "remediated"; word, tail, _ = strings.Cut(what, " ") {
		var found string
		found, what, _ = strings.Cut(tail, ": ")
		if err := analyzed(&ev, word, found); err != nil {
			return nil, err
		}
	}
	keys := func(s string) []string {
		return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("() ,", r) })
	}
	switch word {
	case "new":
	case "same":
		ev.Diff = engine.Diff{Change: engine.ChangeNone, StableKeys: keys(tail)}
	case "answered", "unanswered": // it is the same; is the program to know already?
		ev.Diff.Change, ev.Answered = engine.ChangeNone, word == "answered"
		if ev.Answered != (p.Answer != nil) {
			return nil, fmt.Errorf("%s: %s is wrong", who, word)
		}
	case "found":
		found := foundAs(tail)
		ev.Found = &found
	case "protected":
		outputs := bag(strings.Fields(tail))
		ev.Diff.Change, ev.Outputs = engine.ChangeNone, &outputs
	case "update":
		ev.Diff = engine.Diff{Change: engine.ChangeUpdate, ChangedKeys: keys(tail)}
	case "replace":
		tail, ev.Diff.DeleteBeforeReplace = strings.CutPrefix(tail, "before")
		ev.Diff.Change, ev.Diff.ReplaceKeys = engine.ChangeReplace, keys(tail)
	case "invalid":
		for _, f := range strings.Split(tail, "; ") {
			property, reason, _ := strings.Cut(f, ": ")
			ev.Failures = append(ev.Failures, engine.CheckFailure{Property: property, Reason: reason})
		}
	case "error":
		ev.Error = tail
	default:
		return nil, fmt.Errorf("a plan does not come to %q", word)
	}
	if p.Preview {
		ev.Preview = ev.Inputs
	}
	return ev, nil
}

// compare reads "OLD NEW: keep", "OLD NEW: replace" or "OLD NEW: error why".
func (w *stage) compare(rest string) (engine.Event, error) {
	_, what, _ := strings.Cut(rest, ": ")
	c, err := take[engine.Compare](w, "")
	why, failed := strings.CutPrefix(what, "error ")
	if !failed {
		why = ""
	}
	return engine.ProviderDiffed{Op: c.Op, Replace: what == "replace", Error: why}, err
}

// cascade reads "ROOT: member(key) member(key)…", in dependency order, or "ROOT: error why".
func (w *stage) cascade(rest string) (engine.Event, error) {
	who, what, _ := strings.Cut(rest, ":")
	c, err := take[engine.Cascade](w, w.urnOf(who))
	if err != nil {
		return nil, err
	}
	ev := engine.CascadePlanned{Op: c.Op}
	if why, failed := strings.CutPrefix(strings.TrimSpace(what), "error "); failed {
		ev.Error = why
		return ev, nil
	}
	for _, m := range strings.Fields(what) {
		member, key, _ := strings.Cut(strings.TrimSuffix(m, ")"), "(")
		i := slices.IndexFunc(c.Candidates, func(s engine.State) bool { return short(s.URN) == member })
		if i < 0 {
			return nil, fmt.Errorf("%s is no candidate", member)
		}
		ev.Members = append(ev.Members, engine.Dependent{Key: c.Candidates[i].Key, Keys: []string{key}})
	}
	return ev, nil
}

// settle lets the core go on, prints what it answers and checks what must always hold.
func (w *stage) settle() error {
	for ready := w.run.Ready(); !ready.Empty(); ready = w.run.Ready() {
		for _, d := range ready.Changes {
			w.replayed.Apply(d)
		}
		for _, e := range ready.Events {
			if err := w.emitted(e); err != nil {
				return err
			}
		}
		for _, c := range ready.Start {
			w.command(c)
		}
		for _, reply := range ready.Replies {
			w.printf("> reply %s\n", w.reply(reply))
		}
	}
	if err := w.check(); err != nil {
		return err
	}
	if res, done := w.run.Result(); done && !w.ended {
		w.ended = true
		w.printResult(res)
	}
	if w.suspend && w.run.InFlight() == 0 {
		return w.putAway()
	}
	return nil
}

// check holds the core to its promises about the snapshot.
func (w *stage) check() error {
	if err := w.run.Check(); err != nil {
		return fmt.Errorf("an invariant does not hold: %w", err)
	}
	if w.goal.DryRun { // its snapshot holds what would be, without ids
		return nil
	}
	states, pending := w.run.Snapshot()
	if err := snapshot.Verify(states); err != nil {
		return fmt.Errorf("the snapshot is broken: %w", err)
	}
	again, pendingAgain := w.replayed.States()
	if a, b := printed(states, pending), printed(again, pendingAgain); a != b {
		return fmt.Errorf("the deltas lead elsewhere: the snapshot is\n%s\nand the deltas give\n%s", a, b)
	}
	if n := len(w.open); n != w.run.InFlight() {
		return fmt.Errorf("%d commands are unanswered, the core says %d", n, w.run.InFlight())
	}
	return nil
}

// putAway suspends the run and takes it up again.
func (w *stage) putAway() error {
	data, err := w.run.Suspend()
	if err != nil {
		return err
	}
	before, pendingBefore := w.run.Snapshot()
	if w.run, err = engine.Resume(w.goal, w.base, w.pending, data); err != nil {
		return err
	}
	after, pendingAfter := w.run.Snapshot()
	if a, b := printed(before, pendingBefore), printed(after, pendingAfter); a != b {
		return fmt.Errorf("put away\n%s\nbut taken up\n%s", a, b)
	}
	if !w.run.Ready().Empty() {
		return errors.New("a quiet run had something to say after it was taken up")
	}
	return nil
}
