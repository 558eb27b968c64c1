package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// stage is what all contestants play on: one cloud, one directory of programs, one embedded service.
type stage struct {
	dir   string
	cloud *fakecloud.Process
	env   []string // of every contestant
	house *house
	stock []*stock
}

func newStage(ctx context.Context) (*stage, error) {
	dir, err := os.MkdirTemp("", "deployctl-bench-")
	if err != nil {
		return nil, err
	}
	s := &stage{dir: dir}
	if err := s.open(ctx); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) open(ctx context.Context) error {
	binary, err := exec.LookPath("fakecloud")
	if err != nil {
		return err
	}
	if s.cloud, err = fakecloud.Launch(binary); err != nil {
		return err
	}
	s.env = append(os.Environ(), "FAKECLOUD_ENDPOINT="+s.cloud.URL(), "HOME="+s.dir,
		"PULUMI_HOME="+filepath.Join(s.dir, "pulumi"),
		"PULUMI_CONFIG_PASSPHRASE=bench", "PULUMI_SKIP_UPDATE_CHECK=true",
		"PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true",
		"XDG_STATE_HOME="+filepath.Join(s.dir, "state"), "XDG_CONFIG_HOME="+filepath.Join(s.dir, "config"))
	if s.house, err = openHouse(ctx, s.dir, s.env); err != nil {
		return err
	}
	plugin, err := exec.LookPath("pulumi-resource-fake")
	if err != nil {
		return err
	}
	if _, err := output(ctx, s.dir, s.env, "pulumi", "plugin", "install", "resource", "fake", "0.1.0", "--file",
		plugin); err != nil {
		return err
	}
	state := filepath.Join(s.dir, "stock-state")
	if err := os.MkdirAll(state, 0o700); err != nil {
		return err
	}
	s.stock = []*stock{
		{name: stockFile, env: slices.Concat(s.env, []string{"PULUMI_BACKEND_URL=file://" + state})},
		{name: stockS3, env: slices.Concat(s.env, s.house.s3Environment(s.house.S3Endpoint))},
	}
	here, err := s.house.pulumiEnvironment(s.house.PulumiAddress)
	here = append(here, "PULUMI_JOURNALING_BATCH_PERIOD=1") // as docs/stock-cli.md advises
	s.stock = append(s.stock, &stock{name: stockHere, env: slices.Concat(s.env, here)})
	return err
}

func (s *stage) close() {
	if s.house != nil {
		s.house.close()
	}
	if s.cloud != nil {
		_ = s.cloud.Stop()
	}
	_ = os.RemoveAll(s.dir)
}

