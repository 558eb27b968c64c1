// Package command is deployctl's command line: a file per command. It calls a local or remote deployments.Service, and
// accesses its environment only through Env, so that tests run the commands in their own process against a service in
// memory. Commands that need parts of the service itself (dev, serve, worker) are passed in.
package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/deployctl/deployctl/internal/sys/build"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/urfave/cli/v2"
)

// Env is the environment of a command: its streams, variables, directory and connection.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	// Screen is the terminal of Out, nil if Out is no terminal. Interactive says that In is a terminal too, and Hidden
	// reads a line from it without showing it.
	Screen      *display.Screen
	Interactive bool
	Hidden      func() (string, error)
	Environ     []string
	Dir         string
	// Interrupts receives Ctrl-C and SIGTERM.
	Interrupts <-chan os.Signal
	Connect    Dialer
	// Keys finds the keys of key management services that stacks use for their secrets.
	Keys project.Keys
	// More are the commands that this package does not have.
	More func(*Env) []*cli.Command
	// Offers lists the completions of an argument of a command of More; place names the argument, as in "key drop ID". nil
	// offers none.
	Offers func(ctx context.Context, s *Env, place string, flags *cli.Context) []string
	Build  build.Info

	lines *lineReader // see reader
	once  sync.Once
}

// Dialer connects to the service that the settings name. If they name none, it connects to the embedded service and
// starts it if necessary.
type Dialer func(ctx context.Context, s settings.Settings, n Notifier) (Connection, error)

// Notifier has the functions with which a connection reports its state to the user.
type Notifier struct {
	Say         func(string) // one line
	Found       bool         // connect only to a running service: do not start the embedded one
	Unreachable func(bool)   // see client.Options
	Waiting     func(string) // see client.Options
}

// Connection is a service that can be called.
type Connection struct {
	deployments.Service
	// Embedded says that the service is this user's own, on this machine.
	Embedded bool
	Close    func() error
}

// Variable returns an environment variable.
func (s *Env) Variable(name string) string {
	value, _ := s.lookup(name)
	return value
}

func (s *Env) lookup(name string) (string, bool) {
	for i := len(s.Environ) - 1; i >= 0; i-- {
		if value, ok := strings.CutPrefix(s.Environ[i], name+"="); ok {
			return value, true
		}
	}
	return "", false
}

// Color reports whether output may be coloured.
func (s *Env) Color() bool { return s.Screen != nil && s.Variable("NO_COLOR") == "" }

// Main runs one command line and returns the process's exit code; see ExitCode. It prints errors on Err.
func Main(ctx context.Context, s *Env, args []string) int {
	app := NewApp(s)
	if n := len(args); n > 1 && args[n-1] == completionFlag {
		s.complete(ctx, app, args[1:n-1])
		return 0
	}
	args, err := Parse(app, args)
	if err == nil {
		err = app.RunContext(ctx, args)
	}
	if err == nil {
		return 0
	}
	s.report(err)
	return ExitCode(err)
}

// report prints an error, unless that was done.
func (s *Env) report(err error) {
	var reported *reportedError
	if !errors.As(err, &reported) {
		_, _ = fmt.Fprintln(s.Err, display.Fold(fmt.Sprintf("%s %s", paintError(s.Color()),
			safetext.Text(err.Error())), s.Screen))
	}
}

func paintError(color bool) string {
	if color {
		return "\x1b[31merror:\x1b[0m"
	}
	return "error:"
}

// NewApp returns the tree of commands. Main runs it; generators of documentation may read it.
func NewApp(s *Env) *cli.App {
	commands := []*cli.Command{
		newCommand(s), upCommand(s), watchCommand(s), previewCommand(s), refreshCommand(s), destroyCommand(s),
		importCommand(s), cancelCommand(s), attachCommand(s), logsCommand(s), psCommand(s), statusCommand(s),
		resolveCommand(s), settleCommand(s), stackCommand(s), stateCommand(s), graphCommand(s), whyCommand(s),
		configCommand(s),
		scheduleCommand(s), webhookCommand(s), driftCommand(s), installCommand(s), pluginCommand(s), tokenCommand(s),
		memberCommand(s), teamCommand(s), trustCommand(s), auditCommand(s), maintenanceCommand(s),
	}
	if s.More != nil {
		commands = append(commands, s.More(s)...)
	}
	commands = append(commands, whoamiCommand(s), aboutCommand(s), settingsCommand(s), completionCommand(s),
		versionCommand(s))
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

// complement sets the fields that all commands have in common, and the examples of each command as its UsageText. path
// is the name of the parent command.
func complement(commands []*cli.Command, path string) {
	for _, c := range commands {
		name := path + " " + c.Name
		c.UsageText = strings.Join(examples[name], "\n")
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
