package deployments

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// TestTheStacksOfAnAuthorityAreThoseThatItMayUse compares both for random grants.
func TestTheStacksOfAnAuthorityAreThoseThatItMayUse(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	name := func(letters ...string) (text string) {
		for range 1 + random.IntN(4) {
			text += pick(letters...)
		}
		return text
	}
	allowed := 0
	for range 20_000 {
		var a Authority
		for range random.IntN(3) {
			var list []Grant
			for range random.IntN(4) {
				g := Grant{Role: roles[random.IntN(3)], Organization: pick("acme", "initech", AnyOrganization)}
				for range random.IntN(4) {
					g.Stacks = append(g.Stacks, name("a", "b", "*", "?")+"/"+name("a", "b", "*", "?"))
				}
				list = append(list, g)
			}
			a.Grants = append(a.Grants, list)
		}
		role, s := roles[random.IntN(3)], StackName{pick("acme", "initech"), name("a", "b"), name("a", "b")}
		if got, want := a.Stacks(role)(s), a.May(role, s); got != want {
			t.Fatalf("%+v allows %s of %s: %v, not %v", a, role, s, got, want)
		} else if got {
			allowed++
		}
	}
	if allowed < 1000 {
		t.Errorf("only %d of the cases are allowed", allowed)
	}
}

// BenchmarkStacks lists stacks for the member of twenty teams that have a thousand globs, each of 49 stars, together.
func BenchmarkStacks(b *testing.B) {
	text := func(n int) string {
		glob := ""
		for i := range 49 {
			glob += "*" + string(rune('a'+(n+i*7)%26))
		}
		return glob
	}
	var list []Grant
	for team := range 20 {
		g := Grant{Role: RoleViewer, Organization: "acme"}
		for n := range MaxStackGlobs {
			g.Stacks = append(g.Stacks, text(team+n)+"/"+text(team*n))
		}
		list = append(list, g)
	}
	a, s := Authority{Grants: [][]Grant{list}}, StackName{"acme", fmt.Sprintf("%0100d", 7), fmt.Sprintf("%0100d", 8)}
	b.Run("one at a time", func(b *testing.B) {
		for b.Loop() {
			a.May(RoleViewer, s)
		}
	})
	b.Run("in a list", func(b *testing.B) {
		may := a.Stacks(RoleViewer)
		for b.Loop() {
			may(s)
		}
	})
}
