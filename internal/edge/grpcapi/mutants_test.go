package grpcapi_test

import (
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/mutanttest"
)

func TestMutantsAreCaught(t *testing.T) {
	mutanttest.Play(t, []mutanttest.Mutant{
		{
			Name: "a member's token gets whatever the member gets", File: "administered.go",
			Old: "t.Limit = a.limit()", New: "t.Limit = nil",
		},
		{
			Name: "an admin does not see a token that may do nothing now", File: "administered.go",
			Old: "return a.whole(t.Within()) || a.Caller.Covers(", New: "return a.Caller.Covers(",
		},
		{
			Name: "an admin removes tokens of others", File: "administered.go",
			Old: "if !over {\n\t\treturn deployments.Errorf(deployments.CodeNotFound,",
			New: "if !over && name == \"\" {\n\t\treturn deployments.Errorf(deployments.CodeNotFound,",
		},
	}, []string{"-run", "NobodyOpens", "."})
}
