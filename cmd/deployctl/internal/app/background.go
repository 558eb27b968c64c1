package app

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

// background is a child process that outlives this one.
type background struct {
	log  string // path of its output
	from int64  // where its output begins in the log
	done chan struct{}
	err  error // how it ended, once done is closed
}

// startBackground starts deployctl-embedded as the embedded service of a home, with the settings of this process, in
// its own session, so that it receives no signals of a terminal.
func startBackground(home string, s settings.Settings) (*background, error) {
	program, err := embeddedProgram()
	if err != nil {
		return nil, err
	}
	environ, err := s.Inherit(os.Environ())
	if err != nil {
		return nil, err
	}
	logs := filepath.Join(home, "logs")
	if err := os.MkdirAll(logs, 0o700); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "cannot create the embedded service's home: %w", err)
	}
	path := filepath.Join(logs, "dev.log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }() // the child has its own file descriptor
	info, err := log.Stat()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(program, "dev", "--home", home)
	cmd.Env = append(environ, settings.Metrics.Variable()+"="+s.Get(settings.Metrics)) // it may be set by a flag
	cmd.Stdout, cmd.Stderr, cmd.Dir, cmd.SysProcAttr = log, log, home, detached()
	if err := cmd.Start(); err != nil {
		return nil, deployments.Errorf(deployments.CodeUnavailable, "cannot start the embedded service: %w", err)
	}
	b := &background{log: path, from: info.Size(), done: make(chan struct{})}
	go func() {
		defer close(b.done)
		b.err = cmd.Wait() // the log has the reason
	}()
	return b, nil
}

// ended reports whether the process has ended or never started.
func (b *background) ended() bool {
	if b == nil {
		return true
	}
	select {
	case <-b.done:
		return true
	default:
		return false
	}
}

// failure returns an error with the error message that the process has printed.
func (b *background) failure() error {
	said := ""
	if file, err := os.Open(b.log); err == nil {
		defer func() { _ = file.Close() }()
		if _, err := file.Seek(b.from, io.SeekStart); err == nil {
			text, readErr := io.ReadAll(io.LimitReader(file, 64<<10))
			if readErr == nil {
				said = strings.TrimSpace(string(text))
			}
		}
	}
	if i := strings.LastIndex(said, "error: "); i >= 0 {
		said = said[i+len("error: "):]
	}
	said, _, _ = strings.Cut(said, "\n")
	return deployments.Errorf(deployments.CodeUnavailable, "the embedded service did not start: %w (see %s)",
		errors.New(said), b.log)
}
