package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// control is what the stock CLI makes of the same disturbance: the same program and provider, and kills of what it
// consists of while the same creates are under way, after each of which somebody types what it asks for.
func control(ctx context.Context, w *world) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s, err := w.newStage(ctx, "control", variants()[0].language, variants()[0].nodes)
	if err != nil {
		return o, err
	}
	defer s.close()
	backend := filepath.Join(w.dir, "control-state")
	if err := os.MkdirAll(backend, 0o700); err != nil {
		return o, err
	}
	h := &human{stage: s, backend: backend, env: append(w.env, "PULUMI_BACKEND_URL=file://"+backend,
		"PULUMI_CONFIG_PASSPHRASE=control",
		"PULUMI_SKIP_UPDATE_CHECK=true", "FAKECLOUD_ENDPOINT="+s.cloud.URL())}
	defer h.tidies()
	if _, err := h.types(ctx, "stack", "init"); err != nil {
		return o, err
	}
	h.typed = 0
	r := rand.New(rand.NewPCG(0, 1))
	for i, nth := range []int{20, 80, 140} {
		at := []fakecloud.Moment{fakecloud.Before, fakecloud.After}[i%2]
		k := killed{Moment: string(at), Victim: []string{"pulumi", "pulumi-resource-fake"}[r.IntN(2)]}
		if err := h.disturbed(ctx, nth, at, k.Victim); err != nil {
			return o, err
		}
		o.Kills = append(o.Kills, k)
	}
	if err := h.mend(ctx); err != nil {
		return o, err
	}
	o.Counts, err = h.count(ctx)
	return o, err
}

// human types what the stock CLI asks for.
type human struct {
	*stage
	backend string // where the stock CLI keeps its state
	env     []string
	typed   int   // commands after the first
	left    []int // plugins whose CLI was killed
}

// tidies ends what was left behind.
func (h *human) tidies() {
	for _, pid := range h.left {
		_ = syscall.Kill(pid, syscall.SIGKILL) // most have ended by themselves
	}
}

// starts starts the stock CLI.
func (h *human) starts(args ...string) (*command, error) {
	h.typed++
	return launch(h.dir, h.env, "pulumi", append(args, "--non-interactive", "--stack", "control")...)
}

// types runs a command of the stock CLI.
func (h *human) types(ctx context.Context, args ...string) (string, error) {
	c, err := h.starts(args...)
	if err != nil {
		return "", err
	}
	err = c.wait(ctx)
	return c.text(), err
}

var stockUp = []string{"up", "--yes", "--skip-preview"}

// tries is how often somebody types before giving up.
const tries = 20

// disturbed runs up until a create is under way, and kills somebody then.
func (h *human) disturbed(ctx context.Context, nth int, at fakecloud.Moment, victim string) error {
	for range tries {
		up, err := h.starts(stockUp...)
		if err != nil {
			return err
		}
		open, err := h.reaches(ctx, up, nth, at)
		switch {
		case err != nil:
			return err
		case open != nil:
			return errors.Join(h.kills(up, victim), open(), up.ends(ctx))
		case up.err == nil:
			return fmt.Errorf("the update never came to create %d", nth)
		}
		if err := h.obeys(ctx, up.text()); err != nil {
			return err
		}
	}
	return fmt.Errorf("the stock CLI does not come to create %d", nth)
}

// reaches waits until a create is under way, and gives what lets it go on; nil when the update ended before.
func (h *human) reaches(ctx context.Context, up *command, nth int, at fakecloud.Moment) (open func() error, err error) {
	err = up.during(ctx, func(ctx context.Context) error { open, err = h.gate(ctx, nth, at); return err })
	if err != nil && up.over() {
		return nil, h.cloud.Lift(ctx, "")
	}
	return open, err
}

// kills kills the update's own process, or a plugin of it. What the first leaves behind has a moment to end by itself.
func (h *human) kills(up *command, victim string) error {
	plugins, err := cluster.Below(up.cmd.Process.Pid, "pulumi-")
	if err != nil {
		return err
	}
	if victim == "pulumi" {
		h.left = append(h.left, plugins...)
		return up.cmd.Process.Kill()
	}
	pids, err := cluster.Below(up.cmd.Process.Pid, victim)
	for _, pid := range pids {
		err = errors.Join(err, syscall.Kill(pid, syscall.SIGKILL))
	}
	return err
}

// mend types what is needed until an update succeeds.
func (h *human) mend(ctx context.Context) error {
	var said string
	for range tries {
		var err error
		if said, err = h.types(ctx, stockUp...); err == nil {
			return nil
		}
		if err := h.obeys(ctx, said); err != nil {
			return err
		}
	}
	return fmt.Errorf("the stock CLI does not get there; it says\n%s", said[max(0, len(said)-2000):])
}

// obeys does what the stock CLI asks for before the next update, if it asks.
func (h *human) obeys(ctx context.Context, said string) error {
	var err error
	switch {
	case strings.Contains(said, "locked"):
		_, err = h.types(ctx, "cancel", "--yes")
	case strings.Contains(said, "failed to load checkpoint"):
		err = h.repairs()
	case strings.Contains(said, "already exists"):
		err = h.clears(ctx)
	case strings.Contains(said, "pending"):
		_, err = h.types(ctx, "refresh", "--yes", "--skip-preview", "--clear-pending-creates")
	}
	return err
}

// repairs removes by hand what the stock CLI was killed while it wrote it, without which it reads its state again.
func (h *human) repairs() error {
	h.typed++
	attributes, err := filepath.Glob(filepath.Join(h.backend, ".pulumi", "stacks", project, "*.attrs"))
	for _, path := range attributes {
		if info, cut := os.Stat(path); cut == nil && info.Size() == 0 {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// clears deletes by hand what stands in the way: objects that the state does not know.
func (h *human) clears(ctx context.Context) error {
	state, err := h.state(ctx)
	if err != nil {
		return err
	}
	objects, err := h.cloud.Objects(ctx, "")
	if err != nil {
		return err
	}
	for _, o := range objects {
		if !slices.ContainsFunc(state.Resources, func(r apitype.ResourceV3) bool { return string(r.ID) == o.ID }) {
			h.typed++
			if err := h.cloud.Remove(ctx, o.Kind, o.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// state is the stock CLI's.
func (h *human) state(ctx context.Context) (state apitype.DeploymentV3, err error) {
	text, err := h.types(ctx, "stack", "export")
	if err != nil {
		return state, fmt.Errorf("%w: %s", err, text)
	}
	return parseState(text)
}

// count compares the cloud with the stock CLI's state.
func (h *human) count(ctx context.Context) (counts, error) {
	c := counts{Commands: h.typed - 1}
	state, err := h.state(ctx)
	if err != nil {
		return c, err
	}
	c.Duplicates, c.Leaks, err = h.stray(ctx, state)
	return c, err
}
