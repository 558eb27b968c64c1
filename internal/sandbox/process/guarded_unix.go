//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/deployctl/deployctl/internal/sandbox/process/guard"
)

// tellTime bounds how long a message to a guard may take. A guard that does not read takes messages until its pipe is
// full, some thousands; then it is replaced.
const tellTime = time.Second

// replacePause is how long after its end a guard is replaced, if there is nothing to tell it before: guards that always
// end at once cost little.
const replacePause = time.Second

// guarded are the groups of this process, which its guard kills if this process is killed.
var guarded groups

// Guard starts the guard of this process, before there is a process that could get in its way. Without it the guard is
// started with the first group. An error says that only the children of this process will end with it, and not what
// they have started.
func Guard() error { return guarded.keep() }

// groups are the ids of process groups and their guard. The zero value has neither.
type groups struct {
	mu     sync.Mutex
	ids    map[int]int   // how often each was added: an id may be given again before it is removed
	guard  *guardProcess // nil: none runs
	always bool          // it has a guard also when there are no groups
}

type guardProcess struct {
	*exec.Cmd
	reads *os.File // our end of its standard input
}

// keep starts a guard, and from then on there is always one.
func (g *groups) keep() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.always = true
	if g.guard != nil {
		return nil
	}
	return g.start()
}

// add puts a group under guard.
func (g *groups) add(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids == nil {
		g.ids = map[int]int{}
	}
	g.ids[id]++
	g.tell(guard.Added, id)
}

// remove takes a group that was killed from the guard: another one may get its id.
func (g *groups) remove(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ids[id] > 1 {
		g.ids[id]--
	} else {
		delete(g.ids, id)
	}
	g.tell(guard.Removed, id)
}

// tell tells the guard about a group. If there is no guard, or it does not listen, a new one learns all groups. Where
// none can be started, only the children die with this process, as far as the system can arrange that.
func (g *groups) tell(what rune, id int) {
	if g.guard != nil {
		if g.guard.tell(what, id) == nil {
			return
		}
		g.guard.end()
		g.guard = nil
	}
	if len(g.ids) > 0 {
		_ = g.start()
	}
}

// start starts a guard that knows all groups. Once it is in use, another one follows it.
func (g *groups) start() error {
	next, err := startGuard()
	if err != nil {
		return err
	}
	for id, times := range g.ids {
		for range times {
			if err := next.tell(guard.Added, id); err != nil {
				next.end()
				go func() { _ = next.Wait() }() // it was killed
				return err
			}
		}
	}
	g.guard = next
	go func() {
		_ = next.Wait() // however it ends
		for {
			time.Sleep(replacePause)
			if g.replaced(next) {
				return
			}
		}
	}()
	return nil
}

// replaced replaces a guard that has ended, however it ended, and reports that there is another one or that none is
// needed.
func (g *groups) replaced(old *guardProcess) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = old.reads.Close()
	if g.guard == old {
		g.guard = nil
	}
	needed := g.always || len(g.ids) > 0
	return g.guard != nil || !needed || g.start() == nil
}

func (p *guardProcess) tell(what rune, id int) error {
	if err := p.reads.SetWriteDeadline(time.Now().Add(tellTime)); err != nil {
		return err
	}
	_, err := fmt.Fprintf(p.reads, "%c%d\n", what, id)
	return err
}

// end ends a guard that another one replaces. It is killed first: at the end of what it reads it would kill the groups.
func (p *guardProcess) end() {
	_ = p.Process.Kill() // it may have ended
	_ = p.reads.Close()
}

// startGuard starts a guard, for whose end the caller must wait. It leads a session of its own, so that what ends the
// group of this process does not end its guard.
func startGuard() (started *guardProcess, err error) {
	self, err := Self()
	if err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	cmd := &exec.Cmd{
		Path: self, Args: []string{guard.Name}, Env: []string{"GOMAXPROCS=1"}, Dir: "/", Stdin: theirs,
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if err := cmd.Start(); err != nil {
		_ = ours.Close()
		return nil, err
	}
	return &guardProcess{cmd, ours}, nil
}
