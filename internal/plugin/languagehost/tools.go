package languagehost

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// tools runs commands with an environment that need not be ours, in a sandbox if there is one.
type tools struct {
	env    []string
	box    *sandbox.Box
	spares *process.Spares
}

// run runs a command to its end, which comes at once, for its whole process group, when the context ends. The command's
// Env is added to that of the tools.
func (t tools) run(ctx context.Context, c process.Command) (process.Exit, error) {
	c.Env = append(append([]string(nil), t.env...), c.Env...)
	c.Box, c.Spares = t.box, t.spares
	p, err := process.Start(c)
	if err != nil {
		return process.Exit{}, err
	}
	select {
	case <-p.Done():
		return p.Exit(), nil
	case <-ctx.Done():
		p.Kill()
		return p.Exit(), context.Cause(ctx)
	}
}

// What a command may say at most, in bytes: it may be the program's own, and this process keeps all of it.
const (
	maxAnswer    = 16 << 20
	maxComplaint = 64 << 10
)

// read runs a command and returns what it writes to stdout, trimmed. If it fails, the error has what it wrote to
// stderr. One that writes more than maxAnswer is ended.
func (t tools) read(ctx context.Context, c process.Command) (string, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	name := strings.Join(append([]string{filepath.Base(c.Path)}, c.Args...), " ")
	out := said{most: maxAnswer, full: func() {
		end(fmt.Errorf("%.200s has written more than %d MiB, which no list of packages needs", name, maxAnswer>>20))
	}}
	complaint := said{most: maxComplaint, full: func() {}}
	c.Stdout, c.Stderr = out.add, complaint.add
	exit, err := t.run(ctx, c)
	if err == nil {
		err = context.Cause(ctx)
	}
	if err == nil && exit != (process.Exit{}) {
		err = fmt.Errorf("%s failed (%s): %s", name, exit, complaint.get())
	}
	return out.get(), err
}

// said is what a command has written, up to a number of bytes. What goes beyond is dropped.
type said struct {
	most int
	full func() // is called when something is dropped

	mu   sync.Mutex
	text []byte
}

func (s *said) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.text)+len(line) >= s.most {
		s.full()
		return
	}
	s.text = append(append(s.text, line...), '\n')
}

func (s *said) get() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(string(s.text))
}

// look finds a tool on the PATH of the environment. What it is for completes the sentence of the error.
func (t tools) look(name, what string) (string, error) {
	if path, err := process.Look(t.box, t.env, name); err == nil {
		return path, nil
	}
	return "", fmt.Errorf("%s was not found on PATH; install it to run %s", name, what)
}

// configEnv is how programs of every language get their configuration: in the environment, because arguments are
// public.
func configEnv(req *pulumirpc.RunRequest) []string {
	config, secretKeys := []byte("{}"), []byte("[]")
	if len(req.GetConfig()) > 0 {
		config, _ = json.Marshal(req.GetConfig()) // strings always marshal
	}
	if len(req.GetConfigSecretKeys()) > 0 {
		secretKeys, _ = json.Marshal(req.GetConfigSecretKeys())
	}
	return []string{"PULUMI_CONFIG=" + string(config), "PULUMI_CONFIG_SECRET_KEYS=" + string(secretKeys)}
}

// option is a runtime option of Pulumi.yaml, or its zero value.
func option[T any](info *pulumirpc.ProgramInfo, name string) (value T, ok bool) {
	value, ok = info.GetOptions().AsMap()[name].(T)
	return value, ok
}
