package provider

import (
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/mutanttest"
)

func TestMutantsAreCaught(t *testing.T) {
	mutanttest.Play(t, []mutanttest.Mutant{
		{
			Name: "an output that is declared secret is stored in plaintext", File: "codec.go",
			Old: "if f.secret {", New: "if false {",
		},
	}, []string{"-run", "TestAStruct", "."})
}
