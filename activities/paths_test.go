package activities

import "testing"

func TestPathsInTextsOfTheProgramAreTheProjectsOwn(t *testing.T) {
	for _, c := range []struct{ dir, text, want string }{
		{"/w/b/95ca", "at file:///w/b/95ca/src/index.ts:23:7", "at src/index.ts:23:7"},
		{"/w/b/95ca", "/w/b/95ca/src/a.ts:1 and /w/b/95ca/b.ts:2", "src/a.ts:1 and b.ts:2"},
		{"/w/b/95ca/apps/web", "/w/b/95ca/apps/web/a.ts:1 /w/b/95ca/lib/b.ts:2", "a.ts:1 ../../lib/b.ts:2"},
		{"/w/b/95ca", "/w/b/95caf/x", "/w/b/95caf/x"},
		{"", "/src/a.ts", "/src/a.ts"},
	} {
		s := &session{dir: c.dir}
		if c.dir != "" {
			s.place = "/w/b/95ca"
		}
		if got := s.inProject(c.text); got != c.want {
			t.Errorf("%s becomes %s", c.text, got)
		}
	}
}
