package engine

import (
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Kind is what an update does.
type Kind string

// The kinds of updates. Preview is a Goal's DryRun of any of them.
const (
	KindUp      Kind = "up"
	KindRefresh Kind = "refresh"
	KindDestroy Kind = "destroy"
	KindImport  Kind = "import"
)

// known reports that this core knows what an update of the kind does.
func (k Kind) known() bool {
	switch k {
	case KindUp, KindRefresh, KindDestroy, KindImport:
		return true
	default:
		return false
	}
}

// Goal is what an update is to do, fixed when it is accepted. It must be the same whenever a run is resumed or
// replayed: Identity and Generations, or else StackID (or the names of the stack) and Version, enter the seeds.
type Goal struct {
	Kind    Kind `json:"kind"`
	DryRun  bool `json:"dryRun,omitempty"`
	Version int  `json:"version"`

	Organization string `json:"organization"`
	Project      string `json:"project"`
	Stack        string `json:"stack"`
	// StackID tells the stack from others of its name, in other services for example.
	StackID string `json:"stackID,omitempty"`
	// Identity is the key from which seeds are derived; it outlives the stack's state. Without it, which is so in updates
	// that earlier builds have claimed, a seed is of one version of the stack. Generations say which create of a resource
	// is the next one, by Label, where it is not the first, nor the second of a resource that is stored.
	Identity    []byte         `json:"identity,omitempty"`
	Generations map[string]int `json:"generations,omitempty"`
	// Look: what is to be created is looked for first; see found.go. Adopt are URNs, types and patterns of both, of what
	// is taken over if somebody else's is found.
	Look  bool     `json:"look,omitempty"`
	Adopt []string `json:"adopt,omitempty"`

	// Refresh reads every stored resource before anything is decided.
	Refresh bool `json:"refresh,omitempty"`
	// Targets restrict the update to these URNs, or Excludes to all others: only one of the two is set. "*" and "**" are
	// wildcards. With TargetDependents or ExcludeDependents, what depends on them is meant as well.
	Targets           []string `json:"targets,omitempty"`
	TargetDependents  bool     `json:"targetDependents,omitempty"`
	Excludes          []string `json:"excludes,omitempty"`
	ExcludeDependents bool     `json:"excludeDependents,omitempty"`
	// ExcludeProtected excludes every protected resource as well.
	ExcludeProtected bool `json:"excludeProtected,omitempty"`
	// RunProgram runs the program of a refresh or a destroy, too; see run_program.go.
	RunProgram bool `json:"runProgram,omitempty"`
	// ClearPendingCreates forgets creates of earlier updates whose outcome cannot be found out.
	ClearPendingCreates bool `json:"clearPendingCreates,omitempty"`
	// Settle, if not nil, makes a refresh settle what earlier updates left pending, and nothing else.
	Settle *Settling `json:"settle,omitempty"`
	// Plan, if not nil, limits the steps to those of a saved plan.
	Plan *SavedPlan `json:"plan,omitempty"`
	// IgnoreProtect deletes and replaces protected resources like any other.
	IgnoreProtect bool `json:"ignoreProtect,omitempty"`
	// Replace forces these URNs to be replaced.
	Replace         []string `json:"replace,omitempty"`
	ContinueOnError bool     `json:"continueOnError,omitempty"`
	// Parallel bounds the steps that run; at least 1. Ahead is how many more may be issued: they wait where they are
	// carried out, so that none waits for the core.
	Parallel int `json:"parallel"`
	Ahead    int `json:"ahead,omitempty"`
	// ReadAhead is how many refreshes may be issued in addition, so that the driver can gather them into groups.
	ReadAhead int `json:"readAhead,omitempty"`
	// Defaults are the default providers of the packages of which stored resources name no provider, by package.
	Defaults []DefaultProvider `json:"defaults,omitempty"`
	// Policies: policy packs analyse every registration and, at the end, the stack; see policies.go.
	Policies bool `json:"policies,omitempty"`
	// WaitOnUnknown: an undecidable create waits for Resolved; otherwise it is left as a pending operation.
	WaitOnUnknown bool `json:"waitOnUnknown,omitempty"`
}

// Settling is what an update that only settles is told.
type Settling struct {
	// Answers are a person's answers about creates that cannot be settled. Each is given once.
	Answers []Resolved `json:"answers,omitempty"`
}

// Status is how an update ended.
type Status string

// The ends of an update.
const (
	StatusSucceeded Status = "succeeded"
	StatusFailed    Status = "failed"
	StatusCancelled Status = "cancelled"
)

// Result sums an update up. A preview counts the steps that the update would make. Pending operations are counted
// whatever the status is; a preview leaves those of earlier updates.
type Result struct {
	Status Status `json:"status"`
	// Changes counts the steps that took effect by kind: create, update, delete, same, replace, read, refresh, import.
	Changes map[string]int `json:"changes"`
	// Error is the first error in a sentence; empty when Status is succeeded.
	Error string `json:"error,omitempty"`
	// Resource is the one that Error is about; empty if it is about none, or about the stack as a whole.
	Resource urn.URN `json:"resource,omitempty"`
	// Pending counts the operations whose outcome is not known.
	Pending int `json:"pending,omitempty"`
	// IntegrityError is set when the snapshot breaks an invariant and could not be repaired.
	IntegrityError string `json:"integrityError,omitempty"`
	// NamesNothing: the first error is that a URN of the goal's Targets, Excludes or Replace names no resource.
	NamesNothing bool `json:"namesNothing,omitempty"`
	// Policies are the versions of the policy packs that analysed the update, by name.
	Policies map[string]string `json:"policies,omitempty"`
}

// Sentence is Error with the resource that it is about, for readers who see no diagnostics.
func (r Result) Sentence() string {
	u := r.Resource
	if r.Error == "" || !u.IsValid() || u.Type() == rootType || strings.Contains(r.Error, string(u)) {
		return r.Error
	}
	return string(u.Type()) + " " + u.Name() + ": " + r.Error
}
