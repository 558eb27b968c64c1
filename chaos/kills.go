package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// killed is a kill that was made.
type killed struct {
	Moment string `json:"moment"`
	Victim string `json:"victim"`
	// Recovery is how long it took until a step had finished again: from the kill or, when nothing else could serve, from the
	// victim's return. In seconds.
	Recovery float64 `json:"recovery"`
}

const (
	heartbeat = 30 * time.Second // of workers; what tells that one is gone
	recovered = heartbeat + 3*time.Second
	perRun    = 5 // kills at most
)

// moments are when somebody is killed: each returns when it has come, with what must be done once the victim is dead.
var moments = map[string]func(ctx context.Context, s *stage, nth int) (after func() error, err error){
	"before a create's effect": func(ctx context.Context, s *stage, nth int) (func() error, error) {
		return s.gate(ctx, nth, fakecloud.Before)
	},
	"after a create's effect": func(ctx context.Context, s *stage, nth int) (func() error, error) {
		return s.gate(ctx, nth, fakecloud.After)
	},
	"in a save": func(ctx context.Context, s *stage, nth int) (func() error, error) {
		open, err := s.gate(ctx, nth, fakecloud.After)
		if err != nil {
			return nil, err
		}
		pid := s.S3.PID()
		if err := errors.Join(s.S3.Signal(syscall.SIGSTOP), open()); err != nil {
			return nil, err
		}
		err = eventually(ctx, "a save is under way", func() (bool, error) { return s.pending(ctx, "Save"), nil })
		return func() error {
			if s.S3.PID() == pid { // not the victim
				return s.S3.Signal(syscall.SIGCONT)
			}
			return nil
		}, err
	},
}

// victims are what is killed, and brought back: each returns when nothing else could have served until then.
var victims = map[string]func(ctx context.Context, s *stage, up **command, away time.Duration) (back time.Time, err error){
	"the worker": func(ctx context.Context, s *stage, _ **command, away time.Duration) (time.Time, error) {
		w, err := s.hosting()
		if err != nil {
			return time.Time{}, err
		}
		if err := w.Kill(); err != nil {
			return time.Time{}, err
		}
		return time.Time{}, bringBack(ctx, away, w)
	},
	"both workers": func(ctx context.Context, s *stage, _ **command, away time.Duration) (time.Time, error) {
		if err := errors.Join(s.Workers[0].Kill(), s.Workers[1].Kill()); err != nil {
			return time.Time{}, err
		}
		err := bringBack(ctx, away, s.Workers...)
		return time.Now(), err
	},
	"the worker, stopped for a minute": func(ctx context.Context, s *stage, _ **command, _ time.Duration) (time.Time, error) {
		w, err := s.hosting()
		if err != nil {
			return time.Time{}, err
		}
		if err := w.Signal(syscall.SIGSTOP); err != nil {
			return time.Time{}, err
		}
		s.later(ctx, time.Minute, func() error { return w.Signal(syscall.SIGCONT) })
		return time.Time{}, nil
	},
	"the program": func(_ context.Context, s *stage, _ **command, _ time.Duration) (time.Time, error) {
		return s.killChildren(s.programs()...)
	},
	"the provider": func(_ context.Context, s *stage, _ **command, _ time.Duration) (time.Time, error) {
		return s.killChildren("pulumi-resource-fake")
	},
	"the API's server": func(ctx context.Context, s *stage, _ **command, away time.Duration) (time.Time, error) {
		return s.killPart(ctx, s.Serve, away)
	},
	"Temporal": func(ctx context.Context, s *stage, _ **command, away time.Duration) (time.Time, error) {
		return s.killPart(ctx, s.Temporal, away)
	},
	"the S3 server": func(ctx context.Context, s *stage, _ **command, away time.Duration) (time.Time, error) {
		return s.killPart(ctx, s.S3, away)
	},
	"the S3 server, away for 30 s": func(ctx context.Context, s *stage, _ **command, _ time.Duration) (time.Time, error) {
		return s.killPart(ctx, s.S3, 30*time.Second)
	},
	"the client": func(_ context.Context, s *stage, up **command, _ time.Duration) (time.Time, error) {
		if err := (*up).cmd.Process.Kill(); err != nil {
			return time.Time{}, err
		}
		<-(*up).ended
		again, err := s.start("attach")
		*up = again
		return time.Time{}, err
	},
}

// killing plays a seed of the kills.
func killing(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v := variants()[seed%len(variants())]
	plain, err := v.undisturbed(ctx, w)
	if err != nil {
		return o, fmt.Errorf("undisturbed: %w", err)
	}
	s, err := w.newStage(ctx, fmt.Sprintf("kills-%d", seed), v.language, v.nodes)
	if err != nil {
		return o, err
	}
	defer s.close()
	up, err := s.start("up", "--yes", "--skip-preview", "--on-unknown", "fail")
	if err != nil {
		return o, err
	}
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	for i, nth := range s.places(r, seed) {
		k := killed{Moment: pick(r, moments, seed+i, i), Victim: pick(r, victims, seed, i)}
		if err := s.kill(ctx, &k, &up, nth, time.Second+time.Duration(r.IntN(2000))*time.Millisecond); err != nil {
			return o, fmt.Errorf("%s, %s, at create %d: %w", k.Victim, k.Moment, nth, err)
		}
		o.Kills = append(o.Kills, k)
	}
	if err := up.wait(ctx); err != nil {
		return o, err
	}
	if err := s.settled(ctx); err != nil {
		return o, err
	}
	end, err := s.reached(ctx)
	o.Counts = end.counts
	return o, errors.Join(err, end.differs(plain))
}

