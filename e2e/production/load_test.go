package production

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
)

const (
	clients = 4
	// delay is how long the clouds take for each call, so that there is always a step under way.
	delay = 400 * time.Millisecond
)

// findable says how creates are found again whose answers were lost. Server has no rule: nobody finds one.
const findable = `{"fake:index:Named": {"read": "property:name"}, "fake:index:Auto": {"read": "property:name"}, ` +
	`"fake:index:Tagged": {"list": "property:settings.mark"}}`

// actor is a team: a client with a token, a stack, and a cloud.
type actor struct {
	*harness.Tool
	stack string
	cloud *fakecloud.Process
	token string // FILE
	round int    // of its program
}

// newActor makes a stack of 15 resources.
func (s *service) newActor(t *testing.T, stack string) *actor {
	t.Helper()
	a := &actor{stack: stack, token: filepath.Join(s.dir, "token-"+stack)}
	s.token(t, a, stack)
	a.cloud, _ = harness.Cloud(t)
	dir := filepath.Join(s.dir, "project-"+stack)
	harness.Must(t, os.Mkdir(dir, 0o700))
	a.Tool = s.client(dir, a.token)
	a.Env = append(a.Env, "DEPLOYCTL_STACK="+stack)
	harness.Must(t, a.write())
	a.Must(t, "stack", "init", stack)
	a.Must(t, "config", "set", "fake:endpoint", a.cloud.URL())
	a.Must(t, "config", "set", "deployctl:settle", findable)
	harness.Must(t, a.cloud.Set(t.Context(), fakecloud.Fault{Name: "slow", Do: fakecloud.Delay,
		DelayMS: int(delay / time.Millisecond)}))
	return a
}

// token makes a token and gives it to the actor.
func (s *service) token(t *testing.T, a *actor, name string) {
	t.Helper()
	text := s.admin.Must(t, "token", "create", name, "--role", "deployer", "--organization", "organization")
	harness.Must(t, os.WriteFile(a.token, []byte(text), 0o600))
}

// write writes the program of the round: seven resources that stay and are updated, and eight of this round alone.
func (a *actor) write() error {
	var text strings.Builder
	fmt.Fprintf(&text, "name: production\nruntime: yaml\nresources:\n")
	declare := func(name, kind, more string) {
		fmt.Fprintf(&text, "  %s:\n    type: fake:index:%s\n    properties: {size: %d%s}\n", name, kind, a.round, more)
	}
	named := func(name, more string) { declare(name, "Named", fmt.Sprintf(", name: %s%s", name, more)) }
	named("net", "")
	const inNet = `, links: ["${net.arn}"]`
	for i := range 2 {
		declare(fmt.Sprintf("auto-%d", i), "Auto", inNet)
		declare(fmt.Sprintf("server-%d", i), "Server", inNet)
		declare(fmt.Sprintf("tagged-%d", i), "Tagged", fmt.Sprintf(", settings: {mark: tagged-%d}", i))
	}
	for i := range 2 {
		of := func(kind string) string { return fmt.Sprintf("%s-%d-of-%d", kind, i, a.round) }
		named(of("named"), inNet)
		declare(of("auto"), "Auto", fmt.Sprintf(`, links: ["${%s.arn}"]`, of("named")))
		declare(of("server"), "Server", inNet)
		declare(of("tagged"), "Tagged", fmt.Sprintf(", settings: {mark: %s}", of("tagged")))
	}
	return os.WriteFile(filepath.Join(a.Dir, "Pulumi.yaml"), []byte(text.String()), 0o600)
}

// ended is a command that has ended.
type ended struct {
	stack      string
	began, end time.Time
	code       int
	said       string
}

// why is the sentence with which a command failed.
func (e ended) why() string {
	lines := strings.Split(strings.TrimSpace(e.said), "\n")
	for _, line := range lines {
		if strings.HasPrefix(line, "error: ") {
			return line
		}
	}
	return lines[len(lines)-1]
}

// load is actors that update their stacks, each one command after another. Safe for concurrent use.
type load struct {
	actors []*actor
	stop   chan struct{}
	all    sync.WaitGroup

	mu      sync.Mutex
	begun   map[string]time.Time // the running commands' begins, by stack
	running map[string]*said
	ended   []ended
	err     error
}

// said is what a running command has said until now. Safe for concurrent use.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write takes what the command says.
func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// begin has the actors begin.
func begin(actors []*actor) *load {
	l := &load{actors: actors, stop: make(chan struct{}), begun: map[string]time.Time{}, running: map[string]*said{}}
	for _, a := range actors {
		l.all.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				if err := l.update(a); err != nil {
					l.mu.Lock()
					l.err = errors.Join(l.err, err)
					l.mu.Unlock()
					return
				}
			}
		})
	}
	return l
}

// update runs an update with the next round of the program.
func (l *load) update(a *actor) error {
	a.round++
	if err := a.write(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), harness.Patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, a.Path, "up", "--yes", "--skip-preview")
	output := &said{}
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = a.Dir, a.Env, output, output
	began := time.Now()
	l.mu.Lock()
	l.begun[a.stack], l.running[a.stack] = began, output
	l.mu.Unlock()
	err := cmd.Run()
	if ctx.Err() != nil {
		return fmt.Errorf("the update of %s is stuck; it says\n%s", a.stack, output)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.begun, a.stack)
	delete(l.running, a.stack)
	l.ended = append(l.ended, ended{a.stack, began, time.Now(), cmd.ProcessState.ExitCode(), output.String()})
	return nil
}

// broken reports whether a client cannot go on, or an update has failed. The caller holds the lock.
func (l *load) broken() bool {
	return l.err != nil || slices.ContainsFunc(l.ended, func(e ended) bool { return e.code != 0 && e.code != unreachable })
}

// finish has the actors end after their commands, and gives all that ended.
func (l *load) finish(t *testing.T) []ended {
	t.Helper()
	close(l.stop)
	l.all.Wait()
	harness.Must(t, l.err)
	return l.ended
}

// applied tells whether the last command of an actor has said that it succeeded.
func (l *load) applied(a *actor) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range slices.Backward(l.ended) {
		if e.stack == a.stack {
			return e.code == 0
		}
	}
	return false
}

// flows waits until each actor has begun a command after now and ended it successfully. It gives the time at which the
// last of them had.
func (l *load) flows(t *testing.T) (last time.Time) {
	t.Helper()
	since := time.Now()
	harness.Eventually(t, "every client ends a command that it begins now", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		first := map[string]time.Time{}
		for _, e := range l.ended {
			if _, ok := first[e.stack]; !ok && e.began.After(since) && e.code == 0 {
				first[e.stack] = e.end
			}
		}
		for _, end := range first {
			if end.After(last) {
				last = end
			}
		}
		return len(first) == len(l.actors) || l.broken()
	})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.broken() {
		t.FailNow() // finish says why
	}
	return last
}

// told waits until a command has said one of the texts that runs now or has begun since a time.
func (l *load) told(t *testing.T, since time.Time, texts ...string) {
	t.Helper()
	harness.Eventually(t, fmt.Sprintf("a command says one of %q", texts), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		var all strings.Builder
		for _, running := range l.running {
			all.WriteString(running.String())
		}
		for _, e := range l.ended {
			if e.end.After(since) {
				all.WriteString(e.said)
			}
		}
		for _, text := range texts {
			if strings.Contains(all.String(), text) {
				return true
			}
		}
		return l.broken()
	})
}
