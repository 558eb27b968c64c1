package modeltest

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

// driver plays one update against the cloud: whatever may happen next happens in random order.
type driver struct {
	rng      *rand.Rand
	memory   *memory
	cloud    *cloud
	goal     engine.Goal
	base     []engine.State
	world    []engine.State // the base as a refresh must find it
	pending  []engine.PendingOperation
	fails    bool
	suffixes *[8]string // by which the resources are known now
	fickle   bool       // another start may declare something else
	program  []declared

	run        *engine.Run
	ahead      ahead
	replayed   *snapshot.Snapshot
	open       []engine.Command
	paused     []int                       // operations whose pauses have not ended
	lost       map[int]engine.StepFinished // effects nobody was told of
	called     map[int]bool                // operations whose providers were called, so that nothing is looked for
	epochs     int
	registered []declared      // in this epoch, in order
	ids        map[int]string  // replies of this epoch
	replied    map[int]bool    // sequence numbers
	told       map[int]urn.URN // the URNs in the replies to this start of the program
	failed     bool
	exited     bool
	switched   bool // another start has declared something else
	log        strings.Builder
}

func (d *driver) play() error {
	d.run = engine.New(d.goal, d.base, d.pending)
	d.replayed = snapshot.New(d.base, d.pending)
	d.lost, d.called = map[int]engine.StepFinished{}, map[int]bool{}
	for _, s := range headers(d.base) {
		d.say(s)
	}
	if !d.exited {
		d.start()
	}
	for range 3000 {
		if err := d.settle(); err != nil {
			return fmt.Errorf("%w\n%s", err, d.log.String())
		}
		if _, done := d.run.Result(); done {
			return nil
		}
		if !d.next() {
			return fmt.Errorf("nothing goes on\n%s", d.log.String())
		}
	}
	return fmt.Errorf("it does not end\n%s", d.log.String())
}

func (d *driver) handle(ev engine.Event) {
	d.say(line(ev))
	d.run.Handle(ev)
}

// say keeps what happened, for when it goes wrong.
func (d *driver) say(text string) {
	d.log.WriteString(text)
	d.log.WriteByte('\n')
}

func (d *driver) start() {
	d.epochs++
	d.registered, d.ids, d.replied = nil, map[int]string{}, map[int]bool{}
	d.told = map[int]urn.URN{}
	d.ahead = ahead{}
	if d.epochs == 1 && d.rng.IntN(2) == 0 {
		d.ahead.replica = engine.NewReplica(d.goal, d.base, d.pending)
	}
	d.handle(engine.RunStarted{Epoch: d.epochs})
}

// settle takes what the engine answers, and holds it to its invariants.
func (d *driver) settle() error {
	for ready := d.run.Ready(); !ready.Empty(); ready = d.run.Ready() {
		for _, delta := range ready.Changes {
			d.retain(delta)
			d.memory.learn(delta)
			d.replayed.Apply(delta)
		}
		for _, e := range ready.Events {
			if e.Kind == engine.EmitDiagnostic {
				d.say("> " + line(e))
			}
			if strings.Contains(e.Message, "was reported to the program") {
				return fmt.Errorf("the replica decided otherwise: %s", e.Message)
			}
			refused := slices.ContainsFunc([]string{"protect", "target", "exclude"}, func(option string) bool {
				return strings.Contains(e.Message, option)
			})
			d.failed = d.failed || refused && e.Severity == "error"
		}
		for _, c := range ready.Start {
			d.say("> " + line(c))
			switch c := c.(type) {
			case engine.Pause:
				d.paused = append(d.paused, c.Op)
			case engine.Abandon:
				d.paused = slices.DeleteFunc(d.paused, func(op int) bool { return op == c.Op })
			default:
				d.open = append(d.open, c)
			}
		}
		for _, reply := range ready.Replies {
			d.say("> " + line(reply))
			d.reply(reply)
		}
	}
	states, _ := d.run.Snapshot()
	if len(d.cloud.wrongs) > 0 {
		return fmt.Errorf("%v in\n%s\n", d.cloud.wrongs, strings.Join(headers(states), "\n"))
	}
	if err := d.run.Check(); err != nil {
		return fmt.Errorf("an invariant does not hold: %w", err)
	}
	if d.run.InFlight() != len(d.open)+len(d.paused) {
		return fmt.Errorf("%d are in flight, %d open, %d paused", d.run.InFlight(), len(d.open), len(d.paused))
	}
	if err := snapshot.Verify(states); err != nil {
		return fmt.Errorf("%w in\n%s\n", err, strings.Join(headers(states), "\n"))
	}
	return nil
}

