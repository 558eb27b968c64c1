package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// stage is where a program is played on one engine: a project directory, a stack and a cloud.
type stage struct {
	dir, stack, cloud string
	parallel          int
}

// result is what an update came to.
type result struct {
	failed bool
	errors []string
	steps  []string // OPERATION URN, in order
	hooks  []string // the calls of hooks, in order
	state  apitype.DeploymentV3
}

// hear takes what a message says about a call of a hook.
func (r *result) hear(text string) {
	if text = strings.TrimSpace(text); strings.HasPrefix(text, "hook ") {
		r.hooks = append(r.hooks, text)
	}
}

// player plays updates on an engine.
type player interface {
	play(ctx context.Context, s stage, u update) (result, error)
	// remove forgets the stage's stack.
	remove(ctx context.Context, s stage) error
}

// stockEngine is Pulumi's own engine in a process of tools/peers/stockengine.
type stockEngine struct {
	binary string
	env    []string

	mu      sync.Mutex
	running *stockProcess            // nil until it is needed
	has     map[string]*stockProcess // which one has the state of a stack
	hangs   bool                     // an update of it does not end, and may have left processes
}

// stockProcess is a running one.
type stockProcess struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	done chan struct{}

	mu      sync.Mutex
	next    int
	waiting map[int]chan stockAnswer
	writing sync.Mutex
}

// stockRequest, stockImport and stockAnswer are those of tools/peers/stockengine.
type stockRequest struct {
	ID                int                   `json:"id"`
	Kind              string                `json:"kind"`
	Stack             string                `json:"stack,omitempty"`
	Dir               string                `json:"dir,omitempty"`
	Config            map[string]string     `json:"config,omitempty"`
	Secrets           map[string]string     `json:"secrets,omitempty"`
	Parallel          int                   `json:"parallel,omitempty"`
	Refresh           bool                  `json:"refresh,omitempty"`
	Targets           []string              `json:"targets,omitempty"`
	TargetDependents  bool                  `json:"targetDependents,omitempty"`
	Replace           []string              `json:"replace,omitempty"`
	Excludes          []string              `json:"excludes,omitempty"`
	ExcludeDependents bool                  `json:"excludeDependents,omitempty"`
	ContinueOnError   bool                  `json:"continueOnError,omitempty"`
	IgnoreProtect     bool                  `json:"ignoreProtect,omitempty"`
	RunProgram        bool                  `json:"runProgram,omitempty"`
	Imports           []stockImport         `json:"imports,omitempty"`
	State             *apitype.DeploymentV3 `json:"state,omitempty"`
}

type stockImport struct {
	Type string `json:"type"`
	Name string `json:"name"`
	ID   string `json:"id"`
}

type stockAnswer struct {
	ID       int                  `json:"id"`
	Error    string               `json:"error"`
	Errors   []string             `json:"errors"`
	Steps    []string             `json:"steps"`
	Messages []string             `json:"messages"`
	State    apitype.DeploymentV3 `json:"state"`
}

// stockPatience is how long the stock engine may take for an update, which is seconds. Some never end: for example one
// that goes on after errors, when a deletion before a replacement has failed.
const stockPatience = 4 * time.Minute

// errStockHangs is the error of an update that does not end.
var errStockHangs = errors.New("an update of the stock engine does not end")

// errStockEnded is the error of a request during which the process ended, or before which it has: some programs make it
// panic. What else it plays at that moment ends with it, and is compared no further, either.
var errStockEnded = errors.New("the stock engine's process ended")

func (e *stockEngine) play(ctx context.Context, s stage, u update) (result, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, stockPatience, errStockHangs)
	defer cancel()
	config := map[string]string{}
	for _, key := range endpoints {
		config[key] = s.cloud
	}
	var imports []stockImport
	if u.Import != "" {
		imports = []stockImport{{Type: namedType, Name: u.Import, ID: u.Import}}
	}
	a, err := e.ask(ctx, stockRequest{
		Kind: u.Kind, Stack: s.stack, Dir: s.dir, Config: config, Imports: imports,
		Parallel: s.parallel, Refresh: u.Refresh, Targets: u.urns(s.stack, u.Targets),
		TargetDependents: u.TargetDependents, Replace: u.urns(s.stack, u.Replace), ContinueOnError: u.ContinueOnError,
		Excludes: u.urns(s.stack, u.Excludes), ExcludeDependents: u.ExcludeDependents, IgnoreProtect: u.IgnoreProtect,
		RunProgram: u.RunProgram,
	})
	r := result{failed: a.Error != "", errors: a.Errors, steps: a.Steps, state: a.State}
	for _, text := range a.Messages {
		r.hear(text)
	}
	if r.failed {
		r.errors = append(r.errors, a.Error)
	}
	return r, err
}

