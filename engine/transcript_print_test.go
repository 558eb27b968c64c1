package engine_test

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

// command prints a command, and keeps it open if it wants an answer.
func (w *stage) command(c engine.Command) {
	switch c := c.(type) {
	case engine.Plan:
		w.open = append(w.open, c)
		w.printf("> plan %s%s%s%s%s\n", short(c.URN), from(c.Old), when(c.Recreate, ", which is replaced"),
			extended(c.Provider)+looks(c.Look), bound(c.Goal)+once(c.Aliases))
	case engine.Compare:
		w.open = append(w.open, c)
		w.printf("> compare %s %s\n", reference(c.Old.Ref), reference(c.New.Ref))
	case engine.Cascade:
		w.open = append(w.open, c)
		w.printf("> cascade %s: %s\n", short(c.Root.URN), list(c.Candidates))
	case engine.Step:
		w.open = append(w.open, c)
		w.printf("> %s\n", stepLine(c))
	case engine.Hook:
		w.open = append(w.open, c)
		w.printf("> hook %s %s of %s%s\n", c.Point, c.Name, stepLine(engine.Step{Kind: c.Kind, URN: c.URN, Old: c.Old,
			New: c.New}), when(len(c.Errors) > 0, " after: "+strings.Join(c.Errors, ", ")))
	case engine.AnalyzeStack:
		w.open = append(w.open, c)
		w.printf("> analyze the stack: %s%s\n", list(c.States), deletedFirst(c))
	case engine.Settle:
		w.open = append(w.open, c)
		how := "settle"
		if !c.Again {
			how = "settle for good"
		}
		w.printf("> %s %s%s\n", how, stepLine(c.Step), when(c.After != nil, " after an error"))
	case engine.Pause:
		w.open = append(w.open, c)
		w.printf("> pause %s for %v s: it waits for %s\n", short(c.URN), c.Seconds, c.For)
	case engine.Abandon:
		w.printf("> abandon %s\n", w.stepWithOp(c.Op))
		w.open = slices.DeleteFunc(w.open, func(o engine.Command) bool {
			p, ok := o.(engine.Pause)
			return ok && p.Op == c.Op
		})
	}
}

// deletedFirst lists the options deleteBeforeReplace in an analysis of the stack.
func deletedFirst(c engine.AnalyzeStack) (text string) {
	for _, s := range c.States {
		if before, ok := c.DeleteBeforeReplace[s.URN]; ok {
			text += fmt.Sprintf(" [delete-before-replace of %s=%v]", short(s.URN), before)
		}
	}
	return text
}

func (w *stage) stepWithOp(op int) string {
	for _, c := range w.open {
		if h, ok := c.(engine.Hook); ok && h.Op == op {
			return "hook " + h.Name
		}
		if a, ok := c.(engine.AnalyzeStack); ok && a.Op == op {
			return "the analysis of the stack"
		}
		if p, ok := c.(engine.Pause); ok && p.Op == op {
			return "the pause of " + short(p.URN)
		}
		if p, ok := c.(engine.Plan); ok && p.Op == op {
			return "the plan of " + short(p.URN)
		}
		if stepOf(c).Op == op {
			return stepLine(stepOf(c))
		}
	}
	return "(nothing that runs)"
}

func stepLine(s engine.Step) string {
	line := string(s.Kind) + " " + short(s.URN)
	if s.New != nil {
		line += values(s.New.Inputs)
		if s.New.ID != "" && (s.Kind != engine.StepUpdate) {
			line += " id=" + id(s.New.ID)
		}
	}
	if s.Old != nil {
		line += from(s.Old)
	}
	if len(s.Views) > 0 {
		line += " with views " + list(s.Views)
	}
	return line + when(s.Adopt, ", which was found") + when(s.Provider != nil, " by "+provider(s.Provider)) +
		extended(s.Provider) + looks(s.Look)
}

