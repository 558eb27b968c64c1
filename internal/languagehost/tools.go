package languagehost

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/internal/pluginhost/process"
	"github.com/deployctl/deployctl/internal/sandbox"
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

// read runs a command and returns what it writes to stdout, trimmed. If it fails, the error has what it wrote to
// stderr.
func (t tools) read(ctx context.Context, c process.Command) (string, error) {
	var mu sync.Mutex
	var out, complaint []string
	add := func(to *[]string) func(string) {
		return func(line string) {
			mu.Lock()
			defer mu.Unlock()
			*to = append(*to, line)
		}
	}
	c.Stdout, c.Stderr = add(&out), add(&complaint)
	exit, err := t.run(ctx, c)
	if err == nil && exit != (process.Exit{}) {
		err = fmt.Errorf("%s %s failed (%s): %s",
			filepath.Base(c.Path), strings.Join(c.Args, " "), exit, strings.Join(complaint, "\n"))
	}
	return strings.TrimSpace(strings.Join(out, "\n")), err
}

// look finds a tool on the PATH of the environment. What it is for completes the sentence of the error.
func (t tools) look(name, what string) (string, error) {
	if path, err := process.Look(t.env, name); err == nil {
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
