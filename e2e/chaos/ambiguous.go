package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// manners are how providers report errors that do not say what they mean: all with the code Unknown.
var manners = []string{"bridged", "google", "kubernetes", "native"}

const (
	doubtfulNodes = 40
	account       = "acme" // a part of ids
	// unruled is which seeds play without settle rules, beside the stock CLI: every so many.
	unruled = 10
)

// doubting plays a seed of the ambiguous errors: a program is created, updated, replaced and destroyed on a cloud that
// answers with 500, 502, 503 and 504, and drops connections, before and after the effect. Each update is repeated until
// it succeeds, and nothing else is typed.
func doubting(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := rand.New(rand.NewPCG(uint64(seed), 3))
	nodes := graph(r, doubtfulNodes, named, auto, tagged, scoped, filed)
	for i := range nodes {
		// A name is taken as long as the old resource is there.
		nodes[i].Properties["deleteBeforeReplace"] = nodes[i].Type == named || r.IntN(2) == 0
	}
	s, err := w.newStage(ctx, fmt.Sprintf("ambiguous-%d", seed), "yaml", nodes)
	if err != nil {
		return o, err
	}
	defer s.close()
	manner := manners[(seed-1)%len(manners)]
	for _, set := range [][]string{{"fake:errors", manner}, {"fake:account", account}} {
		if _, err := s.deployctl(ctx, "config", "set", set[0], set[1]); err != nil {
			return o, err
		}
	}
	d := &doubtfulStage{stage: s, r: r, nodes: nodes, tally: map[string]int{manner: 1}}
	o.Tally = d.tally
	if seed%unruled == 0 {
		return o, d.besideTheStockCLI(ctx, manner)
	}
	if err := d.phase(ctx, "up", fakecloud.Create); err != nil {
		return o, err
	}
	for i := range nodes {
		switch i % 3 {
		case 0:
			nodes[i].Properties["size"] = 7
		case 1:
			nodes[i].Properties["zone"] = "b"
		}
	}
	if err := write(s.dir, project, "yaml", nodes); err != nil {
		return o, err
	}
	if err := d.phase(ctx, "up", fakecloud.Create, fakecloud.Update, fakecloud.Delete); err != nil {
		return o, err
	}
	if o.Counts, err = d.count(ctx); err != nil || o.Counts != (counts{}) {
		return o, errors.Join(err, errors.New("the cloud is not as the state says: "+o.Counts.String()))
	}
	if err := d.phase(ctx, "destroy", fakecloud.Delete); err != nil {
		return o, err
	}
	o.Counts, err = d.count(ctx)
	return o, err
}

type doubtfulStage struct {
	*stage
	r     *rand.Rand
	nodes []node
	tally map[string]int
}

// faults are what goes wrong with requests for a third of the nodes, once each.
func (d *doubtfulStage) faults(ops ...fakecloud.Op) (all []fakecloud.Fault) {
	for _, n := range d.nodes {
		op := ops[d.r.IntN(len(ops))]
		if d.r.IntN(3) > 0 {
			continue
		}
		f := fakecloud.Fault{Name: fmt.Sprintf("%s %s", op, n.Name), Op: op, Object: n.Name, Times: 1, Do: fakecloud.Fail,
			At: effectMoments[d.r.IntN(2)]}
		switch what := d.r.IntN(6); what {
		case 0:
			f.Do = fakecloud.Crash
		case 1:
			f.Status, f.At = http.StatusTooManyRequests, fakecloud.Before
		default:
			f.Status = []int{500, 502, 503, 504}[what-2]
		}
		all = append(all, f)
	}
	return all
}

// phase runs an update again and again, on a cloud in which something goes wrong with these operations.
func (d *doubtfulStage) phase(ctx context.Context, verb string, ops ...fakecloud.Op) error {
	for _, f := range d.faults(ops...) {
		if err := d.cloud.Set(ctx, f); err != nil {
			return err
		}
	}
	return d.until(ctx, verb)
}

// struck counts what went wrong, and has nothing go wrong any more.
func (d *doubtfulStage) struck(ctx context.Context) error {
	faults, err := d.cloud.Faults(ctx)
	for _, f := range faults {
		d.tally[string(f.Op)] += f.Struck
		if f.At == fakecloud.After {
			d.tally["after the effect"] += f.Struck
		}
	}
	return errors.Join(err, d.cloud.Lift(ctx, ""))
}

