package app

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/urfave/cli/v2"
)

// TestHelpIsOfTheCommandBeforeItWhereverItIsAskedFor asks every command for help before and after arguments, which are
// the names of other commands.
func TestHelpIsOfTheCommandBeforeItWhereverItIsAskedFor(t *testing.T) {
	var visit func(words []string, commands []*cli.Command)
	visit = func(words []string, commands []*cli.Command) {
		for _, c := range commands {
			path := append(slices.Clip(words), c.Name)
			lines := [][]string{append(slices.Clip(path), "-h"), append([]string{"help"}, path...),
				append([]string{"--help"}, path...)}
			if len(c.Subcommands) == 0 {
				lines = append(lines, append(slices.Clip(path), "dev", "--help"),
					append(slices.Clip(path), "stack", "init", "new", "-h"), append(slices.Clip(path), "--help", "dev"))
			}
			for _, line := range append(lines, append(slices.Clip(path), "--help")) {
				code, out, errs := runLine(t, line)
				if name := "deployctl " + strings.Join(path, " "); code != 0 || !strings.HasPrefix(out, name+" - ") {
					t.Errorf("deployctl %s: exit code %d, not the help of %s\n%.200s%s", strings.Join(line, " "), code,
						name, out, errs)
				}
			}
			visit(path, c.Subcommands)
		}
	}
	visit(nil, command.NewApp(&console.Env{More: commands(nil)}).Commands)
}

func TestHelpOfWhatIsNoCommandIsRefused(t *testing.T) {
	for _, line := range []string{"frobnicate --help", "stack frobnicate --help", "help stack frobnicate"} {
		code, out, errs := runLine(t, strings.Fields(line))
		if code != 2 || out != "" || !strings.Contains(errs, `has no command "frobnicate"`) {
			t.Errorf("deployctl %s: exit code %d\n%s%s", line, code, out, errs)
		}
	}
}

// runLine runs a command line where nothing can be reached.
func runLine(t *testing.T, line []string) (code int, out, errs string) {
	t.Helper()
	var printed, failed strings.Builder
	s := &console.Env{In: strings.NewReader(""), Out: &printed, Err: &failed, Dir: t.TempDir(), More: commands(nil)}
	code = command.Main(context.Background(), s, append([]string{"deployctl"}, line...))
	return code, printed.String(), failed.String()
}
