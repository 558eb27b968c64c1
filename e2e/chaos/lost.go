package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

const lostNodes = 14

// phases are what is under way when something is lost.
var phases = []struct {
	name string
	op   fakecloud.Op
	// property is what the update changes, and before whether a replacement deletes what it replaces first.
	property string
	before   bool
}{
	{name: "up", op: fakecloud.Create},
	{name: "update", op: fakecloud.Update, property: "size"},
	{name: "replacement", op: fakecloud.Create, property: "zone"},
	{name: "replacement, deleted first", op: fakecloud.Delete, property: "zone", before: true},
	{name: "destroy", op: fakecloud.Delete},
}

// findableByMark are the rules by which all is found again: what the server names, by the mark that it has got; what
// has been replaced in another zone since, by its name.
const findableByMark = `{"` + named + `": {"read": "property:name"}, "` + auto + `": {"read": "property:name"}, "` +
	scoped + `": [{"read": "${config:account}:${zone}:${name}"}, {"list": {"match": {"name": "${name}"}}}], "` + tagged +
	`": {"list": {"match": {"settings.mark": "${mark}"}}, "mark": "settings.mark", "proof": ["mark"]}, "` + filed +
	`": {"invoke": {"function": "fake:index:search", "args": {"mark": "${mark}"}, "ids": "things[*].arn", "after": ":"},
		"mark": "settings.mark", "proof": ["mark"]}}`

// configured has the stack's resources found again.
func (s *stage) configured(ctx context.Context) error {
	for key, value := range map[string]string{"fake:account": account, "deployctl:mark": "true",
		"deployctl:settle": findableByMark} {
		if _, err := s.deployctl(ctx, "config", "set", key, value); err != nil {
			return err
		}
	}
	return nil
}

// forgetting plays a seed of the lost state: at a moment of an update, what the service knows of the stack is lost, in
// part or as a whole. By what the documentation says, the stack is rebuilt from the program and the cloud.
func forgetting(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	at := phases[(seed-1)%len(phases)]
	lost := partsLost[(seed-1)/len(phases)%len(partsLost)]
	r := rand.New(rand.NewPCG(uint64(seed), 5))
	nodes := graph(r, lostNodes, named, auto, tagged, scoped, filed)
	for i := range nodes {
		// Two of the same name, mark or id at a time are possible for generated names only.
		nodes[i].Properties["deleteBeforeReplace"] = nodes[i].Type != auto || at.before
		if nodes[i].Type == tagged || nodes[i].Type == filed { // the mark is the service's
			nodes[i].Properties["settings"] = map[string]any{"purpose": nodes[i].Name}
		}
	}
	changed := change(nodes, at.property)
	plain, err := w.plainly(ctx, seed, nodes, changed)
	if err != nil {
		return o, fmt.Errorf("undisturbed: %w", err)
	}
	if lost.everything {
		if w, err = w.embedded(ctx); err != nil {
			return o, err
		}
		defer func() { w.leave(err != nil) }()
	}
	s, err := w.newStage(ctx, fmt.Sprintf("lost-%d", seed), "yaml", nodes)
	if err != nil {
		return o, err
	}
	defer s.close()
	f := &forgetful{stage: s, lost: lost, r: r}
	o.Kills = []killed{{Victim: lost.name, Moment: at.name}}
	if err := f.setUp(ctx, at.op != fakecloud.Create || at.property != ""); err != nil {
		return o, err
	}
	if err := write(s.dir, project, "yaml", changed); err != nil {
		return o, err
	}
	verb := "up"
	if at.name == "destroy" {
		verb = "destroy"
	}
	if err := f.loseDuring(ctx, verb, fakecloud.Fault{
		Name: "held", Op: at.op, At: effectMoments[r.IntN(2)], Skip: r.IntN(lostNodes / 3), Times: 1,
	}); err != nil {
		return o, err
	}
	o.Tally, err = f.rebuild(ctx, seed%3 == 0)
	if err != nil {
		return o, err
	}
	left, err := f.tidy(ctx)
	if err != nil {
		return o, err
	}
	o.Tally["orphans that were listed"] = left
	end, err := s.reachedAnyHow(ctx)
	if err != nil {
		return o, err
	}
	twice, err := s.cloud.Duplicates(ctx) // what was replaced was created twice, too
	o.Counts = end.counts
	o.Counts.Duplicates = len(twice)
	return o, errors.Join(err, end.differs(plain), f.untouched(ctx))
}

