package session

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
)

func TestPathsInTextsOfTheProgramAreTheProjectsOwn(t *testing.T) {
	pack := project.PolicyPackDir(1, "/home/ann/policies/aws")
	for _, c := range []struct{ dir, text, want string }{
		{"/w/b/95ca", "at file:///w/b/95ca/src/index.ts:23:7", "at src/index.ts:23:7"},
		{"/w/b/95ca", "/w/b/95ca/src/a.ts:1 and /w/b/95ca/b.ts:2", "src/a.ts:1 and b.ts:2"},
		{"/w/b/95ca/apps/web", "/w/b/95ca/apps/web/a.ts:1 /w/b/95ca/lib/b.ts:2", "a.ts:1 ../../lib/b.ts:2"},
		{"/w/b/95ca", "/w/b/95caf/x", "/w/b/95caf/x"},
		{"", "/src/a.ts", "/src/a.ts"},
		{"/w/b/95ca", "at Pack (file:///w/b/95ca/" + pack + "/index.ts:3:4)", "at Pack (aws/index.ts:3:4)"},
		{"/w/b/95ca/apps/web", "/w/b/95ca/" + pack + "/node_modules/x.js", "aws/node_modules/x.js"},
		{"/w/b/95ca", "/w/b/17ee/node_modules/@pulumi/pulumi/x.js:1", "node_modules/@pulumi/pulumi/x.js:1"},
		{"/w/b/95ca/apps/web", "(/w/b/17ee/node_modules/y/x.js)", "(../../node_modules/y/x.js)"},
		{"/w/b/95ca", "/w/b/2b0d/node_modules/y/x.js", "aws/node_modules/y/x.js"},
		{"/w/b/95ca", "/w/b/2b0d/another.js", "/w/b/2b0d/another.js"},
	} {
		s := &Session{dir: c.dir}
		if c.dir != "" {
			s.place = "/w/b/95ca"
			s.request.PolicyPacks = []deployments.PolicyPack{{Dir: project.PolicyPackDir(0, "other")}, {Dir: pack}}
			s.showModules("/w/b/17ee/node_modules", "/w/b/95ca/node_modules")
			s.showModules("/w/b/2b0d/node_modules", "/w/b/95ca/"+pack+"/node_modules")
		}
		if got := s.inProject(c.text); got != c.want {
			t.Errorf("%s becomes %s", c.text, got)
		}
	}
}

func TestErrorsOfProvidersHaveThePathsOfTheProject(t *testing.T) {
	s := &Session{dir: "/w/b/95ca", place: "/w/b/95ca"}
	const text = "Error: no\n    at create (/w/b/95ca/index.ts:4:2)"
	if got := s.redactor(t.Context())(text); got != "Error: no\n    at create (index.ts:4:2)" {
		t.Errorf("it becomes %s", got)
	}
}
