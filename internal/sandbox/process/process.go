// Package process runs child processes that must never outlive their owner: each leads a process group of its own, and
// is stopped as a whole group. If this process is killed, its children die where the system can arrange that, and a
// guard kills what is left of their groups.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/deployctl/deployctl/internal/sandbox"
)

// drainTime bounds how long the output of a process is read after its end: a grandchild that left the group may hold
// the pipe open for ever.
const drainTime = 2 * time.Second

// Command describes what to run. Env is the whole environment: nothing is inherited, so that a child never sees
// credentials of this process by accident. Stdout and Stderr are called with one line at a time, without its line end,
// each from a goroutine of its own; nil discards.
type Command struct {
	Path   string
	Name   string // what the process is called, its first argument; empty: Path
	Args   []string
	Dir    string
	Env    []string
	Stdout func(line string)
	Stderr func(line string)
	// Stdin leaves the standard input open, for Write and until Stop. Otherwise it is at its end at once: nobody would
	// ever answer whoever reads it.
	Stdin bool
	// Box is the sandbox in which it is started; nil for none.
	Box *sandbox.Box
	// Spares are processes of the box that were started in advance; one of them is used, if there is any. May be nil.
	Spares *Spares
}

// Environment is what every process of an update receives.
type Environment struct {
	Env []string     // as KEY=value
	Box *sandbox.Box // nil: none
}

// Exit is how a process ended.
type Exit struct {
	Code   int    // exit status, -1 if a signal ended it
	Signal string // name of the signal that ended it, or empty
}

// String returns it in words: "exit status 7" or "signal: killed".
func (e Exit) String() string {
	if e.Signal != "" {
		return "signal: " + e.Signal
	}
	return fmt.Sprintf("exit status %d", e.Code)
}

// Process is a running child. Its methods may be called from any goroutine, any number of times.
type Process struct {
	cmd   *exec.Cmd
	box   *sandbox.Box
	stdin io.WriteCloser
	ended chan struct{}
	done  chan struct{}
	exit  Exit

	reaping sync.Mutex // held while a signal is sent, too
	reaped  bool
}

// Start starts the command. The caller must call Stop or Kill, unless the process ends by itself.
func Start(c Command) (*Process, error) {
	if s := c.Spares.take(); s != nil {
		if p, err := s.become(c); !neverTold(err) {
			return p, err
		}
	}
	s, err := newSpare(c.Box)
	if err != nil {
		return nil, err
	}
	return s.become(c)
}

// neverTold reports that a spare process had ended before it was told its command.
func neverTold(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET)
}

// wait reaps the process, kills what is left of its group, and delivers the rest of its output.
func (p *Process) wait(streams *pipes) {
	p.reap()
	p.box.Ended(p.Pid())
	p.exit = exitOf(p.cmd.ProcessState)
	close(p.ended)
	streams.drain()
	close(p.done)
}

// reap waits until the process ends, kills what is left of its group, and reaps it. In this order, where the system can
// wait for the end alone: once it is reaped, its id may be that of another group.
func (p *Process) reap() {
	if !awaitEnd(p.cmd.Process) {
		_ = p.cmd.Wait()
	}
	p.reaping.Lock()
	defer p.reaping.Unlock()
	killGroup(p.cmd.Process)
	guarded.remove(p.Pid())
	_ = p.cmd.Wait() // how it ended is in ProcessState; a second call does nothing
	p.reaped = true
}

// Pid returns the process id, which on Unix is also the id of its group.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Write writes to the standard input of a process whose command has one.
func (p *Process) Write(text []byte) (int, error) { return p.stdin.Write(text) }

// Done returns a channel that is closed once the process was reaped and all its output was delivered.
func (p *Process) Done() <-chan struct{} { return p.done }

// Ended returns a channel that is closed as soon as the process has ended; output may still follow.
func (p *Process) Ended() <-chan struct{} { return p.ended }

// Exit waits for Ended and returns how the process ended.
func (p *Process) Exit() Exit {
	<-p.ended
	return p.exit
}

// Stop asks the group to end (SIGTERM, end of stdin), kills it after the grace period, and returns when it has ended.
func (p *Process) Stop(grace time.Duration) {
	_ = p.stdin.Close()
	p.signal(terminateGroup)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-p.done:
		return
	case <-timer.C:
	}
	p.Kill()
}

// Kill kills the whole group and returns when it has ended.
func (p *Process) Kill() {
	p.signal(killGroup)
	<-p.done
}

// signal does nothing once the process was reaped: another process may have its id by then.
func (p *Process) signal(send func(*os.Process)) {
	p.reaping.Lock()
	defer p.reaping.Unlock()
	if !p.reaped {
		send(p.cmd.Process)
	}
}

// pipes are the output streams of one process, read to their ends by a goroutine each.
type pipes struct {
	readers, writers []*os.File
	reading          sync.WaitGroup
}

// open creates a stream. It uses pipes of its own instead of exec's copying, so that waiting for the process does not
// wait for other processes that inherited its output.
func (s *pipes) open() (*os.File, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	s.readers, s.writers = append(s.readers, r), append(s.writers, w)
	return w, nil
}

// started closes our copies of the child's ends.
func (s *pipes) started() {
	for _, w := range s.writers {
		_ = w.Close()
	}
}

// read starts to read: the lines of each stream go to the sink with the same index.
func (s *pipes) read(sinks ...func(line string)) {
	for i, r := range s.readers {
		s.reading.Go(func() { Lines(r, sinks[i]) })
	}
}

// drain waits for the ends of the streams, for at most drainTime.
func (s *pipes) drain() {
	timer := time.AfterFunc(drainTime, s.closeReaders)
	s.reading.Wait()
	timer.Stop()
	s.closeReaders()
}

func (s *pipes) closeReaders() {
	for _, r := range s.readers {
		_ = r.Close() // closing twice is harmless
	}
}
