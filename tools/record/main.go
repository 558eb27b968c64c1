// Command record runs an update on an embedded service of its own, kills that service in the middle, and writes what
// two terminals showed meanwhile as an animated SVG. It needs tmux, deployctl and pulumi-language-yaml on PATH;
// `make record` provides the latter two.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	columns = 92
	// each is the pause between two frames, and typing that between two typed characters.
	each   = 200 * time.Millisecond
	typing = 40 * time.Millisecond
	// killAfter is how long the update runs before the service is killed; hold is how long the last frame stays.
	killAfter = 5 * time.Second
	hold      = 4 * time.Second
	patience  = time.Minute
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: record PROJECT FILE.svg")
		os.Exit(2)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	if err := record(ctx, os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(ctx context.Context, project, file string) error {
	home, err := os.MkdirTemp("", "record")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }()
	s := newStage(home)
	if err := s.prepare(ctx, project); err != nil {
		return err
	}
	defer s.close()
	frames, err := s.play(ctx)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(drawing(frames)), 0o644)
}

// frame is what the terminals show from a time on, a line each, with its colours.
type frame struct {
	at    time.Duration
	lines []string
}

func (f frame) shows(text string) bool { return strings.Contains(strings.Join(f.lines, "\n"), text) }

// stage is a home of its own with two terminals in it: one for the update, one for the kill.
type stage struct {
	home, work string
	env        []string
	panes      []pane
	begin      time.Time
}

type pane struct {
	name string
	rows int
}

func newStage(home string) *stage {
	s := &stage{home: home, work: filepath.Join(home, "shop"), panes: []pane{{"update", 16}, {"kill", 3}}}
	done := filepath.Join(home, "done")
	s.env = append(os.Environ(), "HOME="+home, "XDG_STATE_HOME="+home+"/state", "XDG_CONFIG_HOME="+home+"/config",
		"TMUX_TMPDIR="+home, "TERM=xterm-256color", "DONE="+done)
	return s
}

// run runs a command to its end and returns what it printed.
func (s *stage) run(ctx context.Context, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = s.work, s.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out)
	}
	return string(out), nil
}

// prepare copies the project, starts the service and opens the terminals.
func (s *stage) prepare(ctx context.Context, project string) error {
	if err := os.CopyFS(s.work, os.DirFS(project)); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(s.home, "done"), 0o777); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.home, "rc"), []byte("PS1='$ '\n"), 0o600); err != nil {
		return err
	}
	if _, err := s.run(ctx, "deployctl", "stack", "init", "dev"); err != nil {
		return err
	}
	pid, err := s.service(ctx)
	if err != nil {
		return err
	}
	s.env = append(s.env, fmt.Sprintf("SERVICE=%d", pid))
	for _, p := range s.panes {
		_, err := s.run(ctx, "tmux", "-f", "/dev/null", "new-session", "-d", "-s", p.name, "-x", strconv.Itoa(columns),
			"-y", strconv.Itoa(p.rows+1), "bash --noprofile --rcfile "+s.home+"/rc")
		if err != nil {
			return err
		}
	}
	return nil
}

// service returns the process id of the service.
func (s *stage) service(ctx context.Context) (int, error) {
	text, err := s.run(ctx, "deployctl", "dev", "status", "--json")
	if err != nil {
		return 0, err
	}
	var status struct{ PID int }
	err = json.Unmarshal([]byte(text), &status)
	if err == nil && status.PID == 0 {
		err = fmt.Errorf("the service has no process: %s", text)
	}
	return status.PID, err
}

func (s *stage) close() {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for _, end := range [][]string{{"tmux", "kill-server"}, {"deployctl", "dev", "stop"}} {
		if _, err := s.run(ctx, end[0], end[1:]...); err != nil {
			fmt.Fprintln(os.Stderr, "record:", err)
		}
	}
}

// play types the commands and looks at the terminals until the update has ended.
func (s *stage) play(ctx context.Context) ([]frame, error) {
	for ready := 0; ready < len(s.panes); time.Sleep(each) { // the shells' prompts
		f, err := s.look(ctx)
		if err != nil {
			return nil, err
		}
		ready = strings.Count(strings.Join(f.lines, ""), "$")
	}
	var frames []frame
	s.begin = time.Now()
	typed := make(chan error, 1)
	go func() {
		err := s.enter(ctx, "update", "deployctl up --yes --skip-preview")
		time.Sleep(killAfter)
		if err == nil {
			err = s.enter(ctx, "kill", "kill -9 $SERVICE    # Temporal, S3, worker and program: all of it")
		}
		typed <- err
	}()
	for ended := false; !ended; time.Sleep(each) {
		f, err := s.look(ctx)
		if err != nil {
			return nil, err
		}
		if n := len(frames); n == 0 || strings.Join(frames[n-1].lines, "\n") != strings.Join(f.lines, "\n") {
			frames = append(frames, f)
		}
		ended = f.shows("up succeeded") || f.shows("up failed")
		if ctx.Err() != nil || time.Since(s.begin) > patience {
			return nil, fmt.Errorf("the update did not end:\n%s", strings.Join(f.lines, "\n"))
		}
	}
	return frames, <-typed
}

// enter types a line into a terminal, as a person does.
func (s *stage) enter(ctx context.Context, name, line string) error {
	for _, c := range line {
		time.Sleep(typing)
		if _, err := s.run(ctx, "tmux", "send-keys", "-t", name, "-l", string(c)); err != nil {
			return err
		}
	}
	_, err := s.run(ctx, "tmux", "send-keys", "-t", name, "Enter")
	return err
}

// look reads both terminals. The file's reader must not see where it was made.
func (s *stage) look(ctx context.Context) (frame, error) {
	f := frame{at: time.Since(s.begin)}
	for i, p := range s.panes {
		text, err := s.run(ctx, "tmux", "capture-pane", "-p", "-e", "-t", p.name)
		if err != nil {
			return f, err
		}
		if strings.Contains(text, s.home) {
			return f, fmt.Errorf("a terminal shows a path of this machine:\n%s", text)
		}
		lines := append(carry(text), make([]string, p.rows)...)[:p.rows]
		if i > 0 {
			f.lines = append(f.lines, separator)
		}
		f.lines = append(f.lines, lines...)
	}
	return f, nil
}