// looks says under which generations something is looked for first.
func looks(l *engine.Look) string {
	if l == nil {
		return ""
	}
	return fmt.Sprintf(", looked for as %d to %d%s", l.First, l.First+1-len(l.Seeds), when(l.TakeOver, " by whoever"))
}

// bound says what the bindings of a resource add to its inputs.
func bound(g engine.Registration) (text string) {
	for _, b := range g.Bound {
		text += ", bound to" + values(b.Bag) + when(b.Registered, "!")
	}
	return text
}

// extended says what a provider must have been extended by.
func extended(p *engine.Provider) string {
	if p == nil || p.Extension.Empty() {
		return ""
	}
	return ", extended by" + values(p.Extension)
}

func provider(p *engine.Provider) string {
	if p == nil {
		return ""
	}
	return reference(p.Ref)
}

func when(cond bool, s string) string {
	if cond {
		return s
	}
	return ""
}

func from(old *engine.State) string {
	if old == nil {
		return ""
	}
	return " from " + id(old.ID)
}

// id shortens the ids of providers, which are UUIDs.
func id(s string) string {
	if uuid.MatchString(s) {
		return s[:4]
	}
	return when(s == "", "(no id)") + s
}

var uuid = regexp.MustCompile("^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$")

func values(b engine.Bag) string {
	if b.Empty() {
		return ""
	}
	return " " + b.Digest
}

func reference(ref string) string {
	u, i := snapshot.SplitReference(ref)
	return short(u) + "@" + id(i)
}

// once names what policy packs are told that a resource was.
func once(aliases []urn.URN) string {
	text := ""
	for _, u := range aliases {
		text += ", once " + short(u)
	}
	return text
}

func list(states []engine.State) string {
	var out []string
	for _, s := range states {
		out = append(out, short(s.URN))
	}
	return strings.Join(out, " ")
}

func (w *stage) reply(c engine.Reply) string {
	who := short(c.URN)
	if c.Result != engine.ResultSuccess {
		return who + " " + string(c.Result) + when(c.Error != "", ": "+words(c.Error))
	}
	w.names[who] = name{c.URN, c.ID}
	return who + when(c.ID != "", " id="+id(c.ID)) + values(c.Object) + when(c.Unknown, " and the rest unknown") +
		when(len(c.Stables) > 0, " stable: "+strings.Join(c.Stables, " "))
}

// emitted prints what people are told: outcomes and diagnostics. That a step begins shows in the step; it must be told
// before its outcome, unless there is nothing to it.
func (w *stage) emitted(e engine.Emit) error {
	switch e.Kind {
	case engine.EmitPre:
		w.pre[e.Op] = true
	case engine.EmitRemediation:
		w.printf("> remediation %s of %s:%s becomes%s\n", e.Remediation.Policy, short(e.URN),
			values(e.Remediation.Before), values(e.Remediation.After))
	case engine.EmitViolation:
		w.printf("> violation of %s by %s: %s\n", e.Violation.Policy, short(e.URN), e.Violation.Level)
	case engine.EmitDiagnostic:
		w.printf("> %s: %s\n", e.Severity, words(e.Message))
	case engine.EmitOutputs, engine.EmitFailed:
		if e.Op != 0 && !w.pre[e.Op] && e.Step != engine.StepSame {
			return fmt.Errorf("%s %s ended without a beginning", e.Step, e.URN)
		}
		w.printf("> %s %s%s%s\n", when(e.Kind == engine.EmitFailed, "failed:")+when(e.Kind == engine.EmitOutputs,
			"done:"),
			string(e.Step), " "+short(e.URN), when(e.Message != "", ": "+words(e.Message))+before(e))
	}
	return nil
}

// before is what an unchanged resource is shown to have been before.
func before(e engine.Emit) string {
	switch {
	case e.Step != engine.StepSame || e.Old == nil || e.New == nil:
	case e.Old.URN != e.URN:
		return ", was " + short(e.Old.URN)
	case e.Old.Protect && !e.New.Protect:
		return ", no longer protected"
	}
	return ""
}