// retain takes note of objects that leave the snapshot to stay in the cloud.
func (d *driver) retain(delta engine.Delta) {
	keys := delta.Removes
	if delta.Kind == engine.DeltaSet && delta.State.PendingReplacement {
		keys = []engine.Key{delta.State.Key}
	}
	for _, k := range keys {
		if s := d.replayed.Get(k); s != nil && s.RetainOnDelete {
			d.cloud.retained[s.ID] = true
		}
	}
}

// reply tells the program. What it was told before by handOver comes again when its step had to be settled.
func (d *driver) reply(c engine.Reply) {
	d.replied[c.Seq], d.told[numberOf(c.URN)] = true, c.URN
	if d.ids[numberOf(c.URN)] = c.ID; c.Result == engine.ResultSkip && c.Unknown {
		d.ids[numberOf(c.URN)] = "?" // it is left out
	} else if c.Result != engine.ResultSuccess {
		delete(d.ids, numberOf(c.URN))
	}
}

// handOver sometimes gives the program a foreseen reply before the run hears what it is to; the program may go on at
// once.
func (d *driver) handOver(c *engine.Reply, id string) bool {
	if c == nil || c.Epoch != d.epochs || d.exited || d.rng.IntN(2) == 0 {
		return false
	}
	d.say("handed over to " + c.URN.Name())
	reply := *c
	reply.ID = id
	d.reply(reply)
	for d.rng.IntN(3) > 0 && d.register() {
		continue
	}
	return true
}

// next lets one thing happen; it reports whether anything could.
func (d *driver) next() bool {
	if len(d.open)+len(d.paused) == 0 && d.rng.IntN(3) == 0 && !d.putAway() {
		return false
	}
	if d.epochs < 4 && !d.exited && d.rng.IntN(40) == 0 {
		if d.fickle && d.rng.IntN(3) == 0 {
			d.cloud.tangled, d.switched = true, true
			d.program = randomProgram(d.rng, d.program, d.suffixes)
		}
		d.start()
		return true
	}
	if d.fails && d.rng.IntN(60) == 0 {
		d.failed = true
		d.handle(engine.Cancelled{})
		return true
	}
	if waiting := d.run.Progress().Waiting; len(waiting) > 0 && (len(d.open) == 0 || d.rng.IntN(4) == 0) {
		d.resolve(waiting[d.rng.IntN(len(waiting))])
		return true
	}
	if n := len(d.paused); n > 0 && (len(d.open) == 0 || d.rng.IntN(4) == 0) {
		i := d.rng.IntN(n)
		op := d.paused[i]
		d.paused = slices.Delete(d.paused, i, i+1)
		d.handle(engine.PauseEnded{Op: op})
		return true
	}
	if n := len(d.open); n > 0 && d.rng.IntN(2) == 0 {
		d.answer(d.rng.IntN(n))
		return true
	}
	if d.rng.IntN(2) == 0 && d.goAhead() || d.register() || d.goAhead() || d.exit() {
		return true
	}
	if len(d.open) > 0 {
		d.answer(d.rng.IntN(len(d.open)))
		return true
	}
	return false
}

func (d *driver) putAway() bool {
	data, err := d.run.Suspend()
	if err == nil {
		d.run, err = engine.Resume(d.goal, d.base, d.pending, data)
	}
	d.say("put away")
	return err == nil
}

// register declares a resource whose dependencies are there.
func (d *driver) register() bool {
	if d.exited {
		return false
	}
	for _, i := range d.rng.Perm(len(d.program)) {
		next := d.program[i]
		there := func(n int) bool { _, ok := d.ids[n]; return ok }
		if slices.ContainsFunc(d.registered, func(r declared) bool { return r.number == next.number }) ||
			!all(next.deps, there) || !all(next.after, there) {
			continue
		}
		d.registered = append(d.registered, next)
		g := d.registration(next)
		d.offer(engine.Registered{Epoch: d.epochs, Seq: len(d.registered), Registration: g})
		return true
	}
	return false
}

