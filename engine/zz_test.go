package engine

import (
	"fmt"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

func TestZZ(t *testing.T) {
	mk := func(ty, name string) urn.URN { return urn.New("dev", "flat", "", "pulumi:pulumi:Stack", "x") }
	_ = mk
	base := []State{{URN: "urn:pulumi:dev::flat::pulumi:pulumi:Stack::flat-dev", Type: "pulumi:pulumi:Stack"},
		{URN: "urn:pulumi:dev::flat::pulumi:providers:fake::default", Type: "pulumi:providers:fake", Custom: true, ID: "p"}}
	for i := range 6 {
		base = append(base, State{URN: urn.URN(fmt.Sprintf("urn:pulumi:dev::flat::fake:index:Named::n%d", i)), Type: "fake:index:Named", Custom: true, ID: "x", Parent: base[0].URN, Provider: string(base[1].URN) + "::p"})
	}
	goal := Goal{Kind: KindDestroy, Parallel: 2, Stack: "dev", Project: "flat"}
	r := New(goal, base, nil)
	for {
		cmds := r.Ready()
		for _, c := range cmds {
			if s, ok := c.(Step); ok {
				r.Handle(StepFinished{Op: s.Op, Outcome: OutcomeDone})
			}
		}
		if res, ok := r.Result(); ok {
			st, _ := r.Snapshot()
			t.Log(res, len(st))
			if len(st) > 0 {
				t.Fatal(st)
			}
			return
		}
		r.Deltas()
		data, err := r.Suspend()
		if err != nil {
			t.Fatal(err)
		}
		r, err = Resume(goal, base, nil, data)
		if err != nil {
			t.Fatal(err)
		}
	}
}
