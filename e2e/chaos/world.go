package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// patience ends a seed that hangs; none is expected to take nearly as long.
const patience = 20 * time.Minute

// binary is what is tried.
var binary, _ = filepath.Abs("bin/deployctl")

// world is a service in parts with two workers. Seeds are played in it one after another.
type world struct {
	*cluster.Cluster
	dir      string
	env      []string // of everybody
	clients  []string // the environment of those who use the service
	tool     string   // what they use it with
	temporal client.Client

	ports io.Closer // of an embedded service; nil: it is a cluster

	mu      sync.Mutex
	running []*command // of stages, those that have ended at times, too
}

func newWorld(ctx context.Context, env ...string) (w *world, err error) {
	dir, err := os.MkdirTemp("", "deployctl-chaos-")
	if err != nil {
		return nil, err
	}
	w = &world{dir: dir, env: env, tool: binary}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	w.env = append(w.env, environment(dir)...)
	home, err := cluster.Prepare(ctx, binary, dir, w.env)
	if err != nil {
		return nil, err
	}
	if w.Cluster, err = cluster.Start(ctx, binary, dir, w.env, home, home.S3Endpoint, 2); err != nil {
		return nil, err
	}
	w.clients = w.Env
	w.temporal, err = home.Temporal().LazyDial()
	return w, err
}

// abandon ends the world's processes and leaves its files to whoever wants to know why.
func (w *world) abandon() {
	if w == nil {
		return
	}
	for _, c := range w.running {
		if !c.over() {
			_ = c.cmd.Process.Kill()
			<-c.ended
		}
	}
	if w.temporal != nil {
		w.temporal.Close()
	}
	if w.Cluster != nil {
		w.Stop()
	}
}

func (w *world) close() {
	if w != nil {
		w.abandon()
		_ = os.RemoveAll(w.dir)
	}
}

// stage is a program, a stack and a cloud of a seed's own.
type stage struct {
	*world
	dir, stack string
	cloud      *fakecloud.Process
	pendings   []chan error  // see later
	asleep     *cluster.Part // a worker that is, or was, stopped
}

const project = "chaos"

// newStage writes a program in a language, for a new stack on a new cloud.
func (w *world) newStage(ctx context.Context, stack, language string, nodes []node) (*stage, error) {
	path, err := exec.LookPath("fakecloud")
	if err != nil {
		return nil, err
	}
	s := &stage{world: w, dir: filepath.Join(w.dir, stack), stack: stack}
	if err := write(s.dir, project, language, nodes); err != nil {
		return nil, err
	}
	if s.cloud, err = fakecloud.Launch(path, "-journal", filepath.Join(w.dir, stack+".cloud")); err != nil {
		return nil, err
	}
	if err := s.init(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// init makes the stage's stack, for its cloud.
func (s *stage) init(ctx context.Context) error {
	for _, args := range [][]string{
		{"stack", "init", s.stack}, {"config", "set", "fake:endpoint", s.cloud.URL()},
		{"config", "set", "deployctl:settle", findable},
	} {
		if _, err := s.deployctl(ctx, args...); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) close() { _ = s.cloud.Stop() }

// command is a deployctl that runs.
type command struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // once ended

	mu   sync.Mutex
	said bytes.Buffer
}

// Write takes what the command says.
func (c *command) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.Write(p)
}

// start starts deployctl in the stage's directory.
func (s *stage) start(args ...string) (*command, error) {
	c, err := launch(s.dir, append(slices.Clip(s.clients), "DEPLOYCTL_STACK="+s.stack), s.tool, args...)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.running = append(slices.DeleteFunc(s.running, (*command).over), c)
	return c, nil
}

// launch starts a command.
func launch(dir string, env []string, name string, args ...string) (*command, error) {
	c := &command{cmd: exec.Command(name, args...), ended: make(chan struct{})}
	c.cmd.Dir, c.cmd.Env, c.cmd.Stdout, c.cmd.Stderr = dir, env, c, c
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		c.err = c.cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

// over tells whether the command has ended.
func (c *command) over() bool {
	select {
	case <-c.ended:
		return true
	default:
		return false
	}
}

// wait waits for the command's success.
func (c *command) wait(ctx context.Context) error {
	if err := c.ends(ctx); err != nil {
		return err
	}
	if c.err != nil {
		_ = os.WriteFile(filepath.Join(c.cmd.Dir, "said"), []byte(c.text()), 0o600) // the whole, for whoever looks
		return fmt.Errorf("%s: %w; it says\n%s", c, c.err, c.end())
	}
	return nil
}

// during does something that is interrupted when the command ends first, which is an error.
func (c *command) during(ctx context.Context, do func(context.Context) error) error {
	doing, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		select {
		case <-c.ended:
			cancel()
		case <-doing.Done():
		}
	}()
	err := do(doing)
	if err == nil || ctx.Err() != nil || !c.over() {
		return err
	}
	if err := c.wait(ctx); err != nil {
		return err
	}
	return fmt.Errorf("%s %w: %w", c, errOver, err)
}

// errOver is the error of waiting for something during a command that has succeeded meanwhile.
var errOver = errors.New("has ended")

// ends waits for the command's end, however it ends.
func (c *command) ends(ctx context.Context) error {
	select {
	case <-ctx.Done():
		_ = c.cmd.Process.Kill()
		<-c.ended
		return fmt.Errorf("%s does not end; it says\n%s", c, c.end())
	case <-c.ended:
		return nil
	}
}

func (c *command) String() string {
	return strings.Join(append([]string{filepath.Base(c.cmd.Path)}, c.cmd.Args[1:]...), " ")
}

// end is the end of what the command said, after the lines before it that tell of errors.
func (c *command) end() string {
	text := c.text()
	split := max(0, len(text)-3000)
	var errs []string
	for line := range strings.Lines(text[:split]) {
		if len(errs) < 40 && (strings.Contains(line, "error") || strings.Contains(line, "failed")) {
			errs = append(errs, line)
		}
	}
	return strings.Join(errs, "") + text[split:]
}

// text is what the command said until now.
func (c *command) text() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.said.String()
}

// deployctl runs a command to its end.
func (s *stage) deployctl(ctx context.Context, args ...string) (string, error) {
	c, err := s.start(args...)
	if err != nil {
		return "", err
	}
	err = c.wait(ctx)
	return c.text(), err
}

// eventually polls, less and less often, for what cannot be waited for.
func eventually(ctx context.Context, what string, done func() (bool, error)) error {
	for pause := 5 * time.Millisecond; ; pause = min(pause*5/4, 200*time.Millisecond) {
		ok, err := done()
		if err != nil || ok {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("never: %s", what), ctx.Err())
		case <-time.After(pause):
		}
	}
}

// environment is that of the processes of a world: what the caller has set for the tools does not reach them.
func environment(dir string) (env []string) {
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "DEPLOYCTL") && !strings.HasPrefix(variable, "PULUMI_") &&
			!strings.HasPrefix(variable, "AWS_") {
			env = append(env, variable)
		}
	}
	return append(env, "NO_COLOR=1", "PULUMI_HOME="+filepath.Join(dir, "pulumi"), "TMPDIR="+dir,
		"XDG_STATE_HOME="+filepath.Join(dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(dir, "config"))
}
