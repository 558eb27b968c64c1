package redaction_test

import (
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/mutanttest"
)

func TestMutantsAreCaught(t *testing.T) {
	mutanttest.Play(t, []mutanttest.Mutant{
		{
			Name: "the rest of a secret that contains another one is shown", File: "redaction.go",
			Old: "return len(b) - len(a)", New: "return len(a) - len(b)",
		},
		{
			Name: "the end of a secret that is split between two texts is shown", File: "redaction.go",
			Old: "head = max(head, continued(s.tail, plain, secret))", New: "",
		},
	}, []string{"."})
}
