package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/fakecloud"
)

// serviceKilled plays a seed of a plain command of the stock CLI, during which a part of the service is killed. The
// command may fail, because the CLI gives up after some seconds; the next one succeeds.
func serviceKilled(ctx context.Context, w *world, seed int) (o outcome, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	r := rand.New(rand.NewPCG(uint64(seed), 19))
	c, err := w.newCLIStage(ctx, fmt.Sprintf("served-%d", seed), cliVerbs[seed%len(cliVerbs)], r)
	if err != nil {
		return o, err
	}
	defer c.close()
	parts := w.Parts()
	victim := parts[seed/len(cliVerbs)%len(parts)]
	at := effectMoments[r.IntN(len(effectMoments))]
	o.Kills = []killed{{Victim: victim.Name, Moment: fmt.Sprintf("%s an effect of pulumi %s", at, c.verb)}}
	over, err := c.disturbed(ctx, at, victim)
	if err == nil {
		o.Counts, o.Tally, err = c.goesOn(ctx, nextCommands[r.IntN(len(nextCommands))])
	}
	if err != nil {
		return o, fmt.Errorf("%s killed %s: %w", victim.Name, o.Kills[0].Moment, err)
	}
	if o.Tally["succeeded"] = 1; over != nil {
		o.Tally["succeeded"] = 0
	}
	return o, nil
}

// disturbed runs the command and kills a part while a request to the cloud is held. It returns how the command ended.
func (c *cliStage) disturbed(ctx context.Context, at fakecloud.Moment, victim *cluster.Part) (over, err error) {
	gate, err := c.cloud.SetGate(ctx, fakecloud.Fault{Name: "kill", Op: c.operation(), At: at,
		Skip: c.r.IntN(cliSize - 2), Times: 1})
	if err != nil {
		return nil, err
	}
	up, err := c.starts(changes(c.command())...)
	if err != nil {
		return nil, err
	}
	if err := up.during(ctx, gate.Wait); err != nil {
		return nil, err
	}
	if err := victim.Kill(); err != nil {
		return nil, err
	}
	if err := gate.Open(ctx); err != nil {
		return nil, err
	}
	if err := victim.Start(); err != nil {
		return nil, err
	}
	if err := up.ends(ctx); err != nil {
		return nil, err
	}
	return up.err, nil
}

// servedLine sums them up.
func servedLine(all []outcome, whole bool) (string, []string) {
	text, broken := cliLine(all, whole)
	sum, _ := totals(all)
	return strings.Replace(text, ", ", fmt.Sprintf(", %d succeeded all the same, ", sum["succeeded"]), 1), broken
}
