package pulumicli

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// stockFlags lists what the stock CLI accepts: a line for each command, with its flags. A unit test of the commands
// says what deployctl makes of each.
const stockFlags = "../../cmd/deployctl/internal/command/testdata/stock_cli.txt"

func TestTheListHasTheCommandsAndFlagsOfTheStockCLI(t *testing.T) {
	soaktest.Only(t)
	home := t.TempDir()
	var lines []string
	var walk func(words []string)
	walk = func(words []string) {
		cmd := exec.Command("pulumi", append(slices.Clone(words), "--help")...)
		cmd.Env = append(os.Environ(), "HOME="+home, "PULUMI_SKIP_UPDATE_CHECK=true")
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("pulumi %s --help: %v", strings.Join(words, " "), err)
		}
		commands, flags := parseHelp(string(out))
		if len(words) > 0 {
			lines = append(lines, strings.Join(append(slices.Clone(words), flags...), " "))
		}
		for _, command := range commands {
			if command != "help" && command != "completion" {
				walk(append(slices.Clone(words), command))
			}
		}
	}
	walk(nil)
	text := strings.Join(lines, "\n") + "\n"
	if *rewrite {
		if err := os.WriteFile(stockFlags, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if known, err := os.ReadFile(stockFlags); err != nil || string(known) != text || len(lines) < 50 {
		t.Errorf("the list is another one (%v); with -args -full -update it becomes\n%s", err, text)
	}
}

var (
	helpCommand = regexp.MustCompile(`^  ([a-z][a-z-]*)(\s|$)`)
	helpFlag    = regexp.MustCompile(`^\s+(?:-\w, )?(--[a-z0-9-]+)`)
)

// parseHelp returns the commands and the own flags that a page of help lists.
func parseHelp(page string) (commands, flags []string) {
	section := ""
	for line := range strings.SplitSeq(page, "\n") {
		if line != "" && !strings.HasPrefix(line, " ") {
			section = line
			continue
		}
		if m := helpCommand.FindStringSubmatch(line); m != nil && strings.HasSuffix(section, "Commands:") {
			commands = append(commands, m[1])
		}
		if m := helpFlag.FindStringSubmatch(line); m != nil && section == "Flags:" && m[1] != "--help" {
			flags = append(flags, m[1])
		}
	}
	return commands, flags
}