// registration is what the program says of a resource.
func (d *driver) registration(r declared) engine.Registration {
	g := engine.Registration{Type: kind, Name: r.name(), Custom: true, Inputs: bag(inputs(r, d.ids))}
	for _, n := range r.deps {
		g.PropertyDependencies = append(g.PropertyDependencies, engine.PropertyDependency{
			Property: fmt.Sprintf("p%d", n), URNs: []urn.URN{d.urnOf(n)},
		})
	}
	for _, n := range slices.Concat(r.deps, r.after) {
		g.Dependencies = append(g.Dependencies, d.urnOf(n))
	}
	for s := r.suffix; s != ""; s = s[1:] {
		g.Aliases = append(g.Aliases, engine.Alias{Name: declared{number: r.number, suffix: s[1:]}.name()})
	}
	g.Digest = fmt.Sprint(g, r.protect, r.retain)
	g.Protect, g.RetainOnDelete = &r.protect, &r.retain
	return g
}

// urnOf returns the URN by which the program refers to a resource: the one that it was told.
func (d *driver) urnOf(n int) urn.URN {
	if told, ok := d.told[n]; ok {
		return told
	}
	return d.program[slices.IndexFunc(d.program, func(o declared) bool { return o.number == n })].urn()
}

// exit ends the program when everything is answered, and it can do no more.
func (d *driver) exit() bool {
	if d.exited || len(d.ahead.held) > 0 || len(d.replied) < len(d.registered) ||
		len(d.registered) < len(d.program) && !d.failed {
		return false
	}
	d.exited = true
	ev := engine.ProgramExited{Epoch: d.epochs}
	if len(d.ids) < len(d.program) {
		ev.Error, ev.Bailed = "a registration failed", true
	}
	if ev.Error != "" && d.goal.ContinueOnError {
		ev.Error = ""
	}
	d.handle(ev)
	return true
}

// answer answers an open command.
func (d *driver) answer(i int) {
	c := d.open[i]
	d.open = slices.Delete(d.open, i, i+1)
	switch c := c.(type) {
	case engine.Plan:
		ev := planned(c)
		if ev.Found = d.cloud.looked(c.Look); ev.Found != nil {
			d.handle(ev)
			return
		}
		ev.Answered = ev.Diff.Change == engine.ChangeNone && d.handOver(c.Answer, c.Old.ID)
		d.handle(ev)
	case engine.Cascade:
		ev, members := engine.CascadePlanned{Op: c.Op}, map[int]bool{numberOf(c.Root.URN): true}
		for _, s := range c.Candidates {
			if n := numberOf(s.URN); n%2 == 1 && dependsOn(s, members) {
				members[n] = true
				ev.Members = append(ev.Members, engine.Dependent{Key: s.Key})
			}
		}
		d.handle(ev)
	case engine.Step:
		d.handle(d.step(c))
	case engine.Settle:
		d.handle(d.awaited(c.Step, d.found(c.Step)))
	}
}

// awaited sometimes has what was found, or was made, not be ready.
func (d *driver) awaited(s engine.Step, ev engine.StepFinished) engine.StepFinished {
	if s.Await && ev.Outcome == engine.OutcomeDone && !ev.Answered && d.rng.IntN(4) == 0 {
		ev.Awaited, ev.InitErrors = &engine.Awaited{For: "a moment", After: 1}, []string{"a moment"}
	}
	return ev
}

// planned is what a provider says of a plan.
func planned(c engine.Plan) engine.Planned {
	ev := engine.Planned{Op: c.Op, Inputs: c.Goal.Inputs}
	if n := numberOf(c.URN); !c.Recreate && c.Old != nil {
		ev.Diff.Change = change(n, c.Old.Inputs.Digest, c.Goal.Inputs.Digest)
		ev.Diff.DeleteBeforeReplace = deletesFirst(n)
	}
	return ev
}

