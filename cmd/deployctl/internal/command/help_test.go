package command

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/urfave/cli/v2"
)

// everyCommand calls fn with each command that is not hidden, and its path.
func everyCommand(commands []*cli.Command, path []string, fn func([]string, *cli.Command)) {
	for _, c := range commands {
		if !c.Hidden {
			words := append(path[:len(path):len(path)], c.Name)
			fn(words, c)
			everyCommand(c.Subcommands, words, fn)
		}
	}
}

func TestHelpOfEveryCommandFitsEightyColumnsAndHasItsParts(t *testing.T) {
	d := newDesk(t, nil)
	everyCommand(NewApp(&console.Env{}).Commands, nil, func(words []string, c *cli.Command) {
		help := d.must(append(words, "--help")...)
		name := strings.Join(words, " ")
		if display.Widest(help) > 80 {
			t.Errorf("help of %s is %d columns wide:\n%s", name, display.Widest(help), help)
		}
		for _, part := range []string{"deployctl " + name + " - ", "USAGE:\n  deployctl " + name, "FLAGS:\n",
			"-h, --help"} {
			if !strings.Contains(help, part) {
				t.Errorf("help of %s has no %q:\n%s", name, part, help)
			}
		}
		if strings.Contains(help, " value ") && strings.Contains(help, "[$") {
			t.Errorf("help of %s is the parser's:\n%s", name, help)
		}
	})
	if help := d.must("--help"); display.Widest(help) > 80 || !strings.Contains(help, "EXIT CODES:") {
		t.Error(help)
	}
}
