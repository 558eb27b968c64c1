package access

import (
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/mutanttest"
)

func TestMutantsAreCaught(t *testing.T) {
	mutanttest.Play(t, []mutanttest.Mutant{
		{
			Name: "a member is one of every organization", File: "members.go",
			Old: `bucket.Key("members", organization, name)`, New: `bucket.Key("members", ofEvery, name)`,
		},
		{
			Name: "a token is that of a later member of its member's name", File: "tokens.go",
			Old: "err == nil && !member.Created.Equal(t.Since)", New: "err == nil && t.Since.IsZero()",
		},
	}, []string{"-run", "SameName", "."})
}
