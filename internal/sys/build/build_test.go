package build

import (
	"runtime"
	"testing"
)

func TestWhatTheLinkerSetsIsTheBuild(t *testing.T) {
	if got := Of("7"); got.Version == "" || got.Revision != "7" || got.Go != runtime.Version() ||
		got.Platform != runtime.GOOS+"/"+runtime.GOARCH {
		t.Errorf("without the linker it is %+v", got)
	}
	version, commit, date = "1.2.3", "0123abc", "2026-01-02T03:04:05Z"
	t.Cleanup(func() { version, commit, date = "", "", "" })
	if got := Of("7"); got.Version != "1.2.3" || got.Commit != "0123abc" || got.Date != "2026-01-02T03:04:05Z" {
		t.Errorf("with it, it is %+v", got)
	}
}
