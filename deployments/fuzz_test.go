package deployments

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/values/glob"
)

// FuzzGrants compares the globs of grants with glob.Text, which knows no letters but * and ?.
func FuzzGrants(f *testing.F) {
	for _, globs := range []string{"shop/*", "*/*", "a?c/d", "a[b]/c", "a/b/c", `a\\b/c`, strings.Repeat("*a", 40) + "/x"} {
		f.Add(globs, "shop", "dev")
	}
	f.Fuzz(func(t *testing.T, pattern, project, stack string) {
		name := StackName{Organization: "acme", Project: project, Stack: stack}
		if name.Validate() != nil || validateStackGlob(pattern) != nil {
			return
		}
		of, one, _ := strings.Cut(pattern, "/")
		want := glob.Text(of, project) && glob.Text(one, stack)
		grant := Grant{Role: RoleViewer, Organization: "acme", Stacks: []string{pattern}}
		if got := grant.allows(RoleViewer, name); got != want {
			t.Errorf("%s allows %s: %v", pattern, name, got)
		}
		if grant.allows(RoleDeployer, name) {
			t.Errorf("%s allows more than its role", pattern)
		}
	})
}

// FuzzClaims has a trust look at claims of any form: whom it is for has a claim, and a condition that says something
// never holds without it.
func FuzzClaims(f *testing.F) {
	for _, claims := range []string{
		`{"sub":"repo:a/b:ref"}`, `{"sub":["x","repo:a"]}`, `{"sub":[["repo:a"]]}`, `{"sub":null}`,
		`{"sub":{"repo:":1}}`, `{"sub":1e400}`, `{"sub":true}`, `{"sub":""}`,
	} {
		f.Add("sub", "repo:*", []byte(claims))
	}
	f.Fuzz(func(t *testing.T, claim, pattern string, text []byte) {
		c := Condition{Claim: claim, Pattern: pattern}
		var claims map[string]json.RawMessage
		if c.validate() != nil || json.Unmarshal(text, &claims) != nil {
			return
		}
		trust := Trust{Organization: "acme", Audiences: []string{"a"}, Conditions: []Condition{c}}
		said, there := claims[claim]
		matches, err := NewMatching([]string{"a"}, claims).Matches(trust)
		if matches && (err != nil || !there || string(said) == "null" || string(said) == "[]" ||
			strings.HasPrefix(string(said), "{")) {
			t.Errorf("%s=%q holds for %s", claim, pattern, text)
		}
		if matches, _ := NewMatching([]string{"b"}, claims).Matches(trust); matches {
			t.Error("it is for another audience")
		}
	})
}

// FuzzDeploymentSettings judges settings of deployments; what is accepted is bounded, and stays acceptable.
func FuzzDeploymentSettings(f *testing.F) {
	for _, text := range []string{`{}`, `{"sourceContext":{"git":{"repoURL":"https://x/y","branch":"main"}}}`,
		`{"vcs":{"paths":["a/**","[b]"]}}`, `{"gitHub":{"paths":["["]}}`,
		`{"operationContext":{"preRunCommands":["a"],"environmentVariables":{"A":{"secret":"s"}}}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s DeploymentSettings
		if json.Unmarshal(text, &s) != nil || s.Validate() != nil {
			return
		}
		again, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var read DeploymentSettings
		if err := json.Unmarshal(again, &read); err != nil {
			t.Fatal(err)
		}
		if err := read.Validate(); err != nil {
			t.Errorf("%s is accepted, and then %s is not: %v", text, again, err)
		}
	})
}
