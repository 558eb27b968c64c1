package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// shortLease is in the environment of a world whose clients are killed: it is longer than an undisturbed command takes.
const shortLease = "DEPLOYCTL_PULUMI_LEASE=45s"

// cliVerbs are what a client does when it is killed.
var cliVerbs = []string{"up", "update", "destroy"}

// cliMoment is where in its work a client is killed: at the nth request to the cloud or to the service.
type cliMoment struct {
	name  string
	cloud fakecloud.Moment // "": at a request to the service
	relay stop
}

var cliMoments = []cliMoment{
	{name: "before an effect", cloud: fakecloud.Before},
	{name: "between an effect and its reply", cloud: fakecloud.After},
	{name: "before a journal entry is stored", relay: stop{path: "/journalentries"}},
	{name: "after a journal entry is stored", relay: stop{path: "/journalentries", after: true}},
	{name: "before it completes", relay: stop{path: "/complete"}},
	{name: "while it completes", relay: stop{path: "/complete", after: true}},
}

// nextCommands are who comes next.
var nextCommands = []string{"pulumi", "deployctl", "pulumi, at once"}

// cliStage is a stack whose client is killed.
type cliStage struct {
	*stock
	verb string
	r    *rand.Rand
}

// cliSize is how many resources the program has.
const cliSize = 14

// cliNodes are a program of resources that can be found again.
func cliNodes(r *rand.Rand) []node { return graph(r, cliSize, auto) }

// clientKilled plays a seed of a plain command of the stock CLI that is killed.
func clientKilled(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := rand.New(rand.NewPCG(uint64(seed), 18))
	c, err := w.newCLIStage(ctx, fmt.Sprintf("cli-%d", seed), cliVerbs[seed%len(cliVerbs)], r)
	if err != nil {
		return o, err
	}
	defer c.close()
	at, next := cliMoments[seed/len(cliVerbs)%len(cliMoments)], nextCommands[r.IntN(len(nextCommands))]
	o.Kills = []killed{{Victim: "pulumi " + c.verb, Moment: at.name + ", then " + next}}
	if err := c.killedAt(ctx, at); err != nil {
		return o, fmt.Errorf("%s: %w", o.Kills[0].Moment, err)
	}
	o.Counts, o.Tally, err = c.goesOn(ctx, next)
	if err == nil {
		err = c.rejectsTheDead(ctx)
	}
	if err != nil {
		err = fmt.Errorf("%s killed %s: %w", o.Kills[0].Victim, o.Kills[0].Moment, err)
	}
	return o, err
}

// newCLIStage brings a stack to where the verb begins.
func (w *world) newCLIStage(ctx context.Context, name, verb string, r *rand.Rand) (*cliStage, error) {
	nodes := cliNodes(r)
	s, err := w.newStage(ctx, name, "yaml", nodes)
	if err != nil {
		return nil, err
	}
	c := &cliStage{verb: verb, r: r}
	if c.stock, err = s.newStock(); err != nil {
		return nil, err
	}
	if verb == "up" {
		return c, nil
	}
	if _, err := c.runs(ctx, changes("up")...); err != nil {
		return nil, err
	}
	if verb == "update" {
		for i := range nodes {
			nodes[i].Properties["size"] = 10 + i
		}
		return c, write(c.dir, project, "yaml", nodes)
	}
	return c, nil
}

// command is that of the verb.
func (c *cliStage) command() string {
	if c.verb == "destroy" {
		return "destroy"
	}
	return "up"
}

// operation is what the verb does to resources.
func (c *cliStage) operation() fakecloud.Op {
	return map[string]fakecloud.Op{"up": fakecloud.Create, "update": fakecloud.Update, "destroy": fakecloud.Delete}[c.verb]
}