// found settles a step whose outcome is unknown. Sometimes nobody can tell whether a create has happened.
func (d *driver) found(s engine.Step) engine.StepFinished {
	ev, ok := d.lost[s.Op]
	delete(d.lost, s.Op)
	if id := d.cloud.find(s.Seed); isCreate(s) && id != "" {
		outputs := bag(d.cloud.objects[id].inputs)
		ev, ok = engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeDone, ID: id, Inputs: &outputs, Outputs: outputs},
			true
		if s.Await && outputs.Digest != s.New.Inputs.Digest { // an earlier stack's: it is gone on with
			ev.Awaited, ev.InitErrors = &engine.Awaited{For: "the rest", After: 1}, []string{"it is not as declared"}
			ev.Inputs = nil // the create's own, which the update will give it
		}
	}
	switch {
	case isCreate(s) && (d.fails || d.goal.WaitOnUnknown) && d.rng.IntN(3) == 0:
		d.failed = d.failed || !d.goal.WaitOnUnknown
		return engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeUndecidable, Error: "no rule"}
	case !ok:
		return engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeAbsent}
	}
	return ev
}

// resolve lets a person answer about a create, mostly rightly.
func (d *driver) resolve(u urn.URN) {
	ev := engine.Resolved{URN: u}
	_, pending := d.run.Snapshot()
	for _, p := range pending {
		if p.State.URN == u && p.Kind == "creating" {
			ev.ID = d.cloud.find(p.Seed)
		}
	}
	d.handle(ev)
}

func isCreate(s engine.Step) bool {
	return s.Kind == engine.StepCreate || s.Kind == engine.StepCreateReplacement
}

// reads change nothing.
var reads = []engine.StepKind{engine.StepRefresh, engine.StepImport, engine.StepImportReplacement}

// step carries a step out, more or less.
func (d *driver) step(s engine.Step) engine.StepFinished {
	if found := d.cloud.looked(s.Look); found != nil && !d.called[s.Op] && !s.Adopt {
		return engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeDone, Found: found}
	}
	d.called[s.Op] = true
	if isCreate(s) && d.cloud.retained[d.cloud.find(s.Seed)] && !s.Adopt {
		return engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeFailed, Error: "409",
			Evidence: &engine.Evidence{Class: engine.ErrorExists, Look: true}}
	}
	switch n := d.rng.IntN(20); {
	case n == 0 && !s.Adopt:
		return engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeUnknown}
	case n == 1 && !s.Adopt:
		d.lost[s.Op] = d.cloud.apply(s)
		d.handOver(s.Answer, d.lost[s.Op].ID)
		return engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeUnknown}
	case n == 2 && d.fails && !s.Adopt:
		d.failed = true
		return engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeFailed, Error: "quota"}
	case n == 4 && d.fails && !slices.Contains(reads, s.Kind) && s.Kind != engine.StepUpdate && !s.Adopt:
		if d.rng.IntN(2) == 0 {
			d.lost[s.Op] = d.cloud.apply(s)
		} else {
			d.failed = true
		}
		return engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeFailed, Error: "500",
			Evidence: &engine.Evidence{Class: engine.ErrorAmbiguous, Look: true}}
	case n == 5 && d.fails && s.Kind == engine.StepUpdate:
		d.failed = true // without an effect: what it would depend on then is in no state
		return engine.StepFinished{Op: s.Op, Outcome: engine.OutcomeFailed, Error: "500",
			Evidence: &engine.Evidence{Class: engine.ErrorAmbiguous}}
	case n == 3 && d.fails && s.New != nil && !slices.Contains(reads, s.Kind):
		d.failed = true
		ev := d.cloud.apply(s)
		ev.Outcome, ev.InitErrors = engine.OutcomePartial, []string{"it does not answer"}
		return ev
	}
	ev := d.cloud.apply(s)
	ev.Answered = d.handOver(s.Answer, ev.ID)
	return d.awaited(s, ev)
}

func bag(text string) engine.Bag {
	return engine.Bag{Digest: text, Inline: []byte(`"` + strings.TrimSpace(text) + `"`)}
}

func all(list []int, ok func(int) bool) bool {
	return !slices.ContainsFunc(list, func(n int) bool { return !ok(n) })
}
