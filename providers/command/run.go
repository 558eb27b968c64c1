package command

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/deployctl/deployctl/provider"
)

// Run is deployctl:command:Run. It does not converge: nobody can know what a command does when it runs again. A lost
// outcome is therefore settled by the read command, and by a person where there is none.
type Run struct{}

// RunIn declares what is run when.
type RunIn struct {
	Create      Line              `pulumi:"create" doc:"The command that creates the resource: a text for the interpreter, or a list of a program and its arguments."`
	Update      Line              `pulumi:"update,optional" doc:"The command that updates it; without it, create is run again."`
	Delete      Line              `pulumi:"delete,optional" doc:"The command that deletes it; without it, nothing is run."`
	Read        Line              `pulumi:"read,optional" doc:"The command that finds out whether it exists: exit code 0 means yes, 1 to 125 no, 126 and above unknown. Its output replaces that of a create whose own output was lost."`
	Dir         string            `pulumi:"dir,optional" doc:"The directory in which commands run, relative to the program's."`
	Environment map[string]string `pulumi:"environment,optional" doc:"Environment variables, in addition to those that programs get."`
	Stdin       string            `pulumi:"stdin,optional" doc:"The standard input of commands."`
	Triggers    []any             `pulumi:"triggers,optional,replace" doc:"Values of any kind; a change of one replaces the resource."`
	Interpreter []string          `pulumi:"interpreter,optional" doc:"The program and arguments to which a command that is a text is appended; without it /bin/sh -c, on Windows cmd /C."`
}

// RunOut is what the last command said.
type RunOut struct {
	Stdout   string `pulumi:"stdout,inherit" doc:"The standard output of the last command, without the newline at its end; of more than 1 MiB, its beginning and its end."`
	Stderr   string `pulumi:"stderr,inherit" doc:"The standard error of the last command, likewise."`
	ExitCode int    `pulumi:"exitCode" doc:"The exit code of the last command: 0, because others fail."`
}

// Describe is the type's text in the schema.
func (r *Run) Describe() string {
	return "Commands that are run when the resource is created, updated or deleted. A command that exits with " +
		"another code than 0 fails " +
		"its step. Update and delete commands get the output of the last command in DEPLOYCTL_STDOUT and " +
		"DEPLOYCTL_STDERR."
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
	return known && was.Create.equal(is.Create) && was.Update.equal(is.Update) && was.Dir == is.Dir &&
		was.Stdin == is.Stdin &&
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
	out, err := r.run(ctx, call{line: line, in: req.News, last: req.Output, secret: req.Secret, redact: req.Redact})
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
	_, err := r.run(ctx, call{line: e.Inputs.Delete, in: e.Inputs, last: &e.Output, secret: e.Secret, redact: e.Redact})
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return nil
}
