// Package modeltest runs the engine against a fake cloud with random programs, completion orders, failures, crashes
// and suspensions, and compares what it ends in with a small sequential model. It shares only value types with the
// engine.
package modeltest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/engine"
)

// declared is a resource of a random program. Its number says how it behaves: by number modulo three, a new size is
// an update, a replacement, or a replacement that deletes first; if odd, another value from a dependency replaces too.
type declared struct {
	number int
	suffix string // a new one renames it
	size   int
	deps   []int // by property, all earlier in the program
	after  []int // by dependsOn

	protect, retain bool
}

func (d declared) name() string { return fmt.Sprintf("r%d%s", d.number, d.suffix) }

func (d declared) urn() urn.URN { return urn.New("dev", "proj", "", kind, d.name()) }

const kind = "test:x:R"

// numberOf tells which resource a URN is, by whatever name.
func numberOf(u urn.URN) int { return int(u.Name()[1] - '0') }

func deletesFirst(n int) bool { return n%3 == 2 }

// change is what a provider says about new inputs.
func change(n int, old, now string) engine.ChangeKind {
	was, is := strings.Fields(old), strings.Fields(now)
	switch {
	case old == now:
		return engine.ChangeNone
	case was[0] != is[0] && n%3 != 0, n%2 == 1 && !slices.Equal(was[1:], is[1:]):
		return engine.ChangeReplace
	}
	return engine.ChangeUpdate
}

// dependsOn reports that a state has a property that comes from one of some URNs.
func dependsOn(s engine.State, on map[int]bool) bool {
	return slices.ContainsFunc(s.PropertyDependencies, func(p engine.PropertyDependency) bool {
		return slices.ContainsFunc(p.URNs, func(u urn.URN) bool { return on[numberOf(u)] })
	})
}

// expected says of every resource whether a successful update keeps its id ("" when it must get a new one), given the
// stored states and the program in order of registration. It is the sequential reading of what the engine does in
// parallel.
func expected(base []engine.State, program []declared) map[urn.URN]string {
	old, order := map[int]engine.State{}, []int{}
	for _, s := range base {
		if !s.Delete {
			old[numberOf(s.URN)] = s
			order = append(order, numberOf(s.URN))
		}
	}
	ids := map[int]string{}
	decided, doomed := map[int]bool{}, map[int]bool{}
	for _, d := range program {
		s, stored := old[d.number]
		decided[d.number] = true
		ids[d.number] = ""
		if !stored || s.PendingReplacement || doomed[d.number] {
			continue
		}
		switch change(d.number, s.Inputs.Digest, inputs(d, ids)) {
		case engine.ChangeReplace:
			if !deletesFirst(d.number) {
				continue
			}
			members := map[int]bool{d.number: true}
			for _, n := range order {
				if !decided[n] && n%2 == 1 && dependsOn(old[n], members) {
					members[n], doomed[n] = true, true
				}
			}
		default:
			ids[d.number] = s.ID
		}
	}
	out := map[urn.URN]string{}
	for _, d := range program {
		out[d.urn()] = ids[d.number]
	}
	return out
}

// inputs are the values of a resource, as text: its size, then what it takes from its dependencies.
func inputs(d declared, ids map[int]string) string {
	text := fmt.Sprintf("size=%d", d.size)
	for _, n := range d.deps {
		text += fmt.Sprintf(" p%d=%s", n, ids[n])
	}
	return text
}
