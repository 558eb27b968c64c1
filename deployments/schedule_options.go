package deployments

import "github.com/deployctl/deployctl/engine"

// ScheduleOptions are the options of the updates of a schedule; see UpdateRequest.
type ScheduleOptions struct {
	Targets           []string `json:"targets,omitempty"`
	TargetDependents  bool     `json:"targetDependents,omitempty"`
	Excludes          []string `json:"excludes,omitempty"` // not together with Targets
	ExcludeDependents bool     `json:"excludeDependents,omitempty"`
	ExcludeProtected  bool     `json:"excludeProtected,omitempty"` // of destroys
	RunProgram        bool     `json:"runProgram,omitempty"`       // of drift checks, refreshes and destroys
	ContinueOnError   bool     `json:"continueOnError,omitempty"`
}

// Apply sets the options of an update whose kind is set. A remediation is an up, which runs the program anyway.
func (o ScheduleOptions) Apply(r *UpdateRequest) {
	r.Targets, r.TargetDependents = o.Targets, o.TargetDependents
	r.Excludes, r.ExcludeDependents, r.ExcludeProtected = o.Excludes, o.ExcludeDependents, o.ExcludeProtected
	r.RunProgram, r.ContinueOnError = o.RunProgram && r.Kind != engine.KindUp, o.ContinueOnError
}

// validate reports, as CodeInvalid, why a schedule of a kind cannot have the options.
func (o ScheduleOptions) validate(kind ScheduleKind) error {
	if o.RunProgram && kind.Operation() == engine.KindUp {
		return Errorf(CodeInvalid, "a scheduled %s runs the program anyway: leave out --run-program", kind)
	}
	r := UpdateRequest{Kind: kind.Operation()}
	o.Apply(&r)
	return r.validateSelection()
}