// project writes a row's program and gives its directory. Each contestant has its own: names in the cloud differ.
func (s *stage) project(r row, contestant string, n, changed int) (string, error) {
	slug := strings.NewReplacer(" ", "-", ",", "").Replace(contestant + "-" + r.name)
	dir := filepath.Join(s.dir, "projects", slug)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	depends := ""
	first := ""
	from := 0
	if r.chain {
		from = 1
		first = fmt.Sprintf("  - register: r-0\n    type: fake:index:Named\n    properties: {name: %s-0, size: 1}\n",
			slug)
		depends = `, links: ["${r-{{i-1}}.arn}"]`
	}
	program := "packages: [{name: fake, version: 0.1.0}]\nsteps:\n" + first + fmt.Sprintf(
		"  - repeat: %d\n    from: %d\n    steps:\n      - register: r-{{i}}\n        type: fake:index:Named\n       "+
			" properties: {name: \"%s-{{i}}\", size: 1%s}\n",
		n-from, from, slug, depends)
	if changed > 0 {
		program += fmt.Sprintf("  - register: changing\n    type: fake:index:Named\n    properties: {name: "+
			"%s-changing, size: %d}\n", slug, changed)
	}
	err := errors.Join(
		os.WriteFile(filepath.Join(dir, "Pulumi.yaml"), []byte("name: "+slug+"\nruntime: scenario\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "scenario.yaml"), []byte(program), 0o600))
	return dir, err
}

// measure plays a row: in each round every contestant creates, updates without a change, previews, refreshes
// and destroys.
func (s *stage) measure(ctx context.Context, r row, found results) error {
	for _, op := range []fakecloud.Op{fakecloud.Create, fakecloud.Delete} {
		if r.delay == 0 {
			break
		}
		name := "delay-" + string(op)
		if err := s.cloud.Set(ctx, fakecloud.Fault{Name: name, Do: fakecloud.Delay, Op: op,
			DelayMS: r.delay}); err != nil {
			return err
		}
		defer func() { _ = s.cloud.Lift(context.WithoutCancel(ctx), name) }()
	}
	shared := r.reps // the first round in which the stock CLI looks at what deployctl has created
	switch {
	case r.large:
		shared = 0
	case r.once:
		shared = 1
	}
	for round := range r.reps {
		if round >= shared {
			if err := s.shared(ctx, r, round == shared, found); err != nil {
				return err
			}
			continue
		}
		for _, c := range s.contestants(r) {
			if r.once && c.String() == stockFile {
				continue
			}
			dir, err := s.project(r, c.String(), r.n, 0)
			if err != nil {
				return err
			}
			if round == 0 {
				if err := c.prepare(ctx, dir); err != nil {
					return err
				}
			}
			if err := playAll(ctx, r, c, dir, operations, found); err != nil {
				return err
			}
		}
	}
	return nil
}

// contestants are those that play a row.
func (s *stage) contestants(r row) []contestant {
	all := []contestant{s.house}
	for _, c := range s.stock {
		if !r.large || c.name != stockS3 {
			all = append(all, c)
		}
	}
	return all
}

// shared plays a round of a row that takes the stock CLI too long to create: deployctl creates and destroys, and
// between the two the stock CLI looks at the same resources: it imports them, or, on deployctl, has the same stack.
func (s *stage) shared(ctx context.Context, r row, first bool, found results) error {
	dir, err := s.project(r, "all", r.n, 0)
	if err != nil {
		return err
	}
	for _, c := range s.contestants(r) {
		if !first || c.String() == stockHere { // which uses the stack of deployctl itself
			continue
		}
		if err := c.prepare(ctx, dir); err != nil {
			return err
		}
	}
	if err := playAll(ctx, r, s.house, dir, []operation{create}, found); err != nil {
		return err
	}
	state := filepath.Join(dir, "state.json")
	if _, err := output(ctx, dir, s.house.env, ours, "stack", "export", "--show-secrets", "--file", state); err != nil {
		return err
	}
	for _, c := range s.contestants(r) {
		if peer, ok := c.(*stock); ok && peer.name != stockHere {
			if _, err := output(ctx, dir, peer.env, "pulumi", "stack", "import", "--stack", "dev", "--file", state); err != nil {
				return err
			}
		}
		if err := playAll(ctx, r, c, dir, []operation{noChange, preview, refresh}, found); err != nil {
			return err
		}
	}
	return playAll(ctx, r, s.house, dir, []operation{destroy}, found)
}

// playAll has a contestant play operations one after another.
func playAll(ctx context.Context, r row, c contestant, dir string, all []operation, found results) error {
	for _, op := range all {
		m, err := c.play(ctx, dir, op)
		if err != nil {
			return fmt.Errorf("%s, %s: %w", c, op, err)
		}
		found.add(r.name, c.String(), op, m)
	}
	return nil
}

// operation is what is measured of each program.
type operation string

const (
	create   operation = "create"
	noChange operation = "no change"
	preview  operation = "preview"
	refresh  operation = "refresh"
	destroy  operation = "destroy"
)

var operations = []operation{create, noChange, preview, refresh, destroy}

// arguments are those that both command lines understand.
func (o operation) arguments() []string {
	p := fmt.Sprintf("--parallel=%d", parallel)
	switch o {
	case preview:
		return []string{"preview", "--stack", "dev", p}
	case refresh, destroy:
		return []string{string(o), "--yes", "--skip-preview", "--stack", "dev", p}
	default:
		return []string{"up", "--yes", "--skip-preview", "--stack", "dev", p}
	}
}

// contestant plays operations.
type contestant interface {
	fmt.Stringer
	prepare(ctx context.Context, dir string) error
	play(ctx context.Context, dir string, op operation) (measured, error)
}