// places chooses before or after which creates somebody is killed.
func (s *stage) places(r *rand.Rand, seed int) []int {
	all := make([]int, 1+(seed-1)%perRun)
	for i := range all {
		all[i] = 1 + r.IntN(185)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// pick makes sure, with the first of a seed, that every one has its turn; the others are by chance.
func pick[T any](r *rand.Rand, from map[string]T, turn, nth int) string {
	names := slices.Sorted(maps.Keys(from))
	if nth == 0 {
		return names[turn%len(names)]
	}
	return names[r.IntN(len(names))]
}

// kill waits for the moment, kills and brings back, and waits for the next step to finish.
func (s *stage) kill(ctx context.Context, k *killed, up **command, nth int, away time.Duration) error {
	var after func() error
	err := (*up).during(ctx, func(ctx context.Context) (err error) {
		after, err = moments[k.Moment](ctx, s, nth)
		return err
	})
	if err != nil {
		return err
	}
	begin := time.Now()
	done := make(chan error, 1)
	go func() { done <- after() }() // the cloud does not wait for the victim
	if back, err := victims[k.Victim](ctx, s, up, away); err != nil {
		return err
	} else if !back.IsZero() {
		begin = back
	}
	if err := <-done; err != nil {
		return err
	}
	at, err := s.nextStep(ctx, begin)
	k.Recovery = max(0, at.Sub(begin).Seconds())
	return err
}

// gate waits for the nth create, and gives what lets it go on.
func (s *stage) gate(ctx context.Context, nth int, at fakecloud.Moment) (func() error, error) {
	made, err := s.cloud.Objects(ctx, "")
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("at-%d", nth)
	g, err := s.cloud.SetGate(ctx, fakecloud.Fault{
		Name: name, Op: fakecloud.Create, At: at, Skip: max(0, nth-1-len(made)), Times: 1,
	})
	if err != nil {
		return nil, err
	}
	return func() error { return g.Open(context.WithoutCancel(ctx)) }, g.Wait(ctx)
}

// hosting is the worker that hosts the update.
func (s *stage) hosting() (*cluster.Part, error) {
	for _, w := range s.Workers {
		if pid := w.PID(); pid != 0 {
			if below, err := cluster.Below(pid, "pulumi-resource-fake"); err != nil || len(below) > 0 {
				return w, err
			}
		}
	}
	return nil, errors.New("no worker hosts the update")
}

// programs are what the processes of a program are called, the inner ones first.
func (s *stage) programs() []string {
	return []string{"pulumi-language-yaml", "@pulumi/pulumi/cmd/run"}
}

// killChildren kills the processes of a name below the workers.
func (s *stage) killChildren(names ...string) (time.Time, error) {
	killed := 0
	for _, w := range s.Workers {
		for _, name := range names {
			pids, err := cluster.Below(w.PID(), name)
			if err != nil {
				return time.Time{}, err
			}
			for _, pid := range pids {
				if syscall.Kill(pid, syscall.SIGKILL) == nil {
					killed++
				}
			}
		}
	}
	if killed == 0 {
		return time.Time{}, fmt.Errorf("there is no process called %s", strings.Join(names, " or "))
	}
	return time.Time{}, nil
}

func (s *stage) killPart(ctx context.Context, p *cluster.Part, away time.Duration) (time.Time, error) {
	if err := p.Kill(); err != nil {
		return time.Time{}, err
	}
	err := bringBack(ctx, away, p)
	if p == s.Serve {
		return time.Time{}, err
	}
	return time.Now(), err
}

// bringBack starts parts again after a while.
func bringBack(ctx context.Context, away time.Duration, parts ...*cluster.Part) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(away):
	}
	var err error
	for _, p := range parts {
		err = errors.Join(err, p.Start())
	}
	return err
}

// killingLine sums the kills up.
func killingLine(all []outcome, whole bool) (string, []string) {
	var (
		times  []float64
		points = map[string]int{}
		broken []string
		n      int
	)
	_, sum := totals(all)
	for _, o := range all {
		for _, k := range o.Kills {
			n++
			points[k.Victim+" "+k.Moment]++
			times = append(times, k.Recovery)
		}
	}
	if whole {
		for victim := range victims {
			for moment := range moments {
				if points[victim+" "+moment] == 0 {
					broken = append(broken, "never killed: "+victim+" "+moment)
				}
			}
		}
	}
	slices.Sort(broken)
	p95 := percentile(times, 0.95)
	if p95 > recovered.Seconds() {
		broken = append(broken, fmt.Sprintf("recovery takes %.1f s", p95))
	}
	return fmt.Sprintf("%d runs, %d kills at %d points, %s, recovery p50 %.1f s, p95 %.1f s (at most %.0f)",
		len(all), n, len(points), sum, percentile(times, 0.5), p95, recovered.Seconds()), append(broken, sum.broken()...)
}

// percentile is by nearest rank; of nothing it is 0.
func percentile(of []float64, p float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}
