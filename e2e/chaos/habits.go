package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// habitNodes are the resources of a program whose provider has the habits of those that people use.
const habitNodes = 60

// withoutList are the settle rules for a provider that lists nothing.
const withoutList = `{"` + named + `": {"read": "${name}"}, "` + auto + `": {"read": "${name}"}, "` + tagged + `":
	{"invoke": {"function": "fake:index:search", "args": {"kind": "tagged", "mark": "${settings.mark}"},
		"ids": "things[*].arn", "after": ":"}}, "` + filed + `":
	{"invoke": {"function": "fake:index:search", "args": {"mark": "${settings.mark}"}, "ids": "things[*].arn",
		"after": ":"}}}`

// habitual plays a seed with a provider that behaves as those that people use: all of its errors are texts, it repeats
// calls itself, keeps records of its own, and lists nothing. Odd seeds have a flaky cloud, even ones lose answers of
// creates. An update may fail, and is repeated until it succeeds; nothing else is typed.
func habitual(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	nodes := graph(rand.New(rand.NewPCG(uint64(seed), 5)), habitNodes, named, auto, tagged, filed)
	for i := range nodes {
		nodes[i].Properties["document"] = fmt.Sprintf(`{"Version": "1", "Statement": [%d], "Action": {"b": 1, "a": 2}}`, i)
	}
	s, err := w.newStage(ctx, fmt.Sprintf("habits-%d", seed), "yaml", nodes)
	if err != nil {
		return o, err
	}
	defer s.close()
	for _, set := range [][]string{
		{"fake:errors", manners[seed/2%len(manners)]}, {"fake:habits", "true"}, {"deployctl:settle", withoutList},
	} {
		if _, err := s.deployctl(ctx, "config", "set", set[0], set[1]); err != nil {
			return o, err
		}
	}
	d := &doubtfulStage{stage: s, nodes: nodes, tally: map[string]int{}}
	o.Tally = d.tally
	for _, f := range habitFaults(seed, nodes) {
		if err := s.cloud.Set(ctx, f); err != nil {
			return o, err
		}
	}
	if err := d.until(ctx, "up"); err != nil {
		return o, err
	}
	if o.Counts, err = d.count(ctx); err != nil || o.Counts != (counts{}) {
		return o, errors.Join(err, errors.New("the cloud is not as the state says: "+o.Counts.String()))
	}
	if err := d.quiet(ctx); err != nil {
		return o, err
	}
	for _, f := range habitFaults(seed, nodes) {
		if err := s.cloud.Set(ctx, f); err != nil {
			return o, err
		}
	}
	if err := d.until(ctx, "destroy"); err != nil {
		return o, err
	}
	o.Counts, err = d.count(ctx)
	return o, err
}

// habitFaults are what goes wrong in a seed.
func habitFaults(seed int, nodes []node) (all []fakecloud.Fault) {
	if seed%2 == 1 {
		return []fakecloud.Fault{
			{Name: "overloaded", Do: fakecloud.Fail, Status: http.StatusServiceUnavailable, RetryAfter: 1, Chance: overloaded,
				Seed: uint64(seed)},
			{Name: "throttled", Do: fakecloud.Fail, Status: http.StatusTooManyRequests, Chance: throttled,
				Seed: uint64(seed)},
		}
	}
	for i, n := range nodes {
		if i%4 == 0 {
			all = append(all, fakecloud.Fault{Name: n.Name, Do: fakecloud.Crash, Op: fakecloud.Create, Object: n.Name,
				At: effectMoments[i/4%2], Times: 1})
		}
	}
	return all
}

// quiet makes sure that, on a cloud where nothing goes wrong any more, an update finds nothing to do.
func (d *doubtfulStage) quiet(ctx context.Context) error {
	if err := d.struck(ctx); err != nil {
		return err
	}
	_, err := d.deployctl(ctx, "preview", "--expect-no-changes")
	return err
}

// until repeats an update until it succeeds.
func (d *doubtfulStage) until(ctx context.Context, verb string) error {
	var said string
	for range tries {
		c, err := d.start(verb, "--yes", "--skip-preview", "--on-unknown", "fail")
		if err == nil {
			err = c.ends(ctx)
		}
		if err != nil {
			return err
		}
		if d.tally["updates"]++; c.err == nil {
			return d.struck(ctx)
		}
		if said = c.text(); strings.Contains(said, "deployctl resolve") {
			return fmt.Errorf("a person is asked:\n%s", c.end())
		}
	}
	return fmt.Errorf("%d times in vain: %s says\n%s", tries, verb, said[max(0, len(said)-3000):])
}

// habitualLine sums the habits up.
func habitualLine(all []outcome, whole bool) (string, []string) {
	tally, sum := totals(all)
	failed := 0
	for _, op := range []fakecloud.Op{fakecloud.Create, fakecloud.Update, fakecloud.Delete, ""} {
		failed += tally[string(op)]
	}
	broken := sum.broken()
	if whole && failed < 5*len(all) {
		broken = append(broken, "too little went wrong")
	}
	return fmt.Sprintf("%d calls went wrong, %d of them after the effect, in %d updates of %d stacks; %s",
		failed, tally["after the effect"], tally["updates"], len(all), sum), broken
}
