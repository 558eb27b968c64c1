package console

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// dependsPatience is how long the page of an update waits for what its resources depend on.
const dependsPatience = 3 * time.Second

// dependencies returns what each resource of an update depends on, by the state that it has made; of a resource that it
// does not have, nothing is known. That state is read once: it is an export, and its reader needs the right to that.
func (c *call) dependencies(k *run, info deployments.UpdateInfo) map[string][]string {
	k.mu.Lock()
	known := k.depends
	k.mu.Unlock()
	version := info.Update.Number()
	if known != nil || version == 0 || info.Ended.IsZero() {
		return known
	}
	rule, ok := grpcapi.RuleOf(api.Stacks_Export_FullMethodName)
	if !ok || rule.Allow(c.caller, false, c.stack) != nil {
		return nil
	}
	c.exports, c.entry.Method, c.entry.Subject = true, rule.Method(), "version="+info.Update.Version
	known = c.readDependencies(version)
	k.mu.Lock()
	defer k.mu.Unlock()
	k.depends = known
	for _, of := range known {
		k.told.size += 100 * len(of) // the texts are those of the steps
	}
	return known
}

// readDependencies reads what the resources of a version depend on; nothing, if that is not known.
func (c *call) readDependencies(version int) map[string][]string {
	whole := c.Request
	defer func() { c.Request = whole }()
	ctx, cancel := context.WithTimeout(c.Context(), dependsPatience)
	defer cancel()
	c.Request = c.WithContext(ctx)
	known := map[string][]string{}
	release, err := c.console.gate.HoldExport(ctx, c.party())
	c.release = append(c.release, release)
	if err != nil {
		return nil
	}
	s, err := c.readVersion(version)
	if err != nil {
		return nil
	}
	for _, r := range s.resources {
		of := []string{}
		for _, id := range append([]urn.URN{r.Parent}, r.Dependencies...) {
			of = append(of, string(id))
		}
		if at := strings.LastIndex(r.Provider, "::"); at > 0 { // its id follows its URN
			of = append(of, r.Provider[:at])
		}
		known[string(r.URN)] = of
	}
	return known
}

// criticalOf returns the chain of steps that ends with the one that ended last: before each is the step that had ended
// last of those for which it waited or, if it is not known for which it did, of all. Had one of them been faster, the
// update could have been. Components take no time of their own.
func criticalOf(rows []*projection.Row, t *told, depends map[string][]string) map[*projection.Row]bool {
	steps := slices.DeleteFunc(slices.Clone(rows), func(row *projection.Row) bool {
		d := t.details[row.URN]
		return row.Started.IsZero() || row.Finished.IsZero() || d == nil || d.component || !row.IsChange()
	})
	slices.SortStableFunc(steps, func(a, b *projection.Row) int {
		return cmp.Or(b.Finished.Compare(a.Finished), a.Started.Compare(b.Started))
	})
	chain := map[*projection.Row]bool{}
	if len(steps) == 0 {
		return chain
	}
	last := steps[0]
	for _, row := range steps { // of those that ended last, one that failed, or the one that began last
		if row.Finished.Equal(last.Finished) && (row.Phase == projection.PhaseFailed && last.Phase != row.Phase ||
			row.Phase == last.Phase && row.Started.After(last.Started)) {
			last = row
		}
	}
	byURN := make(map[string]*projection.Row, len(steps))
	for _, row := range steps {
		byURN[row.URN] = row
	}
	for at := 0; last != nil && !chain[last]; {
		chain[last] = true
		if of, known := depends[last.URN]; known && last.Op != "delete" {
			last = lastOf(of, byURN, last)
			continue
		}
		last, at = earlier(steps, at, last)
	}
	return chain
}

// lastOf returns the step that ended last of those of some resources, before another one began; nil if there is none.
func lastOf(ids []string, byURN map[string]*projection.Row, before *projection.Row) (last *projection.Row) {
	for _, id := range ids {
		row := byURN[id]
		if row != nil && !row.Finished.After(before.Started) && (last == nil || row.Finished.After(last.Finished) ||
			row.Finished.Equal(last.Finished) && row.Started.Before(last.Started)) {
			last = row
		}
	}
	return last
}

// earlier returns the step that ended last of all that ended before another one began, and where it is; the search
// begins at an index. Times are known to the second: of what took none of it, the chain has one at a time.
func earlier(steps []*projection.Row, from int, before *projection.Row) (*projection.Row, int) {
	for i := from; i < len(steps); i++ {
		if !steps[i].Finished.After(before.Started) && steps[i].Started.Before(before.Started) {
			return steps[i], i
		}
	}
	return nil, len(steps)
}