// killedAt runs the command and kills it.
func (c *cliStage) killedAt(ctx context.Context, at cliMoment) error {
	nth, plugins := 1+c.r.IntN(cliSize-2), c.r.IntN(2) == 0
	if at.cloud != "" {
		gate, err := c.cloud.SetGate(ctx, fakecloud.Fault{Name: "kill", Op: c.operation(), At: at.cloud, Skip: nth - 1,
			Times: 1, Late: !plugins})
		if err != nil {
			return err
		}
		up, err := c.starts(changes(c.command())...)
		if err != nil {
			return err
		}
		if err := up.during(ctx, gate.Wait); err != nil {
			return err
		}
		if err := c.kill(up, plugins); err != nil {
			return err
		}
		if plugins {
			if err := gate.WaitEmpty(ctx); err != nil {
				return err
			}
		}
		return gate.Open(ctx)
	}
	if at.relay.nth = 1; at.relay.path == "/journalentries" {
		at.relay.nth = 1 + c.r.IntN(4) // how many there are depends on how they are gathered
	}
	held, open := c.relay.arm(at.relay)
	defer open()
	up, err := c.starts(changes(c.command())...)
	if err != nil {
		return err
	}
	select {
	case <-held:
		return c.kill(up, plugins)
	case <-up.ended: // it made fewer requests
		return up.wait(ctx)
	case <-ctx.Done():
		return ctx.Err()
	}
}

// goesOn runs the next command, which must succeed without a human step, and counts what is wrong after it.
func (c *cliStage) goesOn(ctx context.Context, next string) (n counts, tally map[string]int, err error) {
	if next != "pulumi, at once" {
		if err := c.free(ctx); err != nil {
			return n, nil, err
		}
	}
	if next == "deployctl" {
		_, err = c.deployctl(ctx, changes(c.command())...)
	} else {
		var said string
		if said, err = c.runs(ctx, changes(c.command())...); err == nil && strings.Contains(said, "pending") {
			err = fmt.Errorf("it speaks of pending operations:\n%s", said)
		}
	}
	if err != nil {
		return n, nil, err
	}
	return c.ended(ctx)
}

// free waits until nobody has the stack, and nothing waits for it.
func (c *cliStage) free(ctx context.Context) error {
	return eventually(ctx, "the stack is free", func() (bool, error) {
		said, err := c.deployctl(ctx, "stack")
		return err == nil && !strings.Contains(said, "running since") && !strings.Contains(said, "waiting:"), err
	})
}

// ended compares the cloud and the state with what the program asks for.
func (c *cliStage) ended(ctx context.Context) (n counts, tally map[string]int, err error) {
	state, err := c.exported(ctx)
	if err != nil {
		return n, nil, err
	}
	if n.Duplicates, n.Leaks, err = c.stray(ctx, state); err != nil {
		return n, nil, err
	}
	objects, err := c.cloud.Objects(ctx, "")
	want := cliSize
	if c.verb == "destroy" {
		want = 0
	}
	switch {
	case err != nil:
	case len(objects) != want:
		err = fmt.Errorf("%d objects are in the cloud, not %d", len(objects), want)
	case len(state.PendingOperations) > 0:
		err = fmt.Errorf("pending are %v", state.PendingOperations)
	}
	history, historyErr := c.deployctl(ctx, "stack", "history")
	tally = map[string]int{"killed": 1, c.verb: 1}
	if strings.Contains(history, "Settles what update") {
		tally["settled"] = 1
	}
	return n, tally, errors.Join(err, historyErr)
}

// rejectsTheDead sends a write of the killed client again: it is refused, and the state stays.
func (c *cliStage) rejectsTheDead(ctx context.Context) error {
	before, err := c.deployctl(ctx, "stack", "export")
	if err != nil {
		return err
	}
	status, err := c.relay.late(ctx, c.Pulumi)
	if err != nil {
		return err
	}
	if !slices.Contains([]int{0, http.StatusForbidden}, status) {
		return fmt.Errorf("a late write is answered %d", status)
	}
	after, err := c.deployctl(ctx, "stack", "export")
	if err == nil && after != before {
		err = errors.New("a late write has changed the state")
	}
	return err
}

// cliLine sums the killed clients up.
func cliLine(all []outcome, _ bool) (string, []string) {
	sum, n := totals(all)
	return fmt.Sprintf("%d plain commands of the stock CLI disturbed (%d up, %d update, %d destroy), %d settled by the "+
		"service, %s", sum["killed"], sum["up"], sum["update"], sum["destroy"], sum["settled"], n), n.broken()
}