// count compares the cloud with the state.
func (d *doubtfulStage) count(ctx context.Context) (c counts, err error) {
	state, err := d.exported(ctx)
	if err != nil {
		return c, err
	}
	if c.Commands = len(state.PendingOperations); c.Commands > 0 {
		return c, errors.New("there are pending operations")
	}
	twice, err := d.cloud.Duplicates(ctx)
	if err != nil {
		return c, err
	}
	_, c.Leaks, err = d.stray(ctx, state)
	c.Duplicates = len(twice)
	return c, err
}

// besideTheStockCLI runs one update without settle rules, and one of the stock CLI on the same cloud with the same
// faults: both forget the same objects.
func (d *doubtfulStage) besideTheStockCLI(ctx context.Context, manner string) error {
	if _, err := d.deployctl(ctx, "config", "rm", "deployctl:settle"); err != nil {
		return err
	}
	backend := filepath.Join(d.world.dir, d.stack+"-state")
	if err := os.MkdirAll(backend, 0o700); err != nil {
		return err
	}
	h := &human{stage: d.stage, backend: backend, env: append(slices.Clip(d.world.env),
		"PULUMI_BACKEND_URL=file://"+backend, "PULUMI_CONFIG_PASSPHRASE=control", "PULUMI_SKIP_UPDATE_CHECK=true",
		"FAKECLOUD_ENDPOINT="+d.cloud.URL(), "FAKECLOUD_ERRORS="+manner,
		"FAKECLOUD_ACCOUNT="+account)}
	defer h.tidies()
	faults := d.faults(fakecloud.Create)
	for i := range faults { // what is not carried out is repeated by one of the two only
		if faults[i].Status == http.StatusTooManyRequests {
			faults[i].Status = http.StatusInternalServerError
		}
	}
	ours, err := d.forgotten(ctx, faults, func() (apitype.DeploymentV3, error) {
		c, err := d.start("up", "--yes", "--skip-preview", "--on-unknown", "fail", "--continue-on-error")
		if err == nil {
			err = c.ends(ctx)
		}
		if err != nil {
			return apitype.DeploymentV3{}, err
		}
		return d.exported(ctx)
	})
	if err != nil {
		return err
	}
	theirs, err := d.forgotten(ctx, faults, func() (apitype.DeploymentV3, error) {
		if _, err := h.types(ctx, "stack", "init"); err != nil {
			return apitype.DeploymentV3{}, err
		}
		c, err := h.starts(append(stockUp, "--continue-on-error")...)
		if err == nil {
			err = c.ends(ctx)
		}
		if err != nil {
			return apitype.DeploymentV3{}, err
		}
		return h.state(ctx)
	})
	if err == nil && !slices.Equal(ours, theirs) {
		err = fmt.Errorf("without rules, %v are forgotten, and the stock CLI forgets %v", ours, theirs)
	}
	d.tally["forgotten without rules"] += len(ours)
	return err
}

// forgotten runs an update on an empty cloud, and names the resources whose objects its state does not know.
func (d *doubtfulStage) forgotten(
	ctx context.Context, faults []fakecloud.Fault, update func() (apitype.DeploymentV3, error),
) ([]string, error) {
	objects, err := d.cloud.Objects(ctx, "")
	if err != nil {
		return nil, err
	}
	for _, o := range objects {
		if err := d.cloud.Remove(ctx, o.Kind, o.ID); err != nil {
			return nil, err
		}
	}
	for _, f := range faults {
		if err := d.cloud.Set(ctx, f); err != nil {
			return nil, err
		}
	}
	state, err := update()
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, r := range state.Resources {
		known[string(r.ID)] = true
	}
	if objects, err = d.cloud.Objects(ctx, ""); err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, o := range objects {
		if !known[o.ID] {
			names[o.Owner[strings.LastIndex(o.Owner, "::")+2:]] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), d.struck(ctx)
}

// doubtingLine sums the ambiguous errors up.
func doubtingLine(all []outcome, whole bool) (string, []string) {
	tally, sum := totals(all)
	broken := sum.broken()
	if whole && (tally["after the effect"] < 1000 || tally["forgotten without rules"] == 0) {
		broken = append(broken, "too little went wrong")
	}
	return fmt.Sprintf("%d creates, %d updates and %d deletes failed by an error that does not say what it means, %d of "+
		"them after the effect, in %d updates; %s; without rules, %d objects were forgotten, the same as by the stock CLI",
		tally["create"], tally["update"], tally["delete"], tally["after the effect"], tally["updates"], sum,
		tally["forgotten without rules"]), broken
}
