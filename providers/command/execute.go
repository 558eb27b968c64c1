package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/deployctl/deployctl/provider"
)

const (
	// grace is how long a command may take to end after it was told to, and how long what it left running may hold its
	// output open.
	grace = 5 * time.Second
	// shownLines is how much of its error output a failed command shows.
	shownLines = 10
)

// unlisted is what the shell is given to run in place of a line that may hold a secret: every user of the machine can
// list the arguments of processes, and only this one their environment. What the line starts does not get the variable.
const (
	unlisted     = "deployctl_line=$" + lineVariable + "; unset " + lineVariable + `; eval "$deployctl_line"`
	lineVariable = "DEPLOYCTL_LINE"
)

// call is one command about to be run.
type call struct {
	line   Line
	in     RunIn
	last   *RunOut
	secret bool
	redact func(string) string
}

// run executes a command that has to succeed.
func (r *Run) run(ctx context.Context, c call) (RunOut, error) {
	out, err := r.execute(ctx, c)
	if err != nil || out.ExitCode == 0 {
		return out, err
	}
	said := lastLines(c.redact(out.Stderr), shownLines)
	if said == "" {
		return out, fmt.Errorf("the command exited with code %d, and said nothing on standard error", out.ExitCode)
	}
	return out, fmt.Errorf("the command exited with code %d:\n%s", out.ExitCode, said)
}

// execute runs a command in a process group of its own, to its end or that of the context, and returns its exit code
// whatever it is. When this process dies before that, however, the group ends too: the command may be run again.
func (r *Run) execute(ctx context.Context, c call) (RunOut, error) {
	argv, env := c.line.argv, r.env(c)
	switch {
	case argv != nil:
	case c.secret && len(c.in.Interpreter) == 0 && runtime.GOOS != "windows":
		argv, env = append(interpreter(nil), unlisted), append(env, lineVariable+"="+c.line.text)
	default:
		argv = append(slices.Clone(interpreter(c.in.Interpreter)), c.line.text)
	}
	path := argv[0]
	if filepath.Base(path) == path {
		var err error
		if path, err = process.Look(nil, env, path); err != nil {
			return RunOut{}, fmt.Errorf("the command could not be run: %w", err)
		}
	}
	cmd := exec.CommandContext(ctx, path, argv[1:]...)
	cmd.Args = argv
	cmd.Dir = provider.ProgramDir(ctx)
	if filepath.IsAbs(c.in.Dir) {
		cmd.Dir = c.in.Dir
	} else if c.in.Dir != "" {
		cmd.Dir = filepath.Join(cmd.Dir, c.in.Dir)
	}
	cmd.Env = env
	cmd.Stdin = strings.NewReader(c.in.Stdin)
	var stdout, stderr output
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.WaitDelay = grace
	group, err := newGroup()
	if err != nil {
		return RunOut{}, fmt.Errorf("the command could not be run: %w", err)
	}
	defer group.release()
	group.take(cmd)

	err = cmd.Run()
	if ctx.Err() != nil {
		group.kill()
		return RunOut{}, fmt.Errorf("the command was stopped: %w", ctx.Err())
	}
	out := RunOut{Stdout: stdout.text(), Stderr: stderr.text()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		out.ExitCode = exit.ExitCode()
	case err != nil && !errors.Is(err, exec.ErrWaitDelay):
		return out, fmt.Errorf("the command could not be run: %w", err)
	}
	return out, nil
}

func interpreter(given []string) []string {
	switch {
	case len(given) > 0:
		return given
	case runtime.GOOS == "windows":
		return []string{"cmd", "/C"}
	}
	return []string{"/bin/sh", "-c"}
}

func (r *Run) env(c call) []string {
	env := os.Environ()
	if c.last != nil {
		env = append(env, "DEPLOYCTL_STDOUT="+passable(c.last.Stdout), "DEPLOYCTL_STDERR="+passable(c.last.Stderr))
	}
	for name, value := range c.in.Environment {
		env = append(env, name+"="+value)
	}
	return env
}

// mostPassed is how much of an output the next command gets, its end: systems take 128 KiB in one variable.
const mostPassed = 64 << 10

func passable(output string) string {
	output = strings.ReplaceAll(output, "\x00", "")
	return output[max(0, len(output)-mostPassed):]
}

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
