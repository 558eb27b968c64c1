package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// nextBinary is a build of another revision, whose workflows do not do what the histories of this one say.
func nextBinary() string { return binary + "-next" }

// upgrading plays a seed of the upgrades: the odd ones replace workers, the even ones the embedded service.
func upgrading(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v := variants()[seed/2%2] // in YAML
	plain, err := v.undisturbed(ctx, w)
	if err != nil {
		return o, fmt.Errorf("undisturbed: %w", err)
	}
	replacements := w.replacements
	if seed%2 == 0 {
		if w, err = w.embedded(ctx); err != nil {
			return o, err
		}
		defer func() { w.leave(err != nil) }()
		replacements = w.revisions
	}
	s, err := w.newStage(ctx, fmt.Sprintf("upgrades-%d", seed), v.language, v.nodes)
	if err != nil {
		return o, err
	}
	defer s.close()
	r := rand.New(rand.NewPCG(uint64(seed), 8))
	var gates []fakecloud.Gate // each is there before the update can pass it
	for i := range replacements() {
		k := killed{Moment: string([]fakecloud.Moment{fakecloud.Before, fakecloud.After}[r.IntN(2)]),
			Victim: "what carries it out"}
		place := programSize*i/4 + programSize/10 + r.IntN(programSize*15/100)
		gate, err := s.cloud.SetGate(ctx, fakecloud.Fault{
			Name: fmt.Sprint("replacement-", i+1), Op: fakecloud.Create, At: fakecloud.Moment(k.Moment), Skip: place,
			Times: 1,
		})
		if err != nil {
			return o, err
		}
		gates, o.Kills = append(gates, gate), append(o.Kills, k)
	}
	up, err := s.start("up", "--yes", "--skip-preview")
	if err != nil {
		return o, err
	}
	for i, do := range replacements() {
		if err := s.replace(ctx, gates[i], &up, do); err != nil {
			return o, fmt.Errorf("replacement %d: %w", i+1, err)
		}
	}
	if err := up.wait(ctx); err != nil {
		return o, err
	}
	end, err := s.reached(ctx)
	o.Counts = end.counts
	if err != nil {
		return o, err
	}
	o.Tally, err = s.tasks(ctx)
	return o, errors.Join(err, end.differs(plain), w.restoreWorkers())
}

// replacements are what is done to the workers, in order. The current build's are replaced by others of it; those of
// the next build come beside them; the old ones go, though they have an update.
func (w *world) replacements() []replacement {
	stopAll := func(from, to int) error {
		for _, p := range w.Workers[from:to] {
			p.Stop()
		}
		return nil
	}
	add := func(binary string) error {
		_, err := w.AddWorker(binary)
		return err
	}
	return []replacement{
		func(context.Context, *stage, **command) error {
			n := len(w.Workers)
			return errors.Join(add(binary), stopAll(0, n))
		},
		func(context.Context, *stage, **command) error { return add(nextBinary()) },
		func(context.Context, *stage, **command) error { return stopAll(0, len(w.Workers)-1) },
	}
}

// revisions kill the embedded service, and the client that would bring it back, and come back with another build: the
// next, the current one again, and the next.
func (w *world) revisions() []replacement {
	to := func(tool string) replacement {
		return func(ctx context.Context, s *stage, up **command) error {
			var status cluster.Home
			err := eventually(ctx, "the embedded service runs", func() (_ bool, err error) {
				status, err = s.status(ctx)
				return status.PID > 0, err
			})
			if err != nil {
				return err
			}
			_ = (*up).cmd.Process.Kill()
			<-(*up).ended
			if err := syscall.Kill(status.PID, syscall.SIGKILL); err != nil {
				return err
			}
			w.tool = tool
			*up, err = s.start("attach")
			return err
		}
	}
	return []replacement{to(nextBinary()), to(binary), to(nextBinary())}
}

