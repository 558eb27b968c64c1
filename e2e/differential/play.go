package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// patience ends a program that hangs; none takes nearly as long, not even on a machine that does much else.
const patience = 15 * time.Minute

// arena is where programs are played: both engines, and their clouds.
type arena struct {
	dir         string
	ours, stock player
	checker     *stockEngine
	cli         bool // through the executables, which do not say what hooks were called
	clouds      *clouds
	service     *embedded
	states      string // the directory for the states of every update; "" for none
}

// outcome is what a program came to.
type outcome struct {
	Seed    int            `json:"seed"`
	Build   string         `json:"build"`
	Seconds float64        `json:"seconds"`
	Updates int            `json:"updates"`
	Failed  int            `json:"failed"` // updates that failed, as they should
	Used    map[string]int `json:"used"`
	// Rules are the intended differences that were seen.
	Rules map[string]int `json:"rules,omitempty"`
	// Differs says how the engines differ where they should not.
	Differs string `json:"differs,omitempty"`
}

// side is a program on one of the engines.
type side struct {
	player
	stage
	cloud   *fakecloud.Client
	objects []fakecloud.Object
	base    apitype.DeploymentV3 // the state before the update
	// retained are the kinds and ids of what was stored with the option retainOnDelete.
	retained map[string]bool
	result
}

// compare plays a program on both engines and compares after each update. An error means that it could not be played.
func (a *arena) compare(ctx context.Context, p program) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	begin := time.Now()
	o = outcome{Seed: p.Seed, Rules: map[string]int{}}
	sides, err := a.sides(p)
	if err != nil {
		return o, err
	}
	defer a.leave(p, sides)
	m := match{rules: o.Rules}
	for i, u := range p.Updates {
		if err := a.playBoth(ctx, u, p, sides); errors.Is(err, errStockHangs) || errors.Is(err, errStockEnded) {
			o.Rules[errors.Unwrap(err).Error()]++
			break
		} else if err != nil {
			return o, fmt.Errorf("update %d: %w", i+1, err)
		}
		if err := a.keep(p, i+1, sides); err != nil {
			return o, err
		}
		o.Updates++
		if sides[0].failed {
			o.Failed++
		}
		m.refreshed = m.refreshed || u.Refresh || u.Kind == "refresh"
		m.secretOutputs = m.secretOutputs || u.hasOption("additionalSecretOutputs")
		m.imported = m.imported || u.hasOption("import")
		m.imports = m.imports || u.Kind == "import"
		m.triggers = m.triggers || u.hasOption("replacementTrigger")
		m.aliases = m.aliases || u.hasOption("aliases")
		m.partial = m.partial || len(u.Targets)+len(u.Excludes) > 0 || u.RunProgram || u.ContinueOnError && sides[0].failed
		m.looks = m.looks || u.invokes(getResource)
		m.failed = sides[0].failed
		if rule := ends(u, sides); rule != "" {
			o.Rules[rule]++
			break
		}
		m.catchesUp = m.diverged
		m.diverged = (m.diverged || diverges(u, p, sides)) && !converges(u, sides)
		m.placed = (m.placed || u.Kind == "import") && !converges(u, sides)
		found := a.judge(ctx, u, p, sides, m)
		if len(found) > 0 {
			o.Differs = fmt.Sprintf("after update %d (%s%s):\n  %s\n%s", i+1, u.Kind, flags(u),
				strings.Join(found, "\n  "), report(sides))
			break
		}
	}
	o.Seconds = time.Since(begin).Seconds()
	return o, nil
}

// sides makes the stages of a program; ours is the first.
func (a *arena) sides(p program) (all []*side, err error) {
	for _, e := range []struct {
		name string
		player
	}{{"ours", a.ours}, {"stock", a.stock}} {
		name := fmt.Sprintf("%s-%d", e.name, p.Seed)
		cloud, err := a.clouds.open(name)
		if err != nil {
			return nil, err
		}
		parallel := 1
		if p.Concurrent {
			parallel = 8
		}
		all = append(all, &side{player: e.player, cloud: cloud, retained: map[string]bool{}, stage: stage{
			dir: filepath.Join(a.dir, name), stack: fmt.Sprintf("s%d", p.Seed), cloud: cloud.URL(), parallel: parallel,
		}})
	}
	return all, nil
}

// hasOption reports whether a resource of the program has an option.
func (u update) hasOption(name string) bool {
	return slices.ContainsFunc(u.Steps, func(s step) bool { return s.Options[name] != "" })
}

// invokes reports whether the program calls a function.
func (u update) invokes(token string) bool {
	return slices.ContainsFunc(u.Steps, func(s step) bool { return s.Fields["token"] == token })
}

// leave removes what a program leaves behind.
func (a *arena) leave(p program, sides []*side) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i, s := range sides {
		_ = s.remove(ctx, s.stage) // of no consequence: its name is not used again before the service ends
		_ = os.RemoveAll(s.dir)
		a.clouds.forget(fmt.Sprintf("%s-%d", []string{"ours", "stock"}[i], p.Seed))
	}
}