func (e *stockEngine) remove(ctx context.Context, s stage) error {
	_, err := e.ask(ctx, stockRequest{Kind: "remove", Stack: s.stack})
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.has, s.stack)
	return err
}

// verify returns why Pulumi's engine would not accept a state.
func (e *stockEngine) verify(ctx context.Context, state *apitype.DeploymentV3) error {
	a, err := e.ask(ctx, stockRequest{Kind: "verify", State: state})
	if err == nil && a.Error != "" {
		err = errors.New(a.Error)
	}
	return err
}

// urns are the URNs of steps.
func (u update) urns(stack string, names []string) (all []string) {
	for _, name := range names {
		all = append(all, u.urn(stack, name))
	}
	return all
}

// ask sends a request and waits for its answer.
func (e *stockEngine) ask(ctx context.Context, r stockRequest) (stockAnswer, error) {
	p, err := e.process()
	if err == nil && !e.knows(p, r.Stack) {
		err = fmt.Errorf("the state of %s is lost: %w", r.Stack, errStockEnded)
	}
	if err != nil {
		return stockAnswer{}, err
	}
	answer := make(chan stockAnswer, 1)
	p.mu.Lock()
	p.next++
	r.ID = p.next
	p.waiting[r.ID] = answer
	p.mu.Unlock()
	line, err := json.Marshal(r)
	if err != nil {
		return stockAnswer{}, err
	}
	p.writing.Lock()
	_, err = p.in.Write(append(line, '\n'))
	p.writing.Unlock()
	if err != nil {
		return stockAnswer{}, err
	}
	select {
	case a := <-answer:
		return a, nil
	case <-p.done:
		return stockAnswer{}, fmt.Errorf("the stock engine does not answer: %w", errStockEnded)
	case <-ctx.Done():
		e.mu.Lock()
		e.hangs = true
		e.mu.Unlock()
		return stockAnswer{}, fmt.Errorf("the stock engine does not answer: %w", context.Cause(ctx))
	}
}

// process returns the running process, and starts one if there is none.
func (e *stockEngine) process() (*stockProcess, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running != nil {
		select {
		case <-e.running.done:
		default:
			return e.running, nil
		}
	}
	p := &stockProcess{cmd: exec.Command(e.binary), done: make(chan struct{}), waiting: map[int]chan stockAnswer{}}
	p.cmd.Env, p.cmd.Stderr = e.env, os.Stderr
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go p.receive(out)
	e.running = p
	return p, nil
}

// knows reports whether a process has the state of a stack, or none has. The state ends with its process.
func (e *stockEngine) knows(p *stockProcess, stack string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.has == nil {
		e.has = map[string]*stockProcess{}
	}
	if stack != "" && e.has[stack] == nil {
		e.has[stack] = p
	}
	return stack == "" || e.has[stack] == p
}

// receive hands out the answers until the process ends.
func (p *stockProcess) receive(out io.Reader) {
	defer close(p.done)
	answers := json.NewDecoder(bufio.NewReader(out))
	for {
		var a stockAnswer
		if answers.Decode(&a) != nil {
			_ = p.cmd.Wait() // its answers have ended, whatever it says
			return
		}
		p.mu.Lock()
		waiting := p.waiting[a.ID]
		delete(p.waiting, a.ID)
		p.mu.Unlock()
		if waiting != nil {
			waiting <- a
		}
	}
}

// close ends the process, and what an update that hangs has started.
func (e *stockEngine) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.running != nil {
		_ = e.running.in.Close()
		if e.hangs {
			_ = syscall.Kill(-e.running.cmd.Process.Pid, syscall.SIGKILL)
		}
		<-e.running.done
	}
}
