package workflows

import (
	"strconv"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// began returns the revision of the build that has completed the workflow's first task, or is about to; false if the
// build has none, as in tests. It is good in the first task only: later, the SDK may return the build of the task
// before.
func began(ctx workflow.Context) (revision int, ok bool) {
	revision, err := strconv.Atoi(workflow.GetInfo(ctx).GetCurrentBuildID())
	return revision, err == nil
}

// formerNames is the key of contexts in which activities and signals have their former names.
type formerNames struct{}

// withNames returns a context in which activities and signals have the names of the revision that has begun the
// workflow. It is called in the first task.
func withNames(ctx workflow.Context) workflow.Context {
	revision, ok := began(ctx)
	return namesOf(ctx, ok && revision < deployments.NamesSince)
}

// withNamesOf returns the context of a Run: the host of its update may know only the names with which the Update has
// begun, on an earlier build.
func withNamesOf(ctx workflow.Context, in deployments.RunInput) workflow.Context {
	revision, ok := began(ctx)
	return namesOf(ctx, ok && min(revision, in.Names) < deployments.NamesSince)
}

// namesSince returns the revision whose names a context has, for the Run of an update; 0 stands for those before.
func namesSince(ctx workflow.Context) int {
	if hasFormerNames(ctx) {
		return 0
	}
	return deployments.NamesSince
}

// namesOf returns a context in which activities and signals have their former names, or their present ones.
func namesOf(ctx workflow.Context, former bool) workflow.Context {
	return workflow.WithValue(ctx, formerNames{}, former)
}

// hasFormerNames reports whether activities and signals have their former names in a context.
func hasFormerNames(ctx workflow.Context) bool {
	former, _ := ctx.Value(formerNames{}).(bool)
	return former
}

// nameIn returns the name of an activity or a signal in a context.
func nameIn(ctx workflow.Context, name string) string {
	if hasFormerNames(ctx) {
		return deployments.FormerName(name)
	}
	return name
}

// execute schedules an activity by its name in the context.
func execute(ctx workflow.Context, name string, args ...any) workflow.Future {
	return workflow.ExecuteActivity(ctx, nameIn(ctx, name), args...)
}

// signals are the channels of a signal: those who send it may know it by its former name.
type signals []workflow.ReceiveChannel

func signalsOf(ctx workflow.Context, name string) signals {
	all := signals{workflow.GetSignalChannel(ctx, name)}
	if former := deployments.FormerName(name); former != name {
		all = append(all, workflow.GetSignalChannel(ctx, former))
	}
	return all
}

// waiting returns how many signals have come and were not taken.
func (s signals) waiting() (n int) {
	for _, c := range s {
		n += c.Len()
	}
	return n
}

// take reads the next signal; false if none has come.
func (s signals) take(v any) bool {
	for _, c := range s {
		if c.ReceiveAsync(v) {
			return true
		}
	}
	return false
}

// onSignal calls f with every signal of a name, as they come.
func onSignal[T any](ctx workflow.Context, name string, f func(workflow.Context, T)) {
	for _, c := range signalsOf(ctx, name) {
		workflow.Go(ctx, func(ctx workflow.Context) {
			for {
				var v T
				c.Receive(ctx, &v)
				f(ctx, v)
			}
		})
	}
}
