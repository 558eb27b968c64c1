package project

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAProjectFileThatIsNotValidSaysWhereOnly(t *testing.T) {
	for text, want := range map[string]string{
		"name: web\nruntime: yaml\nconfig: {size: {type: nope}}\n": "#/config/size/type: ",
		"name: web\nruntime: yaml\nmain: [a]\n":                    "#/main: ",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "Pulumi.yaml"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Find(dir)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") ||
			strings.Count(err.Error(), "#/") > 2 {
			t.Errorf("%s\nis refused with: %v", text, err)
		}
	}
}
