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
	// Recovery is how long it took until a step had finished again: from the kill or, when nothing else could serve,
	// from the victim's return. In seconds.
	Recovery float64 `json:"recovery"`
}

const (
	heartbeat = 30 * time.Second // of workers; what tells that one is gone
	recovered = heartbeat + 3*time.Second
	perRun    = 5 // kills at most
)

// moment is when somebody is killed: while a create is held.
type moment struct {
	at fakecloud.Moment
	// come returns when the moment has come, with what must be done once the victim is dead.
	come func(ctx context.Context, s *stage, g fakecloud.Gate) (after func() error, err error)
}

var moments = map[string]moment{
	"before a create's effect": {fakecloud.Before, held},
	"after a create's effect":  {fakecloud.After, held},
	"in a save":                {fakecloud.After, inSave},
}

// held waits until a create is held.
func held(ctx context.Context, _ *stage, g fakecloud.Gate) (func() error, error) {
	return func() error { return g.Open(context.WithoutCancel(ctx)) }, g.Wait(ctx)
}

// inSave waits until what a create made is being saved, which takes as long as S3 is stopped.
func inSave(ctx context.Context, s *stage, g fakecloud.Gate) (func() error, error) {
	open, err := held(ctx, s, g)
	if err != nil {
		return nil, err
	}
	pid := s.S3.PID()
	if err := errors.Join(s.S3.Signal(syscall.SIGSTOP), open()); err != nil {
		return nil, err
	}
	err = eventually(ctx, "a save is under way", func() (bool, error) { return s.saving(ctx), nil })
	return func() error {
		if s.S3.PID() == pid { // not the victim
			return s.S3.Signal(syscall.SIGCONT)
		}
		return nil
	}, err
}

// victim is somebody who is killed.
type victim struct {
	// strike kills, and gives what brings back, which takes as long as the victim is away; nil when there is nothing to
	// do.
	strike func(ctx context.Context, s *stage, up **command, away time.Duration) (back func() error, err error)
	// needed says that nothing else can serve until it is back; hosts that it carries steps out: those that end after
	// it was killed show that somebody serves only if they have begun after that, too, for results may have been on
	// their way.
	needed, hosts bool
	// lives says that what it has sent goes on, and lasts until it is back.
	lives bool
}

