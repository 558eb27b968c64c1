package statestore_test

import (
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/mutanttest"
)

func TestMutantsAreCaught(t *testing.T) {
	mutanttest.Play(t, []mutanttest.Mutant{
		{
			Name: "a claim has the fence of the one before it", File: "claim.go",
			Old: "h.Fence++", New: "",
		},
	}, []string{"-run", "Writer", "."})
}
