package deployments_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// profileOf is a change that sets variables.
func profileOf(variables ...deployments.ProfileVariable) deployments.ProfileChange {
	return deployments.ProfileChange{Organization: "acme", Name: "aws", Set: variables}
}

func TestAChangeOfAProfileKeepsWhatItDoesNotName(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	change := profileOf(deployments.ProfileVariable{Name: "REGION", Value: "eu"},
		deployments.ProfileVariable{Name: "KEY", Value: "hush", Secret: true})
	about, stacks := "keys", []string{"shop/*"}
	change.Description, change.Stacks, change.By = &about, &stacks, "ann"
	first, err := deployments.Profile{}.With(change, at)
	if err != nil || first.Version != 1 || first.Description != about || first.By != "ann" || !first.Changed.Equal(at) {
		t.Fatalf("%+v, %v", first, err)
	}
	later := profileOf(deployments.ProfileVariable{Name: "KEY", Value: "open"})
	later.Removed = []string{"REGION"}
	second, err := first.With(later, at.Add(time.Hour))
	if err != nil || second.Version != 2 || !slices.Equal(second.Variables, later.Set) || second.Description != about ||
		!slices.Equal(second.Stacks, stacks) || !second.Created.Equal(at) {
		t.Errorf("%+v, %v", second, err)
	}
	if got := first.Shown().Variables[0]; got.Name != "KEY" || got.Value != "" || first.Variables[0].Value != "hush" {
		t.Errorf("it is shown with %+v, and has %+v", got, first.Variables)
	}
	for base, code := range map[int]deployments.Code{1: "", 0: deployments.CodeConflict, 2: deployments.CodeConflict} {
		later.Base = &base
		if _, err := first.With(later, at); deployments.CodeOf(err) != code {
			t.Errorf("a change of version %d: %v", base, err)
		}
	}
	if _, err := second.With(deployments.ProfileChange{Removed: []string{"REGION"}}, at); deployments.CodeOf(
		err) != deployments.CodeNotFound {
		t.Errorf("a variable that is not there is removed: %v", err)
	}
}

func TestAProfileIsForTheStacksThatItNames(t *testing.T) {
	shop := deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}
	other := shop
	other.Organization = "evil"
	for glob, is := range map[string]bool{"shop/dev": true, "shop/*": true, "*/dev": true, "sho?/dev": true,
		"shop/de": false, "*/prod": false, "hop/dev": false, "SHOP/dev": false} {
		p := deployments.Profile{Organization: "acme", Stacks: []string{"x/y", glob}}
		if p.For(shop) != is || p.For(other) {
			t.Errorf("%s: %t, and of another organization %t", glob, p.For(shop), p.For(other))
		}
	}
	if (deployments.Profile{Organization: "acme"}).For(shop) {
		t.Error("one that names no stack is for one")
	}
}

func TestAProfileCannotSetWhatTheWorkerSets(t *testing.T) {
	for _, name := range []string{"DEPLOYCTL_TOKEN", "PULUMI_ACCESS_TOKEN", "PULUMI_CONFIG", "PULUMI_CONFIG_PASSPHRASE",
		"PULUMI_HOME", "PATH", "HOME", "TMPDIR", "LD_PRELOAD", "LD_LIBRARY_PATH", "DYLD_INSERT_LIBRARIES", "XDG_RUNTIME_DIR",
		"USER", "LOGNAME", "", "A B", "A=B", "A\x00", "Ä", "A\n"} {
		err := profileOf(deployments.ProfileVariable{Name: name, Value: "x"}).Validate()
		if deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{"AWS_PROFILE", "GOPATH", "PATHS", "HTTPS_PROXY", "npm_config_registry", "A"} {
		if err := profileOf(deployments.ProfileVariable{Name: name, Value: "x\ny"}).Validate(); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestAChangeOfAProfileIsRefusedWithTheReason(t *testing.T) {
	one := deployments.ProfileVariable{Name: "A", Value: "x"}
	base := -1
	for reason, c := range map[string]deployments.ProfileChange{
		"nothing of the profile aws would change": profileOf(),
		"set or removed twice":                    profileOf(one, one),
		"is set or removed twice": {Organization: "acme", Name: "aws", Set: []deployments.ProfileVariable{one},
			Removed: []string{"A"}},
		"is not UTF-8 text":         profileOf(deployments.ProfileVariable{Name: "A", Value: "\xe9"}),
		"or has a NUL":              profileOf(deployments.ProfileVariable{Name: "A", Value: "a\x00"}),
		"cannot be the name":        {Organization: "acme", Name: "a/b", Removed: []string{"A"}},
		"not a version":             {Organization: "acme", Name: "aws", Removed: []string{"A"}, Base: &base},
		"is not a glob of stacks":   {Organization: "acme", Name: "aws", Stacks: &[]string{"*"}},
		"the organization needs a ": {Name: "aws", Removed: []string{"A"}},
	} {
		if err := c.Validate(); deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), reason) {
			t.Errorf("%s: %v", reason, err)
		}
	}
}

func TestALimitOfAProfileIsWhereItIsSaidToBe(t *testing.T) {
	many := func(n int) (list []deployments.ProfileVariable) {
		for i := range n {
			list = append(list, deployments.ProfileVariable{Name: "V" + strconv.Itoa(i)})
		}
		return list
	}
	text := func(n int) string { return strings.Repeat("a", n) }
	for name, c := range map[string]struct {
		limit int
		check func(n int) error
	}{
		"variables": {100, func(n int) error { return profileOf(many(n)...).Validate() }},
		"bytes of variables": {64 << 10, func(n int) error {
			return profileOf(deployments.ProfileVariable{Name: "A", Value: text(n - 1)}).Validate()
		}},
		"a variable's name": {200, func(n int) error {
			return profileOf(deployments.ProfileVariable{Name: text(n)}).Validate()
		}},
		"a description": {500, func(n int) error {
			about := text(n)
			return deployments.ProfileChange{Organization: "acme", Name: "aws", Description: &about}.Validate()
		}},
		"stack globs": {50, func(n int) error {
			globs := slices.Repeat([]string{"a/*"}, n)
			return deployments.ProfileChange{Organization: "acme", Name: "aws", Stacks: &globs}.Validate()
		}},
		"variables after two changes": {100, func(n int) error {
			p, err := deployments.Profile{}.With(profileOf(many(60)...), time.Time{})
			if err != nil {
				return err
			}
			_, err = p.With(profileOf(many(n)[60:]...), time.Time{})
			return err
		}},
	} {
		if err := c.check(c.limit); err != nil {
			t.Errorf("%d %s: %.300v", c.limit, name, err)
		}
		if err := c.check(c.limit + 1); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%d %s: %.300v", c.limit+1, name, err)
		}
	}
}