// change returns the nodes with a property changed in two of three; with "" as they are.
func change(nodes []node, property string) []node {
	changed := slices.Clone(nodes)
	for i := range changed {
		if property == "" || i%3 == 2 {
			continue
		}
		changed[i].Properties = maps.Clone(changed[i].Properties)
		changed[i].Properties[property] = map[string]any{"size": 7, "zone": "b"}[property]
	}
	return changed
}

// plainly is what the updates come to when nothing is lost.
func (w *world) plainly(ctx context.Context, seed int, programs ...[]node) (r reached, err error) {
	s, err := w.newStage(ctx, fmt.Sprintf("lost-%d-plain", seed), "yaml", programs[0])
	if err != nil {
		return r, err
	}
	defer s.close()
	if err := s.configured(ctx); err != nil {
		return r, err
	}
	for _, nodes := range programs {
		if err := write(s.dir, project, "yaml", nodes); err != nil {
			return r, err
		}
		if _, err := s.deployctl(ctx, nextUp...); err != nil {
			return r, err
		}
	}
	return s.reachedAnyHow(ctx)
}

var (
	generation = regexp.MustCompile(`"generation":\d+`)
	mark       = regexp.MustCompile(`\b[0-9a-f]{32}\b`)
)

// reachedAnyHow is where updates have brought a stack, whatever number of updates of its objects that has taken. Marks
// differ from stack to stack.
func (s *stage) reachedAnyHow(ctx context.Context) (reached, error) {
	r, err := s.reached(ctx)
	for _, list := range [][]string{r.cloud, r.state} {
		for i, text := range list {
			list[i] = mark.ReplaceAllString(generation.ReplaceAllString(text, `"generation":"any"`), "MARK")
		}
		slices.Sort(list)
	}
	return r, err
}

// forgetful is a stage on which something is lost.
type forgetful struct {
	*stage
	lost    loss
	r       *rand.Rand
	foreign []fakecloud.Object
}

// setUp puts objects of others beside the stack's, and makes the stack's if the loss comes during a later update.
func (f *forgetful) setUp(ctx context.Context, exists bool) error {
	if err := f.configured(ctx); err != nil {
		return err
	}
	f.foreign = []fakecloud.Object{
		{Kind: "named", ID: "another-r001", Name: "another-r001"},
		{Kind: "auto", ID: "r001-0123456", Name: "r001-0123456"},
		{Kind: "tagged", ID: "another", Properties: map[string]any{"settings": map[string]any{"mark": "another-r001"}}},
		{Kind: "tagged", ID: "unmarked"},
	}
	for _, o := range f.foreign {
		if err := f.cloud.Put(ctx, o); err != nil {
			return err
		}
	}
	if !exists {
		return nil
	}
	_, err := f.deployctl(ctx, nextUp...)
	return err
}

// untouched reports that something of others was changed.
func (f *forgetful) untouched(ctx context.Context) error {
	objects, err := f.cloud.Objects(ctx, "")
	if err != nil {
		return err
	}
	for _, o := range f.foreign {
		o.Foreign = true
		same := func(other fakecloud.Object) bool { return reflect.DeepEqual(other, o) }
		if !slices.ContainsFunc(objects, same) {
			err = errors.Join(err, fmt.Errorf("%s %s is another's, and was changed", o.Kind, o.ID))
		}
	}
	return err
}

