package storetest

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// damagedObjects checks that lists show what can be read, and name what cannot.
func damagedObjects(t *testing.T, f fixture) {
	f.create(t)
	ok(t, f.CreateStack(t.Context(), prod, nil))
	for n := 1; n <= 3; n++ {
		ok(t, f.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(n), Status: "succeeded"}))
	}
	for _, name := range []string{"ann", "bob"} {
		_, err := f.Access.CreateToken(t.Context(), deployments.Token{Name: name, Grant: &adminOfAll})
		ok(t, err)
	}
	f.damage(t, "stacks/organization/web/dev/history/2147483645") // of update 2
	f.damage(t, "tokens/ann")
	for _, name := range []string{"eve", "fay"} {
		ok(t, f.Access.GrantMember(t.Context(), name, adminOfAll))
	}
	f.damage(t, "members/_/eve")
	f.put(t, "tokens/stray/update", "x")
	f.put(t, "stacks/README", "x")
	f.put(t, "stacks/organization/web/not a stack/head.json", "x")

	list, err := f.Updates.History(t.Context(), dev, 0)
	ok(t, err)
	if len(list) != 3 || list[0].Status != "succeeded" || list[1].Status != "damaged" || list[1].Update != up(2) ||
		list[2].Update != up(1) ||
		!strings.Contains(list[1].Error, "remove the object") {
		t.Errorf("the history is %+v", list)
	}
	tokens, err := f.Access.ListTokens(t.Context())
	ok(t, err)
	if len(tokens) != 3 || tokens[0].Name != "ann" || tokens[0].Damaged == "" || tokens[1].Name != "bob" ||
		tokens[1].Damaged != "" ||
		tokens[2].Damaged == "" {
		t.Errorf("the tokens are %+v", tokens)
	}
	ok(t, f.Access.RemoveToken(t.Context(), "ann"))
	members, err := f.Access.ListMembers(t.Context())
	ok(t, err)
	if len(members) != 2 || members[0].Name != "eve" || members[0].Damaged == "" || members[1].Damaged != "" {
		t.Errorf("the members are %+v", members)
	}
	ok(t, f.Access.RemoveMember(t.Context(), "eve", deployments.AnyOrganization))
	ok(t, f.Access.GrantMember(t.Context(), "eve", adminOfAll))

	f.damage(t, "stacks/organization/web/dev/head.json")
	stacks, err := f.ListStacks(t.Context(), "", "")
	ok(t, err)
	if len(stacks) != 2 || stacks[0].Stack != dev || !strings.Contains(stacks[0].Damaged,
		"stacks/organization/web/dev/head.json is damaged") ||
		!strings.Contains(stacks[0].Damaged, "put back") || stacks[1].Stack != prod || stacks[1].Damaged != "" {
		t.Errorf("the stacks are %+v", stacks)
	}
	_, err = f.Stack(t.Context(), dev)
	wantCode(t, err, deployments.CodeFormat)
}

// damage cuts an object short.
func (f fixture) damage(t *testing.T, key string) {
	t.Helper()
	o, err := f.objects.Get(t.Context(), key)
	ok(t, err)
	f.put(t, key, string(o.Data[:len(o.Data)/2]))
}

func (f fixture) put(t *testing.T, key, content string) {
	t.Helper()
	_, err := f.objects.Put(t.Context(), key, []byte(content), bucket.Condition{})
	ok(t, err)
}
