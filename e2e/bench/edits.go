package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// edited is a project of one resource that is edited while deployctl watch follows it.
type edited struct {
	name  string
	files map[string]string // %d, where there is one, is the resource's size
	most  float64           // seconds from a saved file to the end of its update, p50
}

// edits is how often each of them is edited.
const edits = 11

var editedProjects = []edited{
	{"yaml", map[string]string{"Pulumi.yaml": `name: edited-yaml
runtime: yaml
resources:
  one: {type: fake:index:Named, properties: {name: edited-yaml, size: %d}}
`}, 0.5},
	{"nodejs", map[string]string{
		"Pulumi.yaml":  "name: edited-nodejs\nruntime: nodejs\n",
		"package.json": `{"name": "edited", "main": "index.js", "dependencies": {"@pulumi/pulumi": "3.248.0"}}`,
		"index.js": `const pulumi = require("@pulumi/pulumi");
new pulumi.CustomResource("fake:index:Named", "one", { name: "edited-nodejs", size: %d });
`}, 1.5},
}

func (e edited) String() string {
	return e.name + ": seconds from a saved file to the end of its update, p50"
}

// write saves the project, its resource with another size; it returns once all files are there.
func (e edited) write(dir string, size int) error {
	for name, text := range e.files {
		path := filepath.Join(dir, name)
		if strings.Contains(text, "%d") {
			text = fmt.Sprintf(text, size)
		} else if _, err := os.Stat(path); err == nil {
			continue
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// measureEdits has deployctl watch each project while it is edited.
func (s *stage) measureEdits(ctx context.Context, found results) error {
	fmt.Print("\n### deployctl watch: seconds from a saved file to the end of its update\n\n| | p50 | p95 | edits |\n" +
		"|---|---|---|---|\n")
	for _, e := range editedProjects {
		times, err := s.edit(ctx, e)
		if err != nil {
			return fmt.Errorf("%s: %w", e.name, err)
		}
		found.figure(e.String(), percentile(times, 50))
		fmt.Printf("| %s | %.2f | %.2f | %d |\n", e.name, percentile(times, 50), percentile(times, 95), len(times))
	}
	return nil
}

// edit returns how long each edit takes. The first update, which also installs what the program needs, is left out.
func (s *stage) edit(ctx context.Context, e edited) (times []float64, err error) {
	dir := filepath.Join(s.dir, "projects", "edited-"+e.name)
	if err := errors.Join(os.MkdirAll(dir, 0o700), e.write(dir, 1), s.house.prepare(ctx, dir)); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, ours, "watch", "--yes", "--stack", "dev")
	cmd.Dir, cmd.Env, cmd.Cancel = dir, s.env, func() error { return cmd.Process.Signal(os.Interrupt) }
	from, to, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.Stdout, cmd.Stderr = to, to
	if err := errors.Join(cmd.Start(), to.Close()); err != nil {
		return nil, err
	}
	defer func() {
		_ = cmd.Cancel()
		_, _ = io.Copy(io.Discard, from)
		_ = cmd.Wait() // it was interrupted
	}()
	lines := bufio.NewScanner(from)
	if err := succeeded(lines); err != nil {
		return nil, err
	}
	for n := range edits {
		begin := time.Now()
		if err := e.write(dir, 2+n); err != nil {
			return nil, err
		}
		if err := succeeded(lines); err != nil {
			return nil, err
		}
		times = append(times, time.Since(begin).Seconds())
	}
	return times, nil
}

// succeeded reads what deployctl watch says until it waits for the next change.
func succeeded(lines *bufio.Scanner) error {
	var said []string
	for lines.Scan() {
		said = append(said, lines.Text())
		if !strings.Contains(lines.Text(), "Watching for changes") {
			continue
		}
		if all := strings.Join(said, "\n"); !strings.Contains(all, "up succeeded") {
			return fmt.Errorf("the update did not succeed: %s", all)
		}
		return nil
	}
	return fmt.Errorf("it has ended: %s", strings.Join(said, "\n"))
}
