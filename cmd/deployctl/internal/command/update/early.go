package update

import (
	"context"
	"os"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

// earlyBundle is what an update takes along, gathered while its stack is looked up, with which of it the service has.
// It counts only if nothing went wrong, and the command has not changed the stack's configuration since, which may be
// among the files: else all is gathered, and asked, once more.
type earlyBundle struct {
	done   chan struct{}
	cancel context.CancelFunc

	bundle *project.Bundle // nil: it does not count
	config string          // the stack's configuration
	was    fileState
}

// gatherEarly begins to gather the project's files. The caller calls end.
func gatherEarly(ctx context.Context, s *console.Session, name deployments.StackName) *earlyBundle {
	ctx, cancel := context.WithCancel(ctx)
	e := &earlyBundle{done: make(chan struct{}), cancel: cancel}
	packs := flagPaths(s, "policy-pack")
	go func() {
		defer close(e.done)
		_ = panics.Do("gathering the project's files", func() error { return e.gather(ctx, s, name, packs) })
	}()
	return e
}

func (e *earlyBundle) gather(
	ctx context.Context, s *console.Session, name deployments.StackName, packs []string,
) error {
	config, err := s.Project.StackIn(name.Stack, s.ConfigFileText())
	if err != nil {
		return err
	}
	e.config, e.was = config.Path, stateOf(config.Path)
	bundle, err := s.Project.Gather(packs...)
	if err == nil {
		err = bundle.Ask(ctx, s.Service, name)
	}
	if err == nil {
		e.bundle = bundle
	}
	return err
}

// take returns the bundle if it counts; else nil. There may be none.
func (e *earlyBundle) take() *project.Bundle {
	if e == nil {
		return nil
	}
	if <-e.done; e.bundle == nil || stateOf(e.config) != e.was {
		return nil
	}
	return e.bundle
}

// end ends the gathering, if it was begun.
func (e *earlyBundle) end() {
	if e != nil {
		e.cancel()
		<-e.done
	}
}

// fileState tells whether a file has changed; the zero value: there is none.
type fileState struct {
	size    int64
	changed time.Time
}

func stateOf(path string) fileState {
	info, err := os.Stat(path)
	if err != nil {
		return fileState{}
	}
	return fileState{info.Size(), info.ModTime()}
}