var victims = map[string]victim{
	"the worker": {hosts: true, strike: func(ctx context.Context, s *stage, _ **command,
		away time.Duration) (func() error, error) {
		w, err := s.hosting()
		if err != nil {
			return nil, err
		}
		return bringBack(ctx, away, w), w.Kill()
	}},
	"both workers": {needed: true, hosts: true, strike: func(ctx context.Context, s *stage, _ **command,
		away time.Duration) (func() error, error) {
		return bringBack(ctx, away, s.Workers...), errors.Join(s.Workers[0].Kill(), s.Workers[1].Kill())
	}},
	"the worker, stopped for a minute": {hosts: true, lives: true,
		strike: func(ctx context.Context, s *stage, _ **command, _ time.Duration) (func() error, error) {
			w, err := s.hosting()
			if err != nil {
				return nil, err
			}
			pid := w.PID()
			s.asleep = w
			s.later(ctx, time.Minute, func() error {
				if w.PID() != pid { // it was killed meanwhile
					return nil
				}
				return w.Signal(syscall.SIGCONT)
			})
			// while what it has sent is answered
			return func() error { return wait(ctx, 2*time.Second) }, w.Signal(syscall.SIGSTOP)
		}},
	"the program": {strike: func(ctx context.Context, s *stage, _ **command, _ time.Duration) (func() error, error) {
		return nil, s.killChildren(ctx, s.programs()...)
	}},
	"the provider": {hosts: true, strike: func(ctx context.Context, s *stage, _ **command, _ time.Duration) (func() error,
		error) {
		return nil, s.killChildren(ctx, "pulumi-resource-fake")
	}},
	"the API's server": {strike: func(ctx context.Context, s *stage, _ **command, away time.Duration) (func() error,
		error) {
		return bringBack(ctx, away, s.Serve), s.Serve.Kill()
	}},
	"Temporal": {needed: true, strike: func(ctx context.Context, s *stage, _ **command,
		away time.Duration) (func() error, error) {
		return bringBack(ctx, away, s.Temporal), s.Temporal.Kill()
	}},
	"the S3 server": {needed: true, strike: func(ctx context.Context, s *stage, _ **command,
		away time.Duration) (func() error, error) {
		return bringBack(ctx, away, s.S3), s.S3.Kill()
	}},
	"the S3 server, away for 30 s": {needed: true, strike: func(ctx context.Context, s *stage, _ **command,
		_ time.Duration) (func() error, error) {
		return bringBack(ctx, 30*time.Second, s.S3), s.S3.Kill()
	}},
	"the client": {strike: func(_ context.Context, s *stage, up **command, _ time.Duration) (func() error, error) {
		err := (*up).cmd.Process.Kill()
		if err == nil {
			<-(*up).ended
		}
		return func() (err error) { *up, err = s.start("attach"); return err }, err
	}},
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
	r := rand.New(rand.NewPCG(uint64(seed), 1))
	places, planned := planKills(r, seed)
	armed := 0
	arm := func(upTo int) (err error) {
		for ; err == nil && armed < min(upTo, len(places)); armed++ {
			err = s.arm(ctx, places[armed], moments[planned[armed].Moment].at)
		}
		return err
	}
	if err := arm(1); err != nil {
		return o, err
	}
	up, err := s.start("up", "--yes", "--skip-preview", "--on-unknown", "fail")
	if err != nil {
		return o, err
	}
	for i, k := range planned {
		ahead := i + 2 // the update does not wait for the next kill
		if victims[k.Victim].lives {
			ahead = i + 1 // else what is held next might be its own
		}
		if err := arm(ahead); err != nil {
			return o, err
		}
		away := time.Second + time.Duration(r.IntN(2000))*time.Millisecond
		err := s.kill(ctx, &k, &up, places[i], away, func() error { return arm(i + 2) })
		if i > 0 && errors.Is(err, errOver) {
			break // whoever was killed before was away for longer than the rest took; the report counts what was
		}
		if err != nil {
			return o, fmt.Errorf("%s, %s, at create %d: %w", k.Victim, k.Moment, places[i], err)
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

// planKills chooses the creates around which something is killed, and what is killed at which moment.
func planKills(r *rand.Rand, seed int) (places []int, planned []killed) {
	for range 1 + (seed-1)%perRun {
		places = append(places, 1+r.IntN(programSize*165/200)) // some are in progress while a gate is set
	}
	slices.Sort(places)
	places = slices.Compact(places)
	for i := range places {
		planned = append(planned, killed{Moment: pick(r, moments, seed+i, i), Victim: pick(r, victims, seed, i)})
	}
	return places, planned
}

// pick makes sure, with the first of a seed, that every one has its turn; the others are by chance.
func pick[T any](r *rand.Rand, from map[string]T, turn, nth int) string {
	names := slices.Sorted(maps.Keys(from))
	if nth == 0 {
		return names[turn%len(names)]
	}
	return names[r.IntN(len(names))]
}

// kill waits for the moment, kills, brings back, prepares the next kill, and waits for the next step to finish.
func (s *stage) kill(
	ctx context.Context, k *killed, up **command, nth int, away time.Duration, prepare func() error,
) error {
	var after func() error
	err := (*up).during(ctx, func(ctx context.Context) (err error) {
		after, err = moments[k.Moment].come(ctx, s, s.cloud.Gate(gateName(nth)))
		return err
	})
	if err != nil {
		return err
	}
	v := victims[k.Victim]
	back, err := v.strike(ctx, s, up, away)
	if err != nil {
		return err
	}
	begin, begun := time.Now(), time.Time{}
	if v.hosts {
		begun = begin
	}
	done := make(chan error, 1)
	go func() { done <- after() }() // the cloud does not wait until the victim is back
	if back != nil {
		err = back()
	}
	if v.needed {
		begin = time.Now()
	}
	if err := errors.Join(err, <-done, prepare()); err != nil {
		return err
	}
	at, err := s.nextStep(ctx, begun, begin)
	k.Recovery = max(0, at.Sub(begin).Seconds())
	return err
}

func gateName(nth int) string { return fmt.Sprintf("at-%d", nth) }

// arm sets the gate for the nth create.
func (s *stage) arm(ctx context.Context, nth int, at fakecloud.Moment) error {
	made, err := s.cloud.Objects(ctx, "")
	if err != nil {
		return err
	}
	_, err = s.cloud.SetGate(ctx, fakecloud.Fault{
		Name: gateName(nth), Op: fakecloud.Create, At: at, Skip: max(0, nth-1-len(made)), Times: 1,
	})
	return err
}

// gate waits for the nth create, and gives what lets it go on.
func (s *stage) gate(ctx context.Context, nth int, at fakecloud.Moment) (func() error, error) {
	if err := s.arm(ctx, nth, at); err != nil {
		return nil, err
	}
	return held(ctx, s, s.cloud.Gate(gateName(nth)))
}

// hosting is the worker that hosts the update; one that sleeps only if no other does.
func (s *stage) hosting() (*cluster.Part, error) {
	var host *cluster.Part
	for _, w := range s.Workers {
		if pid := w.PID(); pid != 0 && (host == nil || w != s.asleep) {
			below, err := cluster.Below(pid, "pulumi-resource-fake")
			if err != nil {
				return nil, err
			}
			if len(below) > 0 {
				host = w
			}
		}
	}
	if host == nil {
		return nil, errors.New("no worker hosts the update")
	}
	return host, nil
}

// programs are what the processes of a program are called, the inner ones first.
func (s *stage) programs() []string {
	return []string{"pulumi-language-yaml", "@pulumi/pulumi/cmd/run"}
}

// killChildren kills the processes of a name below the workers. It waits for one: whoever was killed just before may
// still be starting again.
func (s *stage) killChildren(ctx context.Context, names ...string) error {
	return eventually(ctx, "there is a process called "+strings.Join(names, " or "), func() (bool, error) {
		killed := false
		for _, w := range s.Workers {
			for _, name := range names {
				pids, err := cluster.Below(w.PID(), name)
				if err != nil {
					return false, err
				}
				for _, pid := range pids {
					killed = syscall.Kill(pid, syscall.SIGKILL) == nil || killed
				}
			}
		}
		return killed, nil
	})
}

// bringBack gives what starts parts again after a while.
func bringBack(ctx context.Context, away time.Duration, parts ...*cluster.Part) func() error {
	return func() error {
		err := wait(ctx, away)
		for _, p := range parts {
			err = errors.Join(err, p.Start())
		}
		return err
	}
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(d):
		return nil
	}
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
			len(all), n, len(points), sum, percentile(times, 0.5), p95, recovered.Seconds()),
		append(broken, sum.broken()...)
}

// percentile is by nearest rank; of nothing it is 0.
func percentile(of []float64, p float64) float64 {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(0, int(math.Ceil(p*float64(len(sorted))))-1)]
}
