package wire

import (
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/mutanttest"
)

func TestMutantsAreCaught(t *testing.T) {
	mutanttest.Play(t, []mutanttest.Mutant{
		{
			Name: "a client takes a wait for a worker for a service that is away", File: "errors.go",
			Old: "code = deployments.Code(d.GetCode())", New: "_ = d",
		},
	}, []string{"-run", "TestEveryCode", "."})
}
