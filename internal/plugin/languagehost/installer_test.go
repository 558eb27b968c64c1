package languagehost

import (
	"slices"
	"strings"
	"testing"
)

func TestThePackageManagerIsTheOneWhoseLockFileIsThere(t *testing.T) {
	const npmCI = "npm ci --loglevel=error --no-audit --no-fund --no-update-notifier"
	for _, c := range []struct {
		named, files, want string
		scripts            bool
	}{
		{"", "", "npm install --loglevel=error --no-audit --no-fund --no-update-notifier --ignore-scripts", false},
		{"", "package-lock.json", npmCI, true},
		{"", "pnpm-lock.yaml package-lock.json", "pnpm install --frozen-lockfile --ignore-scripts", false},
		{"", "yarn.lock", "yarn install --frozen-lockfile", false},
		{"", "bun.lock", "bun install --frozen-lockfile --ignore-scripts", false},
		{"", "bun.lockb", "bun install --frozen-lockfile", true},
		{"", "bun.lock package-lock.json", npmCI + " --ignore-scripts", false},
		{"bun", "package-lock.json", "bun install --ignore-scripts", false},
		{"pnpm", "bun.lock", "pnpm install --ignore-scripts", false},
		{"deno", "", "", false},
	} {
		files := strings.Fields(c.files)
		manager, args, err := node{executable: "node", scripts: c.scripts}.installer(c.named, func(names ...string) bool {
			return slices.ContainsFunc(names, func(name string) bool { return slices.Contains(files, name) })
		})
		got := strings.TrimSpace(manager + " " + strings.Join(args, " "))
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%q with %q: %q, %v", c.named, c.files, got, err)
		}
	}
}

func TestProgramsOfBunGetTheirPackagesFromBun(t *testing.T) {
	none := func(...string) bool { return false }
	manager, args, err := node{executable: "bun"}.installer("", none)
	if got := strings.Join(append([]string{manager}, args...), " "); got != "bun install --ignore-scripts" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
}