// words shortens the URNs in a sentence.
func words(s string) string {
	return anyURN.ReplaceAllStringFunc(s, func(u string) string {
		for _, n := range namesIn(u) {
			return n
		}
		return u
	})
}

var anyURN = regexp.MustCompile(`urn:pulumi:[A-Za-z0-9:$._-]+`)

func namesIn(u string) []string {
	trimmed := strings.TrimRight(u, ":.")
	parts := strings.Split(trimmed, "::")
	return []string{parts[len(parts)-1] + u[len(trimmed):]}
}

func (w *stage) printResult(res engine.Result) {
	var changes []string
	for _, kind := range slices.Sorted(maps.Keys(res.Changes)) {
		changes = append(changes, fmt.Sprintf("%s %d", kind, res.Changes[kind]))
	}
	w.printf("> %s%s%s%s%s\n", res.Status, when(len(changes) > 0, ": "), strings.Join(changes, ", "),
		when(res.NamesNothing, ", names nothing"), when(res.Error != "", " ("+words(res.Error)+")"))
	if !w.goal.DryRun {
		w.printStates()
	}
}

func (w *stage) printStates() { w.printf("%s", printed(w.run.Snapshot())) }

// printed shows a snapshot.
func printed(states []engine.State, pending []engine.PendingOperation) string {
	var out strings.Builder
	for _, s := range states {
		fmt.Fprintf(&out, "> | %s\n", stateLine(s))
	}
	for _, p := range pending {
		fmt.Fprintf(&out, "> | %s %s\n", p.Kind, short(p.State.URN))
	}
	return out.String()
}

var hookPoints = []engine.HookPoint{
	engine.BeforeCreate, engine.AfterCreate, engine.BeforeUpdate, engine.AfterUpdate, engine.BeforeDelete,
	engine.AfterDelete, engine.OnError,
}

func stateLine(s engine.State) string {
	line := short(s.URN) + when(s.ID != "", " id="+id(s.ID)) + values(s.Inputs)
	if !s.Inputs.Same(s.Outputs) {
		line += " ->" + values(s.Outputs)
	}
	var opts []string
	add := func(cond bool, o string) {
		if cond {
			opts = append(opts, o)
		}
	}
	add(s.Delete, "delete")
	add(s.PendingReplacement, "pending-replacement")
	add(s.External, "external")
	add(s.Taint, "taint")
	add(s.Snippet != "", "snippet")
	add(s.Protect, "protect")
	add(s.RetainOnDelete, "retain")
	if s.Parent != "" {
		opts = append(opts, "parent="+short(s.Parent))
	}
	if s.Provider != "" {
		opts = append(opts, "provider="+reference(s.Provider))
	}
	for _, u := range s.Dependencies {
		opts = append(opts, "on="+short(u))
	}
	for _, p := range s.PropertyDependencies {
		for _, u := range p.URNs {
			opts = append(opts, p.Property+"<-"+short(u))
		}
	}
	for _, u := range s.ReplaceWith {
		opts = append(opts, "replace-with="+short(u))
	}
	if s.DeletedWith != "" {
		opts = append(opts, "with="+short(s.DeletedWith))
	}
	for _, u := range s.Aliases {
		opts = append(opts, "alias="+short(u))
	}
	add(len(s.InitErrors) > 0, "init-error="+strings.Join(s.InitErrors, ","))
	for _, p := range hookPoints {
		add(len(s.Hooks[p]) > 0, string(p)+"="+strings.Join(s.Hooks[p], ","))
	}
	add(s.ViewOf != "", "view-of="+short(s.ViewOf))
	add(s.ImportID != "", "import="+s.ImportID)
	add(!s.Extension.Empty(), "extension="+s.Extension.Digest)
	add(s.RefreshBeforeUpdate, "refresh-before-update")
	add(!s.Trigger.Empty(), "trigger="+s.Trigger.Digest)
	if len(opts) > 0 {
		line += " [" + strings.Join(opts, " ") + "]"
	}
	return line
}
