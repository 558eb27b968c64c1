package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// A seed of the creates loses the answers of so many creates of one kind, and there are foreign objects in the place of
// some.
const (
	lostPerSeed    = 20
	foreignPerSeed = 4
)

// lostKinds are what a seed loses creates of. Only of a Server can nobody tell whether it was made.
var lostKinds = []string{named, auto, tagged, server}

// losing plays a seed of the creates that may have happened.
func losing(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	v := losses()[(seed-1)%len(lostKinds)]
	plain, err := v.undisturbed(ctx, w)
	if err != nil {
		return o, fmt.Errorf("undisturbed: %w", err)
	}
	s, err := w.newStage(ctx, fmt.Sprintf("creates-%d", seed), v.language, v.nodes)
	if err != nil {
		return o, err
	}
	defer s.close()
	l := &losingStage{stage: s, kind: v.nodes[0].Type, foreign: map[string]fakecloud.Object{}}
	if err := l.prepare(ctx); err != nil {
		return o, err
	}
	// Where nobody can tell, every other seed waits for an answer, and the others leave it to the next update.
	if round := (seed - 1) / len(lostKinds); l.kind != server || round%2 == 0 {
		if err := l.leaves(ctx); err != nil {
			return o, err
		}
	}
	asked, err := l.answers(ctx)
	if err != nil {
		return o, err
	}
	end, err := s.reached(ctx)
	o.Counts = end.counts
	o.Tally = map[string]int{
		"lost": lostPerSeed, "lost " + l.kind: lostPerSeed, "asked": asked, "foreign": l.put,
		"by itself": lostPerSeed - asked,
	}
	return o, errors.Join(err, end.differs(plain), l.untouched(ctx))
}

// losses are the programs: resources of one kind whose creates are lost, what depends on each, and what depends on
// none.
var losses = sync.OnceValue(func() (all []*variant) {
	for _, kind := range lostKinds {
		v := &variant{name: "undisturbed-creates-" + strings.ToLower(kind[strings.LastIndex(kind, ":")+1:]),
			language: "yaml"}
		for i := range lostPerSeed {
			lost := node{Name: fmt.Sprintf("lost-%02d", i), Type: kind, Properties: map[string]any{}}
			switch kind {
			case named:
				lost.Properties["name"] = "the-" + lost.Name
			case tagged:
				lost.Properties["settings"] = map[string]any{"mark": "the-" + lost.Name}
			}
			v.nodes = append(v.nodes, lost)
		}
		for i := range lostPerSeed {
			v.nodes = append(v.nodes,
				node{Name: fmt.Sprintf("after-%02d", i), Type: auto, Properties: map[string]any{},
					Needs: []string{v.nodes[i].Name}},
				node{Name: fmt.Sprintf("apart-%02d", i), Type: auto, Properties: map[string]any{}})
		}
		all = append(all, v)
	}
	return all
})

type losingStage struct {
	*stage
	kind    string
	foreign map[string]fakecloud.Object // by the resource that would like its name
	put     int                         // how many there were
}

// prepare has the connection break once in each of the creates, before or after the effect, and puts foreign objects.
func (l *losingStage) prepare(ctx context.Context) error {
	// what is lost is the answer: a look before the create would refuse what is foreign
	if _, err := l.deployctl(ctx, "config", "set", "deployctl:look", "false"); err != nil {
		return err
	}
	for i := range lostPerSeed {
		name := fmt.Sprintf("lost-%02d", i)
		at := []fakecloud.Moment{fakecloud.Before, fakecloud.After}[i%2]
		if i < foreignPerSeed && (l.kind == named || l.kind == tagged) {
			o := fakecloud.Object{Kind: "named", ID: "the-" + name, Name: "the-" + name,
				Properties: map[string]any{"size": 7.0}}
			if l.kind == tagged {
				o = fakecloud.Object{Kind: "tagged", ID: "foreign-" + name,
					Properties: map[string]any{"settings": map[string]any{"mark": "the-" + name}}}
			} else {
				at = fakecloud.Before // the effect would be a refusal
			}
			if err := l.cloud.Put(ctx, o); err != nil {
				return err
			}
			l.foreign[name] = o
			l.put++
		}
		if err := l.cloud.Set(ctx, fakecloud.Fault{Name: name, Do: fakecloud.Crash, Op: fakecloud.Create, Object: name,
			At: at, Times: 1}); err != nil {
			return err
		}
	}
	return nil
}

// undecidable are the resources of which nobody can tell whether they were made.
func (l *losingStage) undecidable() []string {
	if l.kind != server {
		return slices.Sorted(maps.Keys(l.foreign))
	}
	var all []string
	for i := range lostPerSeed {
		all = append(all, fmt.Sprintf("lost-%02d", i))
	}
	return all
}