// loseDuring begins an update, loses what is to be lost while a request is held, and waits for the update's end,
// whatever that is.
func (f *forgetful) loseDuring(ctx context.Context, verb string, held fakecloud.Fault) error {
	gate, err := f.cloud.SetGate(ctx, held)
	if err != nil {
		return err
	}
	c, err := f.start(append([]string{verb}, nextUp[1:]...)...)
	if err != nil {
		return err
	}
	if err := c.during(ctx, gate.Wait); err != nil {
		return err
	}
	if f.lost.everything {
		return errors.Join(f.loseBucket(ctx, c), gate.Open(ctx))
	}
	if err := errors.Join(f.lose(ctx), gate.Open(ctx)); err != nil {
		c.leave(err)
		return err
	}
	// An update that cannot end says so, and who waits for it leaves.
	err = eventually(ctx, "the update ends, or says that it cannot", func() (bool, error) {
		return c.over() || strings.Contains(c.text(), "cannot be recovered"), nil
	})
	_ = c.cmd.Process.Kill() // it may have ended
	<-c.ended
	return err
}

// rebuild does what the documentation says after a loss. Where reads are forbidden meanwhile, nothing is taken for
// absent, and it is repeated.
func (f *forgetful) rebuild(ctx context.Context, forbidden bool) (map[string]int, error) {
	tally := map[string]int{"losses": 1}
	adopts := func() (string, error) {
		return f.deployctl(ctx, append(slices.Clone(nextUp), "--adopt", "--refresh")...)
	}
	if forbidden {
		if err := f.cloud.Set(ctx, fakecloud.Fault{Name: "forbidden", Op: fakecloud.Read, Do: fakecloud.Fail,
			Status: http.StatusForbidden, Chance: 0.5, Seed: f.r.Uint64()}); err != nil {
			return tally, err
		}
		_, _ = adopts() // whether it fails depends on what is read
		if err := f.cloud.Lift(ctx, "forbidden"); err != nil {
			return tally, err
		}
		tally["with reads that were forbidden"] = 1
	}
	// What is left is given up, and no more of it than must be.
	var said []string
	for _, r := range []struct {
		what     string
		commands [][]string
	}{
		{what: "went on by themselves"},
		{"gave up the update", [][]string{{"stack", "recover", "--discard", "--yes"}}},
		{"were made again", [][]string{{"stack", "rm", f.stack, "--force", "--yes", "--preserve-config"},
			{"stack", "init", f.stack}}},
	} {
		for _, args := range r.commands {
			if text, err := f.deployctl(ctx, args...); err != nil {
				said = append(said, text, err.Error())
			}
		}
		text, err := adopts()
		if err == nil {
			tally[r.what] = 1
			return tally, nil
		}
		said = append(said, text)
	}
	return tally, errors.New("it is not rebuilt: " + strings.Join(said, "\n"))
}

// tidy removes what the stack has left behind, and only that: what `deployctl stack orphans` lists.
func (f *forgetful) tidy(ctx context.Context) (n int, err error) {
	text, err := f.deployctl(ctx, "stack", "orphans", "--json")
	if err != nil {
		return 0, err
	}
	var told struct{ Orphans []struct{ Type, ID string } }
	if err := json.Unmarshal([]byte(text[strings.Index(text, "{"):]), &told); err != nil {
		return 0, fmt.Errorf("read the orphans: %w in\n%s", err, text)
	}
	for _, o := range told.Orphans {
		kind := strings.ToLower(o.Type[strings.LastIndex(o.Type, ":")+1:])
		if err := f.cloud.Remove(ctx, kind, o.ID); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// forgettingLine sums the losses up.
func forgettingLine(all []outcome, whole bool) (string, []string) {
	tally, sum := totals(all)
	points := map[string]bool{}
	for _, o := range all {
		for _, k := range o.Kills {
			points[k.Victim+" "+k.Moment] = true
		}
	}
	broken := sum.broken()
	if want := len(partsLost) * len(phases); whole && len(points) < want {
		broken = append(broken, fmt.Sprintf("something was lost at %d points of %d", len(points), want))
	}
	return fmt.Sprintf("state was lost %d times at %d points, %d times while half of all reads were forbidden; %d stacks "+
		"went on by themselves, %d gave up the update, %d were made again; %d objects of earlier replacements were "+
		"listed by stack orphans; %d duplicates, %d leaks, nothing of others touched", tally["losses"], len(points),
		tally["with reads that were forbidden"], tally["went on by themselves"], tally["gave up the update"],
		tally["were made again"],
		tally["orphans that were listed"], sum.Duplicates, sum.Leaks), broken
}
