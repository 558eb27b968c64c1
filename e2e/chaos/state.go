package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/serviceerror"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// closings are the workflows that somebody ends in Temporal, in this order. Where the Stack is among them, nobody is
// left to notice; alone it is only the lock, and the update goes on.
var closings = [][]string{
	{"Run"}, {"Update"}, {"Stack"}, {"Stack", "Update"}, {"Stack", "Update", "Run"},
}

// takeovers are how the next one takes it up.
var takeovers = []string{"the next up", "stack recover"}

var effectMoments = []fakecloud.Moment{fakecloud.Before, fakecloud.After}

// closing plays a seed of the state: writers that lost a stack try to move its head, in the S3 server and with calls
// that go wrong; and an update's workflows are ended from outside while a create is under way, its history becomes the
// stack's state, and the update after it brings the stack to where an undisturbed one would have.
func closing(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := w.contest(ctx, seed); err != nil {
		return o, fmt.Errorf("the fence: %w", err)
	}
	v := variants()[seed%len(variants())]
	plain, err := v.undisturbed(ctx, w)
	if err != nil {
		return o, fmt.Errorf("undisturbed: %w", err)
	}
	s, err := w.newStage(ctx, fmt.Sprintf("state-%d", seed), v.language, v.nodes)
	if err != nil {
		return o, err
	}
	defer s.close()
	closed, way := closings[seed%len(closings)], takeovers[seed%len(takeovers)]
	at := effectMoments[seed/(len(closings)*len(takeovers))%len(effectMoments)]
	nth := 1 + rand.New(rand.NewPCG(uint64(seed), 1)).IntN(185)
	o.Kills = []killed{{Victim: strings.Join(closed, "+"), Moment: fmt.Sprintf("%s an effect, %s", at, way)}}
	o.Kills[0].Recovery, err = s.closeAndRecover(ctx, closed, way, fakecloud.Fault{
		Name: "held", Op: fakecloud.Create, At: at, Skip: nth - 1, Times: 1,
	})
	if err != nil {
		return o, fmt.Errorf("%s ended %s the effect of create %d, then %s: %w", closed, at, nth, way, err)
	}
	if _, err := s.deployctl(ctx, nextUp...); err != nil {
		return o, err
	}
	end, err := s.reached(ctx)
	o.Counts = end.counts
	return o, errors.Join(err, end.differs(plain))
}

// contest has writers compete for a stack of a seed's own, in a corner of the world's bucket.
func (w *world) contest(ctx context.Context, seed int) error {
	objects, err := bucket.OpenS3(ctx, bucket.S3Options{
		Endpoint: w.S3Endpoint, Region: "us-east-1", Bucket: w.Bucket, Prefix: fmt.Sprintf("contest-%d/", seed),
		AccessKey: w.Keys.S3AccessKey, SecretKey: w.Keys.S3SecretKey,
	})
	if err != nil {
		return err
	}
	return storetest.Fence(ctx, objects, uint64(seed))
}

var nextUp = []string{"up", "--yes", "--skip-preview", "--on-unknown", "fail"}