// embedded is a world that is an embedded service.
func (w *world) embedded(ctx context.Context) (*world, error) {
	e := &world{dir: filepath.Join(w.dir, "embedded"), env: w.env, tool: binary}
	e.clients = append(slices.Clip(w.env), "XDG_STATE_HOME="+e.dir)
	var err error
	if e.ports, err = cluster.KeepPorts(filepath.Join(e.dir, "deployctl")); err != nil {
		return nil, err
	}
	up, err := launch(e.dir, e.clients, binary, "dev", "--background")
	if err == nil {
		err = up.wait(ctx)
	}
	if err != nil {
		return nil, err
	}
	status, err := (&stage{world: e, dir: e.dir}).status(ctx)
	if err != nil {
		return nil, err
	}
	e.temporal, err = status.Temporal().LazyDial()
	return e, err
}

// leave stops the embedded service; its files can be left to whoever wants to know why.
func (w *world) leave(files bool) {
	w.temporal.Close()
	if down, err := launch(w.dir, w.clients, w.tool, "dev", "stop"); err == nil {
		_ = down.wait(context.Background()) // its processes are the claim's own
	}
	_ = w.ports.Close()
	if !files {
		_ = os.RemoveAll(w.dir)
	}
}

// status is that of the embedded service.
func (s *stage) status(ctx context.Context) (status cluster.Home, err error) {
	text, err := s.deployctl(ctx, "dev", "status", "--json")
	if err != nil {
		return status, err
	}
	return status, json.Unmarshal([]byte(text), &status)
}

// replacement is something that is done to those who carry an update out.
type replacement func(ctx context.Context, s *stage, up **command) error

// restoreWorkers leaves the world with two workers of the current build.
func (w *world) restoreWorkers() error {
	if w.Cluster == nil {
		return nil
	}
	for _, p := range w.Workers {
		p.Stop()
	}
	w.Workers = nil
	_, one := w.AddWorker(binary)
	_, two := w.AddWorker(binary)
	return errors.Join(one, two)
}

// replace does something to the workers while a create is under way.
func (s *stage) replace(ctx context.Context, gate fakecloud.Gate, up **command, do replacement) error {
	if err := (*up).during(ctx, gate.Wait); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- gate.Open(ctx) }() // a worker that stops waits for what it does
	return errors.Join(do(ctx, s, up), <-done)
}

// tasks counts, over every workflow of the stack, the workflow tasks and those that failed because a build did not do
// what the history says, which is an error.
func (s *stage) tasks(ctx context.Context) (map[string]int, error) {
	tally := map[string]int{}
	ids := []string{deployments.StackWorkflowID(s.update().StackName)}
	for version := 1; ; version++ {
		u := s.update()
		u.Version = strconv.Itoa(version)
		if _, err := s.temporal.DescribeWorkflowExecution(ctx, deployments.UpdateWorkflowID(u), ""); err != nil {
			var missing *serviceerror.NotFound
			if !errors.As(err, &missing) {
				return tally, err
			}
			break
		}
		tally["updates"]++
		ids = append(ids, deployments.UpdateWorkflowID(u), deployments.RunWorkflowID(u))
	}
	for _, id := range ids {
		for events := s.temporal.GetWorkflowHistory(ctx, id, "", false,
			enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); events.HasNext(); {
			e, err := events.Next()
			if err != nil {
				return tally, fmt.Errorf("read the history of %s: %w", id, err)
			}
			tally["tasks"]++
			if e.GetWorkflowTaskFailedEventAttributes().GetCause() == enums.WORKFLOW_TASK_FAILED_CAUSE_NON_DETERMINISTIC_ERROR {
				tally["non-deterministic"]++
			}
		}
	}
	if n := tally["non-deterministic"]; n > 0 {
		return tally, fmt.Errorf("%d workflow tasks failed because a build does not do what the history says", n)
	}
	return tally, nil
}

// upgradingLine sums the upgrades up.
func upgradingLine(all []outcome, _ bool) (string, []string) {
	sum, counts := totals(all)
	replaced := 0
	for _, o := range all {
		replaced += len(o.Kills)
	}
	return fmt.Sprintf("%d runs, %d replacements of what carries them out, %d updates for them, 0 failed, %d "+
		"non-determinism errors, %s",
		len(all), replaced, sum["updates"], sum["non-deterministic"], counts), counts.broken()
}
