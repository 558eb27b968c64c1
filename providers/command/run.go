package command

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/provider"
)

// Run is deployctl:command:Run. It does not converge: nobody can know what a command does when it runs again. A lost outcome is
// therefore settled by the read command, and by a person where there is none.
type Run struct {
	environment []string
	box         *sandbox.Box
}

// RunIn declares what is run when.
type RunIn struct {
	Create      Line              `pulumi:"create" doc:"Run when the resource is created; text for the interpreter, or a list of a program and its arguments."`
	Update      Line              `pulumi:"update,optional" doc:"Run when it changes; by default create is run again."`
	Delete      Line              `pulumi:"delete,optional" doc:"Run when it is deleted; by default nothing is."`
	Read        Line              `pulumi:"read,optional" doc:"Run to find out whether it exists: exit code 0 says yes, 126 and above that this cannot be told, any other no. What it prints stands for the output of a create whose own was lost."`
	Dir         string            `pulumi:"dir,optional" doc:"The directory to run in, relative to the program's."`
	Environment map[string]string `pulumi:"environment,optional" doc:"Variables added to the environment."`
	Stdin       string            `pulumi:"stdin,optional" doc:"Given to the command as standard input."`
	Triggers    []any             `pulumi:"triggers,optional,replace" doc:"Values whose change replaces the resource."`
	Interpreter []string          `pulumi:"interpreter,optional" doc:"A program and arguments that a command as text is appended to; by default /bin/sh -c."`
}

// RunOut is what the last command said.
type RunOut struct {
	Stdout   string `pulumi:"stdout,inherit" doc:"The standard output of the last command, without the newline at its end. Of more than 1 MiB, its beginning and its end."`
	Stderr   string `pulumi:"stderr,inherit" doc:"Its standard error, likewise."`
	ExitCode int    `pulumi:"exitCode" doc:"Its exit code."`
}

// Describe is the type's text in the schema.
func (r *Run) Describe() string {
	return "A command that is run when the resource is created, updated or deleted. A command that exits with another code than 0 fails. " +
		"Update and delete commands find what the last one said in DEPLOYCTL_STDOUT and DEPLOYCTL_STDERR."
}

// Settling says that running it again is no way to find out.
func (r *Run) Settling() provider.Settle { return provider.SettleByRead }

// Preview knows what stays when nothing will be run.
func (r *Run) Preview(_ context.Context, req provider.Request[RunIn, RunOut]) (RunOut, error) {
	if runsNothing(req) {
		return *req.Output, nil
	}
	return RunOut{}, nil
}

// runsNothing says whether the update only changes what will be run later.
func runsNothing(req provider.Request[RunIn, RunOut]) bool {
	if req.ID == "" || req.Olds == nil || req.Output == nil {
		return false
	}
	known := req.Known("create", "update", "dir", "environment", "stdin", "interpreter")
	was, is := *req.Olds, req.News
	return known && was.Create.equal(is.Create) && was.Update.equal(is.Update) && was.Dir == is.Dir && was.Stdin == is.Stdin &&
		maps.Equal(was.Environment, is.Environment) && slices.Equal(was.Interpreter, is.Interpreter)
}

// Reconcile runs the create or the update command.
func (r *Run) Reconcile(ctx context.Context, req provider.Request[RunIn, RunOut]) (string, RunOut, error) {
	if runsNothing(req) {
		return req.ID, *req.Output, nil
	}
	line, id := req.News.Create, req.ID
	if id != "" && !req.News.Update.empty() {
		line = req.News.Update
	}
	if id == "" {
		id = newID()
	}
	out, err := r.run(ctx, call{line: line, in: req.News, last: req.Output, secret: req.Secret})
	if err != nil {
		return "", RunOut{}, err
	}
	return id, out, nil
}

func newID() string {
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	return "run-" + hex.EncodeToString(random)
}

// notRun is the lowest exit code by which a shell says that a command could not be run, or was killed.
const notRun = 126

// Read asks the read command.
func (r *Run) Read(ctx context.Context, l provider.Lookup[RunIn, RunOut]) (provider.Found[RunIn, RunOut], error) {
	if l.Inputs == nil || l.Inputs.Read.empty() {
		return provider.Found[RunIn, RunOut]{Ownership: provider.Undecidable}, nil
	}
	f := provider.Found[RunIn, RunOut]{Ownership: provider.Owned, ID: l.ID, Inputs: *l.Inputs}
	if f.ID == "" {
		f.ID = newID()
	}
	out, err := r.execute(ctx, call{line: l.Inputs.Read, in: *l.Inputs, last: l.Output})
	switch {
	case out.ExitCode < 0 || out.ExitCode >= notRun:
		f.Ownership = provider.Undecidable
	case out.ExitCode != 0:
		f.Ownership = provider.Absent
	}
	if f.Output = out; l.Output != nil {
		f.Output = *l.Output
	}
	return f, err
}

// Delete runs the delete command. It may be run again after its outcome was lost.
func (r *Run) Delete(ctx context.Context, e provider.Existing[RunIn, RunOut]) error {
	if e.Inputs.Delete.empty() {
		return nil
	}
	_, err := r.run(ctx, call{line: e.Inputs.Delete, in: e.Inputs, last: &e.Output, secret: e.Secret})
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}
