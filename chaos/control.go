package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// control is what the stock CLI makes of the same disturbance: the same program and provider, and kills of what it consists of
// while the same creates are under way, after each of which somebody types what it asks for.
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
	h := &human{stage: s, env: append(w.env, "PULUMI_BACKEND_URL=file://"+backend, "PULUMI_CONFIG_PASSPHRASE=control",
		"PULUMI_SKIP_UPDATE_CHECK=true", "FAKECLOUD_ENDPOINT="+s.cloud.URL())}
	if _, err := h.types(ctx, "stack", "init", "control"); err != nil {
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
	env   []string
	typed int // commands after the first
}

// types runs a command of the stock CLI.
func (h *human) types(ctx context.Context, args ...string) (string, error) {
	h.typed++
	cmd := exec.CommandContext(ctx, "pulumi", append(args, "--non-interactive")...)
	cmd.Dir, cmd.Env = h.dir, h.env
	out, err := cmd.CombinedOutput()
	return string(out), err
}

var stockUp = []string{"up", "--yes", "--skip-preview", "--stack", "control"}

// disturbed runs up, and kills somebody while a create is under way.
func (h *human) disturbed(ctx context.Context, nth int, at fakecloud.Moment, victim string) error {
	cmd := exec.CommandContext(ctx, "pulumi", append(stockUp, "--non-interactive")...)
	cmd.Dir, cmd.Env = h.dir, h.env
	if err := cmd.Start(); err != nil {
		return err
	}
	h.typed++
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(ended)
	}()
	gated, stop := context.WithCancel(ctx)
	defer stop()
	var open func() error
	var missed error
	held := make(chan struct{})
	go func() {
		open, missed = h.gate(gated, nth, at)
		close(held)
	}()
	select {
	case <-ended: // it refuses to begin: what it asks for comes first
		stop()
		<-held
		if err := h.mend(ctx); err != nil {
			return err
		}
		return h.cloud.Lift(ctx, "")
	case <-held:
		if missed != nil {
			return missed
		}
	}
	pids := []int{cmd.Process.Pid}
	if victim != "pulumi" {
		below, err := cluster.Below(cmd.Process.Pid, victim)
		if err != nil {
			return err
		}
		pids = below
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			return err
		}
	}
	err := open()
	<-ended
	return err
}

// mend types what is needed until an update succeeds.
func (h *human) mend(ctx context.Context) error {
	var said string
	var err error
	for range 10 {
		said, err = h.types(ctx, stockUp...)
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case strings.Contains(said, "locked"):
			_, err = h.types(ctx, "cancel", "--yes", "--stack", "control")
		case strings.Contains(said, "already exists"):
			err = h.clears(ctx)
		case strings.Contains(said, "pending"):
			_, err = h.types(ctx, "refresh", "--yes", "--skip-preview", "--clear-pending-creates", "--stack", "control")
		}
		if err != nil && ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return fmt.Errorf("the stock CLI does not get there; it says\n%s", said[max(0, len(said)-2000):])
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
	text, err := h.types(ctx, "stack", "export", "--stack", "control")
	if err != nil {
		return state, fmt.Errorf("%w: %s", err, text)
	}
	var exported apitype.UntypedDeployment
	if err := json.Unmarshal([]byte(text), &exported); err != nil {
		return state, err
	}
	return state, json.Unmarshal(exported.Deployment, &state)
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