// closeAndRecover begins an update, ends its workflows while a create is held, and has it recovered. It gives the
// seconds from the end of the workflows to that of the update.
func (s *stage) closeAndRecover(
	ctx context.Context, closed []string, way string, held fakecloud.Fault,
) (took float64, err error) {
	gate, err := s.cloud.SetGate(ctx, held)
	if err != nil {
		return 0, err
	}
	first, err := s.start(nextUp...)
	if err != nil {
		return 0, err
	}
	defer func() { first.leave(err) }()
	if err := gate.Wait(ctx); err != nil {
		return 0, fmt.Errorf("%w; the update says\n%s", err, first.end())
	}
	begin := time.Now()
	for i, workflow := range closed {
		err := s.temporal.TerminateWorkflow(ctx, s.workflow(workflow), "", "by hand")
		var ended *serviceerror.NotFound
		if err != nil && (i == 0 || !errors.As(err, &ended)) { // a Run ends with its Update
			return 0, fmt.Errorf("terminate the %s: %w", workflow, err)
		}
	}
	alive := slices.Equal(closed, []string{"Stack"}) // the update is
	if alive {
		if said, err := s.deployctl(ctx, "stack", "recover"); err == nil || !strings.Contains(said, "is running") {
			return 0, fmt.Errorf("an update that runs was recovered: %s", said)
		}
		if err := gate.Open(ctx); err != nil {
			return 0, err
		}
		return 0, first.wait(ctx)
	}
	args := nextUp
	if way == "stack recover" {
		args = []string{"stack", "recover"}
	}
	next, err := s.start(args...)
	if err != nil {
		return 0, err
	}
	defer func() { next.leave(err) }()
	if err := errors.Join(gate.WaitEmpty(ctx), gate.Open(ctx)); err != nil { // the provider that waits there is ended
		return 0, fmt.Errorf("%w; %s says\n%s", err, way, next.end())
	}
	if err := first.wait(ctx); err == nil || !strings.Contains(first.end(), "ended from outside") {
		return 0, fmt.Errorf("the update that was ended says %w", errors.Join(err, errors.New(first.end())))
	}
	took = time.Since(begin).Seconds()
	if err := next.wait(ctx); err != nil {
		return took, err
	}
	if way == "stack recover" {
		err = s.accounted(ctx)
	}
	return took, err
}

// leave ends the command when its seed has failed, so that it does not wait for a world that is gone.
func (c *command) leave(failed error) {
	if failed != nil {
		_ = c.cmd.Process.Kill() // it may have ended
		<-c.ended
	}
}

// workflow is the id of one of the first update's workflows.
func (s *stage) workflow(kind string) string {
	switch kind {
	case "Run":
		return deployments.RunWorkflowID(s.update())
	case "Update":
		return deployments.UpdateWorkflowID(s.update())
	}
	return deployments.StackWorkflowID(s.update().StackName)
}

// accounted makes sure that the state which recovery made knows of every object in the cloud: it has it, or a pending
// operation that may have made it.
func (s *stage) accounted(ctx context.Context) error {
	objects, err := s.cloud.Objects(ctx, "")
	if err != nil {
		return err
	}
	state, err := s.exported(ctx)
	if err != nil {
		return err
	}
	known := map[string]bool{}
	for _, r := range state.Resources {
		known[string(r.URN)+" "+string(r.ID)] = true
	}
	for _, operation := range state.PendingOperations {
		known[string(operation.Resource.URN)] = true
	}
	for _, o := range objects {
		if !known[o.Owner+" "+o.ID] && !known[o.Owner] {
			return fmt.Errorf("the recovered state has forgotten %s, which is %s", o.Owner, o.ID)
		}
	}
	return nil
}

// closingLine sums the state up.
func closingLine(all []outcome, whole bool) (string, []string) {
	var (
		sum    counts
		times  []float64
		points = map[string]bool{}
		by     = map[string]int{}
		broken []string
	)
	for _, o := range all {
		sum.Duplicates += o.Counts.Duplicates
		sum.Leaks += o.Counts.Leaks
		sum.Commands += o.Counts.Commands
		for _, k := range o.Kills {
			points[k.Victim+" "+k.Moment] = true
			for _, way := range takeovers {
				if strings.HasSuffix(k.Moment, way) && k.Victim != "Stack" {
					by[way]++
					times = append(times, k.Recovery)
				}
			}
		}
	}
	if all := len(closings) * len(takeovers) * len(effectMoments); whole && len(points) < all {
		broken = append(broken, fmt.Sprintf("workflows were ended at %d points of %d", len(points), all))
	}
	if sum != (counts{}) {
		broken = append(broken, "something was made twice, was left over, or had to be typed")
	}
	return fmt.Sprintf("%d runs, as many contests for a head, workflows ended at %d points, recovered %d times by "+
		"the next update and %d by stack recover, %d duplicates, "+
		"%d leaks, %d human commands, recovery p50 %.1f s, p95 %.1f s",
		len(all), len(points), by[takeovers[0]], by[takeovers[1]], sum.Duplicates, sum.Leaks, sum.Commands,
		percentile(times, 0.5), percentile(times, 0.95)), broken
}
