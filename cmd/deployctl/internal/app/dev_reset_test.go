package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/devserver"
)

func TestAResetNamesTheStacksWhoseResourcesItLeavesBehind(t *testing.T) {
	home := t.TempDir()
	for stack, head := range map[string]string{"acme/shop/prod": `{"resources":3}`, "acme/shop/dev": `{}`,
		"acme/web/dev": `{"resources":12}`, "acme/web/bad": `{`} {
		dir := filepath.Join(home, "data", "s3", devserver.Bucket, "stacks", filepath.FromSlash(stack))
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "head.json"), []byte(head), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stacks, err := devserver.Stacks(home)
	if err != nil || len(stacks) != 3 {
		t.Fatalf("%v, %v", stacks, err)
	}
	got := resetQuestion(home, stacks)
	if !strings.Contains(got, "  acme/shop/prod: 3, with the stack itself and its providers\n  acme/web/dev: 12, ") ||
		strings.Contains(got, "shop/dev") || !strings.HasSuffix(got, "Type yes to confirm: ") {
		t.Errorf("the question is\n%s", got)
	}
	if got := resetQuestion(home, stacks[:1]); !strings.Contains(got, ": 1, none of which has resources. Type yes") {
		t.Errorf("without resources the question is\n%s", got)
	}
}
