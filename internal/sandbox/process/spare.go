package process

import (
	"errors"
	"io"
	"os/exec"
	"sync"

	"github.com/deployctl/deployctl/internal/sandbox"
)

// Spares are processes that are started before their commands are known, because a start in a sandbox takes a while.
// Its methods may be called from any goroutine; a nil Spares has no processes. Close it.
type Spares struct {
	start func() (*spare, error) // nil: there are none

	mu       sync.Mutex
	closed   bool
	waiting  []*spare
	starting int
	adding   sync.WaitGroup
}

// NewSpares starts processes of a box in the background, as long as there are any from a reserve, which may be nil;
// none if the box does not isolate its processes.
func NewSpares(box *sandbox.Box, number int, reserve *Spares) *Spares {
	s := &Spares{}
	if box.Apart() {
		s.start = func() (*spare, error) {
			if one := reserve.take(); one != nil && one.join(box) == nil {
				return one, nil
			}
			return newSpare(box)
		}
	}
	s.Fill(number)
	return s
}

// NewReserve returns a reserve of processes for any box of a policy, in which there are none before Fill. There never
// are if each box starts its processes in another way.
func NewReserve(policy *sandbox.Policy) *Spares {
	s := &Spares{}
	if policy.Early() {
		s.start = func() (*spare, error) { return begin(nil, policy.Spare) }
	}
	return s
}

// Fill starts processes in the background until there are a number of them.
func (s *Spares) Fill(number int) {
	if s == nil || s.start == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for !s.closed && len(s.waiting)+s.starting < number {
		s.starting++
		s.adding.Go(s.add)
	}
}

// add starts a spare process. It ignores an error: the start of a command will report the same.
func (s *Spares) add() {
	one, err := s.start()
	s.mu.Lock()
	s.starting--
	late := err == nil && s.closed
	if err == nil && !late {
		s.waiting = append(s.waiting, one)
	}
	s.mu.Unlock()
	if late {
		one.discard()
	}
}

// take returns a spare process, or nil.
func (s *Spares) take() *spare {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.waiting) == 0 {
		return nil
	}
	one := s.waiting[0]
	s.waiting = s.waiting[1:]
	return one
}

// Close ends the processes that were not taken, and returns when they have ended.
func (s *Spares) Close() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.closed = true
	waiting := s.waiting
	s.waiting = nil
	s.mu.Unlock()
	for _, one := range waiting {
		one.discard()
	}
	s.adding.Wait()
}

// spare is a process that is to become a command. If the box does not isolate processes, it is only the streams: the
// process is started by become.
type spare struct {
	cmd     *exec.Cmd
	box     *sandbox.Box
	launch  *sandbox.Launch // nil if the process has not started
	stdin   io.WriteCloser
	streams pipes
}

func newSpare(box *sandbox.Box) (*spare, error) {
	if !box.Apart() {
		return begin(box, nil)
	}
	return begin(box, box.Spare)
}

// begin makes a spare, and starts it as what launch makes of it, unless that is nil.
func begin(box *sandbox.Box, launch func(*exec.Cmd) (*sandbox.Launch, error)) (s *spare, err error) {
	s = &spare{cmd: &exec.Cmd{}, box: box}
	ownGroup(s.cmd)
	if s.stdin, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if s.cmd.Stdout, err = s.streams.open(); err == nil {
		s.cmd.Stderr, err = s.streams.open()
	}
	if err == nil && launch != nil {
		if s.launch, err = launch(s.cmd); err == nil {
			err = s.run(s.launch)
		}
		s.streams.started()
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// join makes a process of a reserve one of a box. If it fails, the process has ended.
func (s *spare) join(box *sandbox.Box) error {
	if err := s.launch.Join(box, s.cmd); err != nil {
		s.discard()
		return err
	}
	s.box = box
	return nil
}

// become turns it into the process of a command.
func (s *spare) become(c Command) (*Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	if c.Name != "" {
		cmd.Args[0] = c.Name
	}
	cmd.Dir, cmd.Env = c.Dir, c.Env
	if cmd.Env == nil {
		cmd.Env = []string{} // exec reads nil as "inherit"
	}
	if s.launch != nil {
		if err := s.launch.Become(cmd); err != nil {
			s.discard()
			return nil, err
		}
	} else if err := s.start(cmd); err != nil {
		s.close()
		return nil, err
	}
	if !c.Stdin {
		_ = s.stdin.Close()
	}
	s.streams.read(c.Stdout, c.Stderr)
	p := &Process{cmd: s.cmd, box: s.box, stdin: s.stdin, ended: make(chan struct{}), done: make(chan struct{})}
	go p.wait(&s.streams)
	return p, nil
}

// start starts a command in a box that does not isolate processes.
func (s *spare) start(cmd *exec.Cmd) error {
	s.cmd.Path, s.cmd.Args, s.cmd.Env, s.cmd.Dir, s.cmd.Err = cmd.Path, cmd.Args, cmd.Env, cmd.Dir, cmd.Err
	launch, err := s.box.Prepare(s.cmd)
	if err == nil {
		err = s.run(launch)
	}
	s.streams.started()
	return err
}

// run starts the process as what launch has made of it.
func (s *spare) run(launch *sandbox.Launch) error {
	err := launch.Start(s.cmd, func() error { return startProcess(s.box.Party(), s.cmd) })
	if err == nil {
		guarded.add(s.cmd.Process.Pid)
	}
	return err
}

// discard ends a started process that runs no command yet, and returns when it has ended.
func (s *spare) discard() {
	err := s.launch.Discard()
	killGroup(s.cmd.Process)
	_ = errors.Join(err, s.cmd.Wait()) // it was killed
	guarded.remove(s.cmd.Process.Pid)
	s.box.Ended(s.cmd.Process.Pid)
	s.close()
}

func (s *spare) close() {
	_ = s.stdin.Close()
	s.streams.started()
	s.streams.closeReaders()
}