// playBoth plays an update on both engines.
func (a *arena) playBoth(ctx context.Context, u update, p program, sides []*side) error {
	for i, s := range sides {
		if u.CancelAt != nil && i > 0 {
			continue
		}
		if err := u.write(s.dir, p); err != nil {
			return err
		}
		if err := disturb(ctx, s.cloud, u, s.stack); err != nil {
			return err
		}
		s.base = s.state
		var err error
		if s.result, err = s.play(ctx, s.stage, u); err != nil {
			return err
		}
		if err := calm(ctx, s.cloud, u); err != nil {
			return err
		}
		if s.objects, err = s.cloud.Objects(ctx, ""); err != nil {
			return err
		}
		for _, r := range s.state.Resources {
			if r.RetainOnDelete {
				s.retained[objectOf(r)] = true
			}
		}
	}
	return nil
}

// match is what the comparison depends on besides the update.
type match struct {
	situation
	// diverged: what was done depended on chance, or on a cancel, and no whole update has succeeded since.
	diverged bool
	// catchesUp: it was so before this update, in which the engines then have different things to do.
	catchesUp bool
	// placed: an import has put its resource at a place of its own, and no whole update has succeeded since.
	placed bool
	rules  map[string]int // counts the intended differences
}

// diverges reports whether the engines may have done different parts of an update.
func diverges(u update, p program, sides []*side) bool {
	return p.Concurrent && (u.failing() || sides[0].failed && sides[1].failed) || u.CancelAt != nil ||
		p.cancels() && sides[1].failed || !u.ContinueOnError && failsToDelete(sides[0]) && failsToDelete(sides[1])
}

// failsToDelete reports whether a deletion has ended an update: the stock engine takes those that do not depend on one
// another in any order, so which of them came before that is left to chance.
func failsToDelete(s *side) bool {
	return s.failed && slices.ContainsFunc(s.steps, func(done string) bool {
		return strings.HasPrefix(done, "failed delete")
	})
}

// converges reports whether both engines have carried out the whole program.
func converges(u update, sides []*side) bool {
	return u.Kind == "up" && u.CancelAt == nil && len(u.Targets)+len(u.Excludes) == 0 && !sides[0].failed &&
		!sides[1].failed
}

// judge says how the engines differ after an update, or what does not hold of ours.
func (a *arena) judge(ctx context.Context, u update, p program, sides []*side, m match) (found []string) {
	ours, stock := sides[0], sides[1]
	if err := a.checker.verify(ctx, &ours.state); err != nil {
		return []string{"Pulumi's engine does not accept our state: " + err.Error()}
	}
	if u.CancelAt != nil {
		return ours.unaccounted()
	}
	if ours.failed != stock.failed && !m.diverged {
		return []string{fmt.Sprintf("the end: ours failed: %v, stock failed: %v", ours.failed, stock.failed)}
	}
	mine, theirs := ours.unaccounted(), stock.unaccounted()
	if more := lacking(mine, theirs); len(more) > 0 {
		return more
	}
	if m.diverged {
		return nil
	}
	ordered := !p.Concurrent && !p.cancels() && !m.placed
	mineView, err := look(ours.state, ours.compared(ordered), ours.stage.cloud, ordered)
	if err != nil {
		return []string{err.Error()}
	}
	theirsView, err := look(stock.state, stock.compared(ordered), stock.stage.cloud, ordered)
	if err != nil {
		return []string{err.Error()}
	}
	compareHooks := !u.failing() && !a.cli && !m.catchesUp
	if mine, theirs := sorted(ours.hooks), sorted(stock.hooks); compareHooks && !slices.Equal(mine, theirs) {
		return []string{fmt.Sprintf("the calls of hooks: ours %q, stock %q", mine, theirs)}
	}
	for _, r := range intended {
		if r.applies(m.situation) && r.level(&mineView, &theirsView) {
			m.rules[r.name]++
		}
	}
	return differences(mineView, theirsView, ordered)
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

// flags are an update's, for people.
func flags(u update) (text string) {
	for _, f := range []struct {
		flag string
		set  bool
	}{
		{"--refresh", u.Refresh}, {"--continue-on-error", u.ContinueOnError},
		{"--target " + strings.Join(u.Targets, ","), len(u.Targets) > 0},
		{"--target-dependents", u.TargetDependents},
		{"--replace " + strings.Join(u.Replace, ","), len(u.Replace) > 0},
		{"--exclude " + strings.Join(u.Excludes, ","), len(u.Excludes) > 0},
		{"--exclude-dependents", u.ExcludeDependents}, {"--ignore-protect", u.IgnoreProtect},
		{"--run-program", u.RunProgram}, {"(cancelled)", u.CancelAt != nil}, {u.Import, u.Import != ""},
	} {
		if f.set {
			text += " " + f.flag
		}
	}
	return text
}

// report is what both engines did and said in the last update.
func report(sides []*side) string {
	var b strings.Builder
	for i, name := range []string{"ours", "stock"} {
		steps := slices.DeleteFunc(slices.Clone(sides[i].steps), func(s string) bool {
			return strings.HasPrefix(s, "same ")
		})
		fmt.Fprintf(&b, "  %s: %s\n", name, short(steps))
		for _, e := range sides[i].errors {
			fmt.Fprintf(&b, "    error: %s\n", strings.ReplaceAll(e, "\n", "\n      "))
		}
	}
	return b.String()
}
