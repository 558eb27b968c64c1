package update

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/urfave/cli/v2"
)

// WatchCommand returns deployctl watch.
func WatchCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "watch", Usage: "update the stack now, and whenever a file of the program changes",
		Description: "It confirms once, and then updates without a preview. Changes that come together make one " +
			"update, and so do all that come while one runs. After an update that failed, it goes on with the next " +
			"change.\n" +
			"What an update takes along is watched, with the stack's configuration; only content counts. Ctrl-C " +
			"ends the command: the stack stays as it is, and an update that runs continues (deployctl attach).",
		Flags: updateFlags(refreshFlag, previewOnlyFlag, adoptFlag, ignoreProtectFlag, policyPackFlag, policyPackConfigFlag,
			console.ContinueOnErrorFlag, console.YesFlag),
		Action: console.Action(s, runWatch),
	}
}

// watcher updates a stack when files change.
type watcher struct {
	*console.Session
	stack       deployments.StackName
	files       *project.Watcher
	bundle      *project.Bundle // what look has gathered
	content     project.Content // of the last update; nil before the first one
	previewOnly bool
}

func runWatch(ctx context.Context, s *console.Session) error {
	w := &watcher{Session: s}
	var err error
	if err = s.NeedProject(); err != nil {
		return err
	}
	if w.previewOnly, err = onlyPreviews(s); err != nil {
		return err
	}
	stack, err := existingStack(ctx, s)
	if err != nil {
		return err
	}
	w.stack = stack.Stack
	if !w.previewOnly && !s.Flags.Bool("yes") {
		if err := s.MustAsk(); err != nil {
			return err
		}
		question := fmt.Sprintf("Update %s now, and after every change of its program, without a preview?", w.stack)
		if err := s.Confirm(ctx, question, nil); err != nil {
			return err
		}
	}
	if w.files, err = project.NewWatcher(); err != nil {
		return err
	}
	defer w.files.Close()
	for {
		if err := w.round(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			s.Note(fmt.Sprintf("No longer watching; %s stays as it is.", w.stack))
			return nil
		case <-w.files.Changes():
		}
	}
}

// round updates the stack if the content of files has changed. It returns an error only if there can be no other round.
func (w *watcher) round(ctx context.Context) error {
	changed, err := w.look()
	if err == nil && len(changed) == 0 {
		return nil
	}
	if err == nil {
		err = w.update(ctx)
	}
	if ctx.Err() != nil && err != nil {
		return err
	}
	if err != nil {
		w.Report(err)
	}
	if code := deployments.CodeOf(err); code == deployments.CodeUnauthorized || code == deployments.CodeForbidden {
		return console.Reported(console.ExitCode(err))
	}
	w.Note("Watching for changes; Ctrl-C ends it.")
	return nil
}

// look gathers the project's files, and returns the names of those that have changed since it last did.
func (w *watcher) look() ([]string, error) {
	for again := true; again; {
		w.Project = nil
		err := w.NeedProject()
		if err == nil {
			w.bundle, err = w.Project.Gather(flagPaths(w.Session, "policy-pack")...)
		}
		if err != nil {
			return nil, err
		}
		// What has changed in a directory before it was watched is seen by gathering again.
		if again, err = w.files.Follow(append(w.bundle.Directories(), w.configDir())); err != nil {
			return nil, err
		}
	}
	stack, err := w.Project.StackIn(w.stack.Stack, w.ConfigFileText())
	if err != nil {
		return nil, err
	}
	content, err := w.Project.Content(w.bundle, stack)
	if err != nil {
		return nil, err
	}
	changed := content.Changed(w.content)
	if w.content != nil && len(changed) > 0 {
		w.Note(fmt.Sprintf("\n%s changed: %s", time.Now().Format(time.TimeOnly), firstOf(changed)))
	}
	w.content = content
	return changed, nil
}

// configDir is the directory of the stack's configuration.
func (w *watcher) configDir() string {
	if file := w.ConfigFileText(); file != "" {
		return filepath.Dir(file)
	}
	return w.Project.Dir
}

// firstOf lists a few names, and says how many more there are.
func firstOf(names []string) string {
	const most = 5
	if more := len(names) - most; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), more)
	}
	return strings.Join(names, ", ")
}

// update makes an update, or a preview, of the files that were gathered, and follows it to its end. If files change
// while it waits for its turn, it is cancelled: another one takes its place.
func (w *watcher) update(ctx context.Context) error {
	info, err := w.Service.Stack(ctx, w.stack)
	if err != nil {
		return err
	}
	request, err := newRequest(ctx, w.Session, engine.KindUp, info, w.bundle)
	if err != nil {
		return err
	}
	if w.previewOnly {
		_, err := showPreview(ctx, w.Session, request, "")
		return err
	}
	request.RequestID = newRequestID()
	accepted, err := submit(ctx, w.Session, request)
	if err != nil {
		return err
	}
	ended, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		w.replaceWaiting(ctx, accepted.Update, ended)
	}()
	err = follow(ctx, w.Session, accepted, engine.KindUp, nil)
	close(ended)
	<-watched
	return err
}

// replaceWaiting cancels an update when files change while it waits for its turn. What runs is left alone.
func (w *watcher) replaceWaiting(ctx context.Context, u deployments.UpdateName, ended <-chan struct{}) {
	changed := false
	defer func() {
		if changed {
			w.files.Again()
		}
	}()
	for {
		select {
		case <-ended:
			return
		case <-w.files.Changes():
			changed = true
			if w.Waiting() {
				_ = w.Service.Cancel(ctx, u, false) // if it cannot be cancelled, the change is for the next one
			}
		}
	}
}
