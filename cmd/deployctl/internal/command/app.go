package command

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/about"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/access"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/configuration"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/newproject"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/plugin"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/schedule"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/stack"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/state"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/status"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/update"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/webhook"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// Main runs one command line and returns the process's exit code; see ExitCode. It prints errors on Err.
func Main(ctx context.Context, s *console.Env, args []string) int {
	app := NewApp(s)
	if n := len(args); n > 1 && args[n-1] == completionFlag {
		complete(ctx, s, app, args[1:n-1])
		return 0
	}
	args, err := Parse(app, args)
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	if err == nil {
		return 0
	}
	s.Report(err)
	return console.ExitCode(err)
}

// NewApp returns the tree of commands. Main runs it; generators of documentation may read it.
func NewApp(s *console.Env) *cli.App {
	commands := []*cli.Command{
		newproject.Command(s), update.UpCommand(s), update.WatchCommand(s), update.PreviewCommand(s),
		update.RefreshCommand(s), update.DestroyCommand(s), update.ImportCommand(s), update.CancelCommand(s),
		update.AttachCommand(s), update.LogsCommand(s), status.PsCommand(s), status.Command(s), update.ResolveCommand(s),
		update.SettleCommand(s), stack.Command(s, update.RebuildCommand(s), update.OrphansCommand(s)),
		state.Command(s), state.GraphCommand(s), state.WhyCommand(s),
		configuration.Command(s), schedule.Command(s), webhook.Command(s), update.DriftCommand(s), plugin.InstallCommand(s),
		plugin.Command(s), access.TokenCommand(s), access.MemberCommand(s), access.TeamCommand(s), access.TrustCommand(s),
		access.ProfileCommand(s),
		access.AuditCommand(s), status.MaintenanceCommand(s), status.QuotaCommand(s),
	}
	if s.More != nil {
		commands = append(commands, s.More(s)...)
	}
	commands = append(commands, access.WhoamiCommand(s), about.Command(s), about.SettingsCommand(s), completionCommand(s),
		about.VersionCommand(s))
	cli.HelpPrinter = printHelp
	app := &cli.App{
		Name: "deployctl", Usage: "deploy infrastructure with updates that survive crashes",
		Commands: commands, Version: s.Build.Version, HideVersion: true,
		Writer: s.Out, ErrWriter: s.Err, Reader: s.In,
		DisableSliceFlagSeparator: true,
		ExitErrHandler:            func(*cli.Context, error) {},
		OnUsageError:              usageError,
	}
	complement(app.Commands, app.Name)
	return app
}

// longNames are the other names of commands, for those who know them from the stock CLI.
var longNames = map[string]string{"cp": "copy", "delete": "remove", "init": "new", "ls": "list", "rm": "remove",
	"rm-all": "remove-all"}

// complement sets the fields that all commands have in common, and the examples of each command as its UsageText. path
// is the name of the parent command.
func complement(commands []*cli.Command, path string) {
	for _, c := range commands {
		name := path + " " + c.Name
		c.UsageText = strings.Join(examples[name], "\n")
		long := longNames[c.Name]
		if long != "" && !slices.ContainsFunc(commands, func(c *cli.Command) bool { return c.HasName(long) }) {
			c.Aliases = append(c.Aliases, long)
		}
		c.OnUsageError, c.HideHelpCommand, c.UseShortOptionHandling = usageError, true, false
		if c.Action == nil && len(c.Subcommands) > 0 {
			c.Action = cli.ShowSubcommandHelp
		}
		names := make(map[cli.Flag]string, len(c.Flags)) // to ask for a name is slow, and every command starts here
		for _, f := range c.Flags {
			names[f] = f.Names()[0]
			if b, ok := f.(*cli.BoolFlag); ok {
				b.DisableDefaultText = true // the default is always false
			}
		}
		slices.SortStableFunc(c.Flags, func(a, b cli.Flag) int { return strings.Compare(names[a], names[b]) })
		complement(c.Subcommands, name)
	}
}

// badValue matches the error of package flag about a value that does not have the type of its flag.
var badValue = regexp.MustCompile(`^invalid (?:boolean )?value ("(?:[^"\\]|\\.)*") for (?:flag )?-([^:]+): `)

func usageError(c *cli.Context, err error, _ bool) error {
	parts := badValue.FindStringSubmatch(err.Error())
	if parts == nil || c.Command == nil {
		return deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	value, name, takes := parts[1], parts[2], anotherKind
	for _, f := range c.Command.Flags {
		if slices.Contains(f.Names(), name) {
			takes = accepted(f)
		}
	}
	return deployments.Errorf(deployments.CodeInvalid, "%s takes %s, not %s; see %s --help", dashed(name), takes, value,
		c.Command.HelpName)
}

// anotherKind says that a value is not one of its flag's, where there is no word for those.
const anotherKind = "a value of another kind"

// accepted says what the values of a flag are.
func accepted(f cli.Flag) string {
	switch f.(type) {
	case *cli.IntFlag, *cli.IntSliceFlag, *cli.Int64Flag, *cli.UintFlag, *cli.Uint64Flag:
		return "a whole number"
	case *cli.Float64Flag:
		return "a number"
	case *cli.DurationFlag:
		return "a duration such as 90s or 2h"
	case *cli.BoolFlag:
		return "true or false"
	}
	return anotherKind
}
