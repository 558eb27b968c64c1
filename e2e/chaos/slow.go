package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	enumspb "go.temporal.io/api/enums/v1"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
)

const (
	// A slow part runs for one part in slowShare of every period, for slowFor.
	slowShare, slowFor = 20, 2 * time.Minute
	// caughtUp is how long after that an update may still take.
	caughtUp = 3 * time.Minute
	// creation is how long the cloud takes for a create, so that some are under way whenever somebody becomes slow.
	creation = 3 * time.Second
	// slowNodes are the resources of an update.
	slowNodes = 80
)

// slowPeriods are how often a slow part gets its share: little by little, or so rarely that Temporal does not hear it
// for longer than its heartbeat timeout.
var slowPeriods = []time.Duration{time.Second, 10 * time.Second, 40 * time.Second}

// slows are who is slow, with their plugins and programs.
var slows = map[string]func(s *stage, host *cluster.Part) []*cluster.Part{
	"the host":     func(_ *stage, host *cluster.Part) []*cluster.Part { return []*cluster.Part{host} },
	"both workers": func(s *stage, _ *cluster.Part) []*cluster.Part { return s.Workers },
	"Temporal":     func(s *stage, _ *cluster.Part) []*cluster.Part { return []*cluster.Part{s.Temporal} },
	"the host and Temporal": func(s *stage, host *cluster.Part) []*cluster.Part {
		return []*cluster.Part{host, s.Temporal}
	},
	"every part": func(s *stage, _ *cluster.Part) []*cluster.Part { return s.Parts() },
}

// slowProgram has resources of every kind, also of the one that nobody can find again.
var slowProgram = sync.OnceValue(func() *variant {
	return &variant{name: "undisturbed-slow", language: "yaml",
		nodes: graph(rand.New(rand.NewPCG(1, 3)), slowNodes, named, auto, tagged, server)}
})

// slowing plays a seed in which parts of the service are slow for two minutes during an update, and lose nothing.
func slowing(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	plain, err := slowProgram().undisturbed(ctx, w)
	if err != nil {
		return o, fmt.Errorf("undisturbed: %w", err)
	}
	s, err := w.newStage(ctx, fmt.Sprintf("slow-%d", seed), "yaml", slowProgram().nodes)
	if err != nil {
		return o, err
	}
	defer s.close()
	if err := s.cloud.Set(ctx, fakecloud.Fault{Name: "takes a while", Do: fakecloud.Delay, Op: fakecloud.Create,
		DelayMS: int(creation.Milliseconds()),
		At:      []fakecloud.Moment{fakecloud.Before, fakecloud.After}[seed%2]}); err != nil {
		return o, err
	}
	up, err := s.start("up", "--yes", "--skip-preview", "--on-unknown", "fail")
	if err != nil {
		return o, err
	}
	r := rand.New(rand.NewPCG(uint64(seed), 4))
	who, after := pick(r, slows, seed, 0), 1+r.IntN(slowNodes*3/4)
	err = up.during(ctx, func(ctx context.Context) error {
		return eventually(ctx, fmt.Sprintf("%d resources are there", after), func() (bool, error) {
			made, err := s.cloud.Objects(ctx, "")
			return len(made) >= after, err
		})
	})
	if err != nil {
		return o, err
	}
	host, err := s.hosting()
	if err != nil {
		return o, err
	}
	begin := time.Now()
	if err := slowDown(ctx, slowPeriods[seed%len(slowPeriods)], slows[who](s, host)); err != nil {
		return o, err
	}
	waited := up.wait(ctx)
	o.Times = []float64{max(0, time.Since(begin)-slowFor).Seconds()}
	o.Tally = map[string]int{who: 1, slowPeriods[seed%len(slowPeriods)].String(): 1,
		"unknown": strings.Count(up.text(), "it is not known whether")}
	if waited != nil {
		return o, fmt.Errorf("%s: %w", who, waited)
	}
	end, err := s.reached(ctx)
	o.Counts = end.counts
	return o, errors.Join(err, end.differs(plain), s.silences(ctx, o.Tally))
}

// slowDown lets parts and everything below them run for a share of every period only.
func slowDown(ctx context.Context, period time.Duration, parts []*cluster.Part) (err error) {
	slice := period / slowShare
	var stopped []int
	wake := func() {
		for _, pid := range stopped {
			_ = syscall.Kill(pid, syscall.SIGCONT) // some have ended
		}
		stopped = nil
	}
	defer wake()
	for end := time.Now().Add(slowFor); time.Now().Before(end); {
		wake()
		if err := wait(ctx, slice); err != nil {
			return err
		}
		for _, p := range parts {
			below, err := cluster.Below(p.PID(), "")
			if err != nil {
				return err
			}
			for _, pid := range append([]int{p.PID()}, below...) {
				if pid != 0 && syscall.Kill(pid, syscall.SIGSTOP) == nil {
					stopped = append(stopped, pid)
				}
			}
		}
		if err := wait(ctx, period-slice); err != nil {
			return err
		}
	}
	return nil
}

// silences counts the attempts that fell silent during an update, and how often their workers were asked about them.
func (s *stage) silences(ctx context.Context, tally map[string]int) error {
	events := s.temporal.GetWorkflowHistory(ctx, deployments.RunWorkflowID(s.update()), "", false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		e, err := events.Next()
		if err != nil {
			return err
		}
		if e.GetActivityTaskTimedOutEventAttributes() != nil {
			tally["silent"]++
		}
		if e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == deployments.ActivityAskFormerWorker {
			tally["asked"]++
		}
	}
	return nil
}

// slowingLine sums the slow parts up.
func slowingLine(all []outcome, whole bool) (string, []string) {
	sum, counts := totals(all)
	var late []float64
	for _, o := range all {
		late = append(late, o.Times...)
	}
	broken := counts.broken()
	if sum["unknown"] > 0 {
		broken = append(broken, fmt.Sprintf("of %d resources it is not known whether they were changed", sum["unknown"]))
	}
	if worst := percentile(late, 1); worst > caughtUp.Seconds() {
		broken = append(broken, fmt.Sprintf("an update took %.0f s longer", worst))
	}
	if whole {
		for who := range slows {
			if sum[who] == 0 {
				broken = append(broken, who+" never was slow")
			}
		}
		if sum["silent"] == 0 {
			broken = append(broken, "nobody was slow enough to fall silent")
		}
	}
	slices.Sort(broken)
	return fmt.Sprintf("%d updates, %d attempts fell silent, workers were asked about them %d times, %d undecidable, %s, "+
		"done "+
		"%.0f s after everybody was fast again, worst %.0f s (at most %.0f)", len(all), sum["silent"], sum["asked"],
		sum["unknown"], counts, percentile(late, 0.5), percentile(late, 1), caughtUp.Seconds()), broken
}
