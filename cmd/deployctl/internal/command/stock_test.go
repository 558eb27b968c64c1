package command

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/urfave/cli/v2"
)

// TestEveryCommandAndFlagOfTheStockCLIIsOursOrAnswered goes through the list that e2e/pulumicli compares with the
// stock CLI of today.
func TestEveryCommandAndFlagOfTheStockCLIIsOursOrAnswered(t *testing.T) {
	list, err := os.ReadFile("testdata/stock_cli.txt")
	if err != nil {
		t.Fatal(err)
	}
	app := NewApp(&console.Env{})
	missing := func(args ...string) bool {
		_, err := Parse(app, append([]string{"deployctl"}, args...))
		return err != nil && strings.Contains(err.Error(), " has no ") && !strings.Contains(err.Error(), "stock CLI")
	}
	answered := func(args ...string) bool {
		_, err := Parse(app, append([]string{"deployctl"}, args...))
		return err != nil && strings.Contains(err.Error(), "stock CLI")
	}
	for line := range strings.Lines(string(list)) {
		words := strings.Fields(line)
		n := slices.IndexFunc(words, func(word string) bool { return strings.HasPrefix(word, "--") })
		if n < 0 {
			n = len(words)
		}
		command := words[:n]
		var last *cli.Command
		for below := app.Commands; len(below) > 0 && len(command) > 0; command = command[1:] {
			i := slices.IndexFunc(below, func(c *cli.Command) bool { return c.HasName(command[0]) })
			if i < 0 {
				break
			}
			last, below = below[i], below[i].Subcommands
		}
		if last != nil && len(last.Subcommands) == 0 && len(command) > 0 {
			continue // to ours, the next word is an argument
		}
		command = words[:n]
		switch {
		case missing(command...):
			t.Errorf("nothing is said of the command %s", strings.Join(command, " "))
		case !answered(command...):
			for _, flag := range words[n:] {
				if missing(append(slices.Clone(command), flag)...) {
					t.Errorf("nothing is said of the flag %s %s", strings.Join(command, " "), flag)
				}
			}
		}
	}
}
