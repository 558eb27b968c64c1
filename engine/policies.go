package engine

import (
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Policy packs look at an update in two places, if Goal.Policies is set:
//
//	Plan          analyses a resource after Check and before Diff. Remediations have changed the inputs of its result;
//	              commit shows them, and fails the entry if a mandatory policy is violated. So every resource is planned
//	              that would be created without a plan otherwise, and so is every component.
//	AnalyzeStack  analyses what the stack holds when everything else has ended well.
//
// A preview shows violations and goes on, so that it shows all of them; it fails at its end. What was read or imported
// by its id is not analysed as a resource, as in Pulumi: it is a part of the stack.

// PolicyLevel says what follows from a violation.
type PolicyLevel string

// The levels of violations. A policy that remediates and is violated all the same counts as mandatory.
const (
	PolicyAdvisory  PolicyLevel = "advisory"
	PolicyMandatory PolicyLevel = "mandatory"
)

// PolicyPack is a policy pack that has analysed something.
type PolicyPack struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// Analysis is what the policy packs found out about a resource, or about the stack.
type Analysis struct {
	Packs        []PolicyPack  `json:"packs,omitempty"`
	Remediations []Remediation `json:"remediations,omitempty"` // in the order in which they were applied
	Violations   []Violation   `json:"violations,omitempty"`
}

// Remediation is a change of a resource's inputs that a policy has made.
type Remediation struct {
	Pack   PolicyPack `json:"pack"`
	Policy string     `json:"policy"`
	Before Bag        `json:"before"`
	After  Bag        `json:"after"`
}

// Violation says that a resource, or the stack, violates a policy.
type Violation struct {
	Pack     PolicyPack  `json:"pack"`
	Policy   string      `json:"policy"`
	Level    PolicyLevel `json:"level"`
	Severity string      `json:"severity,omitempty"` // low, medium, high or critical; empty if the policy has none
	Message  string      `json:"message"`
	// URN is the resource that a policy of the stack names; empty: the stack.
	URN urn.URN `json:"urn,omitempty"`
}

// Mandatory returns the first violation of a mandatory policy; nil if there is none.
func (a *Analysis) Mandatory() *Violation {
	if a == nil {
		return nil
	}
	for i := range a.Violations {
		if a.Violations[i].Level == PolicyMandatory {
			return &a.Violations[i]
		}
	}
	return nil
}

// analyses reports that policy packs analyse an entry.
func (r *Run) analyses(e *entry) bool { return r.goal.Policies && !e.Imported }

// root returns the URN of the stack's own resource.
func (r *Run) root() urn.URN {
	return r.urnOf(Registration{Type: rootType, Name: r.goal.Project + "-" + r.goal.Stack})
}

// violates shows what the policy packs found out about an entry, and fails the entry if it violates a mandatory policy.
// It reports whether the entry failed. The analysis is removed, because an entry may be committed in several attempts.
func (r *Run) violates(e *entry) bool {
	a := e.Plan.Analysis
	e.Plan.Analysis = nil
	violated := r.showAnalysis(e.URN, a)
	if violated == "" || r.goal.DryRun {
		return false
	}
	r.bail(e, violated)
	return true
}

// showAnalysis shows an analysis of a resource or, with the URN of the root, of the stack. It returns a sentence about
// the first violation of a mandatory policy; empty if there is none. It makes a preview fail at its end.
func (r *Run) showAnalysis(u urn.URN, a *Analysis) string {
	if a == nil {
		return ""
	}
	for _, p := range a.Packs {
		if !slices.Contains(r.Packs, p) {
			r.Packs = append(r.Packs, p)
		}
	}
	for i := range a.Remediations {
		r.emit(Emit{Kind: EmitRemediation, URN: u, Type: snapshot.TypeOf(u), Remediation: &a.Remediations[i]})
	}
	for i := range a.Violations {
		of := u
		if named := a.Violations[i].URN; named != "" && r.snap.Live(named) != nil {
			of = named
		}
		r.emit(Emit{Kind: EmitViolation, URN: of, Type: snapshot.TypeOf(of), Violation: &a.Violations[i]})
	}
	v := a.Mandatory()
	if v == nil {
		return ""
	}
	subject := string(u)
	if u == r.root() {
		subject = "the stack"
	}
	sentence := fmt.Sprintf("%s violates the mandatory policy %s of the policy pack %s", subject, v.Policy, v.Pack.Name)
	if r.goal.DryRun && r.Violated == "" {
		r.Violated = sentence
	}
	return sentence
}

// analyzeStack asks the policy packs about the stack, once, when everything else has ended well; it reports whether it
// did. Violations of resources do not keep a preview from it.
func (r *Run) analyzeStack() bool {
	if !r.goal.Policies || r.StackAnalysis != 0 || r.Stopped || r.FirstError != "" {
		return false
	}
	states, _ := r.snap.States()
	c := AnalyzeStack{Preview: r.goal.DryRun, DeleteBeforeReplace: map[urn.URN]bool{}}
	for _, s := range states {
		if s.Delete || s.PendingReplacement {
			continue
		}
		c.States = append(c.States, r.saved(s))
		if e := r.byURN[s.URN]; e != nil && e.Reg.DeleteBeforeReplace != nil {
			c.DeleteBeforeReplace[s.URN] = *e.Reg.DeleteBeforeReplace
		}
	}
	r.StackAnalysis = r.newQuery(&operation{For: forStack})
	c.Op = r.StackAnalysis
	r.ready.Start = append(r.ready.Start, c)
	return true
}

// saved returns a state as a command has it that may have all of them: with references to the values that are saved. A
// preview saves nothing.
func (r *Run) saved(s State) State {
	if r.goal.DryRun {
		return s
	}
	return s.Saved()
}

// stackAnalyzed shows what the policy packs found out about the stack. Nothing is undone: what the update did is
// recorded.
func (r *Run) stackAnalyzed(ev StackAnalyzed) {
	if r.takeQuery(ev.Op) == nil {
		return
	}
	if ev.Error != "" {
		if !r.Cancelled {
			r.diagnose("error", "", "%s", ev.Error)
			r.noteError(ev.Error)
		}
		return
	}
	if violated := r.showAnalysis(r.root(), ev.Analysis); violated != "" && !r.goal.DryRun {
		r.noteError(violated)
	}
}

// forgetStackAnalysis makes the stack be analysed again, because another start of the program may change it.
func (r *Run) forgetStackAnalysis() {
	if r.StackAnalysis != 0 {
		r.drop(r.StackAnalysis)
		r.StackAnalysis = 0
	}
}

// abandonAnalyses cuts off what policy packs analyse: their calls have no limit of time.
func (r *Run) abandonAnalyses() {
	if !r.goal.Policies {
		return
	}
	for n := 1; n <= r.NextOp; n++ {
		if op := r.Ops[n]; op != nil && op.Step == nil {
			r.ready.Start = append(r.ready.Start, Abandon{Op: n})
		}
	}
}

// componentDiff is the plan of a component without Check and Diff: it is compared with its stored inputs.
func (e *entry) componentDiff(old *State) Diff {
	switch {
	case old == nil:
		return Diff{}
	case e.Forced != nil || old.PendingReplacement || old.Custom: // what its provider made goes
		return Diff{Change: ChangeReplace}
	case old.Inputs.Same(e.New.Inputs):
		return Diff{Change: ChangeNone}
	}
	return Diff{Change: ChangeUpdate}
}

// policyPacks returns the versions of the packs that took part, by name.
func (r *Run) policyPacks() map[string]string {
	if len(r.Packs) == 0 {
		return nil
	}
	packs := map[string]string{}
	for _, p := range r.Packs {
		packs[p.Name] = p.Version
	}
	return packs
}
