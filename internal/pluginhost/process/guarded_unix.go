//go:build unix

package process

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/deployctl/deployctl/internal/pluginhost/process/guard"
)

// tellTime bounds how long a guard may take to listen. One that takes longer is replaced.
const tellTime = time.Second

// guarded are the groups of this process, which its guard kills if this process is killed.
var guarded = groups{ids: map[int]bool{}}

type groups struct {
	mu    sync.Mutex
	ids   map[int]bool
	guard *guardProcess // nil: none has started
}

type guardProcess struct {
	*os.Process
	reads *os.File // our end of its standard input
}

// add puts a group under guard.
func (g *groups) add(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.ids[id] = true
	g.tell(guard.Added, id)
}

// remove takes a group that was killed from the guard: another one may get its id.
func (g *groups) remove(id int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.ids, id)
	g.tell(guard.Removed, id)
}

// tell tells the guard about a group. If there is no guard, or it has ended, a new one learns all groups. Where none
// can be started, only the children die with this process, as far as the system can arrange that.
func (g *groups) tell(what rune, id int) {
	if g.guard != nil {
		if g.guard.tell(what, id) == nil {
			return
		}
		g.guard.end()
		g.guard = nil
	}
	if len(g.ids) == 0 {
		return
	}
	next, err := startGuard()
	if err != nil {
		return
	}
	for id := range g.ids {
		if next.tell(guard.Added, id) != nil {
			next.end()
			return
		}
	}
	g.guard = next
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
	_ = p.Kill() // it may have ended
	_ = p.reads.Close()
}

// startGuard starts a guard. It leads a session of its own, so that what ends the group of this process does not end
// its guard.
func startGuard() (*guardProcess, error) {
	self := "/proc/self/exe" // also when the file was replaced
	if runtime.GOOS != "linux" {
		var err error
		if self, err = os.Executable(); err != nil {
			return nil, err
		}
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
	go func() { _ = cmd.Wait() }() // however it ends
	return &guardProcess{cmd.Process, ours}, nil
}
