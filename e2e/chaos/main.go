// Command chaos shows what deployctl's durability rests on: it kills, stalls and cuts off every part of a service while
// it works, at moments that seeds choose, and prints for each claim of docs/durability.md one line with what it
// counted. It ends with 1 when a claim does not hold.
//
//	chaos [-claim kills] [-seeds 1-100 | -part 10] [-at-once 4] [-results DIR]
//
// What a seed came to is kept, so that an interrupted run goes on where it was. It needs bin/deployctl, and pulumi,
// pulumi-language-yaml, pulumi-resource-fake and fakecloud on PATH; `make chaos` sees to that.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/deployctl/deployctl/e2e/seeds"
)

// claim is something that docs/durability.md promises.
type claim struct {
	name  string
	seeds int      // of a whole run
	few   []int    // that `make test` plays; none where tests of one moment each keep the claim (docs/durability.md)
	env   []string // of everybody in its worlds
	// run plays one seed in a world that nobody else uses meanwhile.
	run func(ctx context.Context, w *world, seed int) (outcome, error)
	// control plays the same for the stock CLI, once; nil when there is nothing to compare with.
	control func(ctx context.Context, w *world) (outcome, error)
	// line sums the outcomes up, and tells why the claim does not hold; whole says that every seed was played.
	line func(all []outcome, whole bool) (text string, broken []string)
}

var claims = []claim{
	{name: "kills", seeds: 100, few: []int{5}, run: killing, control: control, line: killingLine},
	{name: "creates", seeds: 20, run: losing, line: losingLine},
	{name: "ambiguous", seeds: 200, run: doubting, line: doubtingLine},
	{name: "habits", seeds: 20, run: habitual, line: habitualLine},
	{name: "flaky", seeds: 20, run: flaking, line: flakingLine},
	{name: "cancel", seeds: 20, run: cancelling, line: cancellingLine},
	{name: "locks", seeds: 50, run: locking, line: lockingLine},
	{name: "state", seeds: 40, run: closing, line: closingLine},
	{name: "lost", seeds: 300, run: forgetting, line: forgettingLine},
	{name: "cli", seeds: 200, env: []string{shortLease}, run: clientKilled, line: cliLine},
	{name: "served", seeds: 200, env: []string{shortLease}, run: serviceKilled, line: servedLine},
	{name: "tools", seeds: 50, run: interleaved, line: toolsLine},
	{name: "replicas", seeds: 2, run: replicated, line: replicasLine},
	{name: "drift", seeds: 1, run: drifting, line: driftingLine},
	{name: "size", seeds: 2, run: sizing, line: sizingLine},
	{name: "slow", seeds: 50, run: slowing, line: slowingLine},
	{name: "upgrades", seeds: 8, env: []string{"DEPLOYCTL_TEMPORAL_WORKER_DEPLOYMENT=chaos"},
		run: upgrading, line: upgradingLine},
}

func main() {
	only := flag.String("claim", "", "show only the claim of this `NAME`")
	span := flag.String("seeds", "", "play only these seeds, `FROM-TO`")
	part := flag.Int("part", 1, "play the first `N`th part of each claim's seeds, one at least; 1: all")
	atOnce := flag.Int("at-once", 4, "how many seeds are played at a time")
	results := flag.String("results", "bin/chaos", "`DIR` where results are kept")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	holds, err := run(ctx, *only, *span, max(*part, 1), *atOnce, *results)
	switch {
	case err != nil:
		fmt.Fprintln(os.Stderr, "chaos:", err)
		os.Exit(2)
	case !holds:
		os.Exit(1)
	}
}

// run plays what was not played yet and prints the claims' lines.
func run(ctx context.Context, only, span string, part, atOnce int, results string) (holds bool, err error) {
	book, err := openBook(results)
	if err != nil {
		return false, err
	}
	holds = true
	var lines []string
	for _, c := range claims {
		if only != "" && only != c.name {
			continue
		}
		from, to := 1, (c.seeds+part-1)/part
		if span != "" {
			if from, to, err = seeds.Parse(span); err != nil {
				return false, err
			}
		}
		chosen := make([]int, 0, to-from+1)
		for seed := from; seed <= to; seed++ {
			chosen = append(chosen, seed)
		}
		played, peer, err := play(ctx, c, chosen, atOnce, book)
		if err != nil {
			return false, fmt.Errorf("%s: %w", c.name, err)
		}
		text, broken := c.line(played, len(chosen) >= c.seeds)
		for _, o := range played {
			if o.Failed != "" {
				broken = append(broken, fmt.Sprintf("seed %d: %s", o.Seed, o.Failed))
			}
		}
		lines = append(lines, c.name+": "+text)
		if peer != nil {
			lines = append(lines, fmt.Sprintf("  the stock CLI, killed %d times: %s", len(peer.Kills), peer.Counts))
		}
		for _, why := range broken {
			holds = false
			lines = append(lines, "  BROKEN "+why)
		}
	}
	if len(lines) == 0 {
		return false, fmt.Errorf("there is no claim %q", only)
	}
	fmt.Println(strings.Join(lines, "\n"))
	return holds, nil
}