// leaves runs an update that leaves what nobody can tell to the next one, and everything else done.
func (l *losingStage) leaves(ctx context.Context) error {
	open := l.undecidable()
	up, err := l.start("up", "--yes", "--skip-preview", "--on-unknown", "fail")
	if err != nil {
		return err
	}
	if err := up.wait(ctx); (err != nil) != (len(open) > 0) {
		return fmt.Errorf("%d creates are undecidable, but the update: %w", len(open), err)
	}
	if err := l.untouched(ctx); err != nil {
		return err
	}
	if err := l.struck(ctx); err != nil {
		return err
	}
	state, err := l.exported(ctx)
	if err != nil {
		return err
	}
	var pending []string
	for _, p := range state.PendingOperations {
		pending = append(pending, p.Resource.URN.Name())
	}
	slices.Sort(pending)
	if !slices.Equal(pending, open) {
		return fmt.Errorf("pending are %v, undecidable %v", pending, open)
	}
	if l.kind == named { // its owner has moved away
		for _, name := range open {
			o := l.foreign[name]
			if err := l.cloud.Remove(ctx, o.Kind, o.ID); err != nil {
				return err
			}
		}
		clear(l.foreign)
	}
	return l.independent(ctx, len(open))
}

var question = regexp.MustCompile(`deployctl resolve '([^']+)' --created`)

// answers runs an update that waits for answers, and gives them once everything else is done.
func (l *losingStage) answers(ctx context.Context) (asked int, err error) {
	open := l.undecidable()
	up, err := l.start("up", "--yes", "--skip-preview", "--on-unknown", "wait")
	if err != nil {
		return 0, err
	}
	answered := map[string]bool{}
	err = eventually(ctx, "an answer is asked for", func() (bool, error) {
		for _, found := range question.FindAllStringSubmatch(up.text(), -1) {
			answered[found[1]] = false
		}
		return len(answered) >= len(open), nil
	})
	if err != nil {
		return 0, err
	}
	if err := l.independent(ctx, len(open)); err != nil {
		return 0, err
	}
	objects, err := l.cloud.Objects(ctx, "")
	if err != nil {
		return 0, err
	}
	for urn := range answered {
		answer := []string{"resolve", urn, "--absent"}
		for _, o := range objects {
			if o.Owner == urn {
				answer = []string{"resolve", urn, "--created", o.ID}
			}
		}
		if _, err := l.deployctl(ctx, answer...); err != nil {
			return 0, err
		}
	}
	if err := up.wait(ctx); err != nil {
		return 0, err
	}
	return len(answered), l.struck(ctx)
}

// independent waits until all is there that does not depend on what is open.
func (l *losingStage) independent(ctx context.Context, open int) error {
	want := 2*lostPerSeed - open
	return eventually(ctx, "what is independent is there", func() (bool, error) {
		objects, err := l.cloud.Objects(ctx, "auto")
		n := 0
		for _, o := range objects {
			if strings.Contains(o.Owner, "::after-") || strings.Contains(o.Owner, "::apart-") {
				n++
			}
		}
		return n >= want, err
	})
}

// untouched makes sure that what is not ours is as it was.
func (l *losingStage) untouched(ctx context.Context) error {
	objects, err := l.cloud.Objects(ctx, "")
	if err != nil {
		return err
	}
	for name, o := range l.foreign {
		if !slices.ContainsFunc(objects, func(now fakecloud.Object) bool {
			return now.ID == o.ID && now.Foreign && now.Owner == "" &&
				fmt.Sprint(now.Properties) == fmt.Sprint(o.Properties)
		}) {
			return fmt.Errorf("a foreign object in the place of %s was touched", name)
		}
	}
	return nil
}

// struck makes sure that every answer was lost that was meant to be.
func (l *losingStage) struck(ctx context.Context) error {
	faults, err := l.cloud.Faults(ctx)
	if err != nil {
		return err
	}
	for _, f := range faults {
		if f.Struck != 1 {
			return fmt.Errorf("the answer for %s was lost %d times", f.Name, f.Struck)
		}
	}
	return nil
}

// losingLine sums the creates up.
func losingLine(all []outcome, whole bool) (string, []string) {
	sum, counts := totals(all)
	var broken []string
	if whole {
		for _, kind := range lostKinds {
			if sum["lost "+kind] < 100 {
				broken = append(broken, fmt.Sprintf("only %d creates of %s were lost", sum["lost "+kind], kind))
			}
		}
	}
	return fmt.Sprintf("%d that may have happened, %d settled by themselves, %d by a person's answer, "+
		"%d foreign objects left alone, %s",
		sum["lost"], sum["by itself"], sum["asked"], sum["foreign"], counts), append(broken, counts.broken()...)
}
