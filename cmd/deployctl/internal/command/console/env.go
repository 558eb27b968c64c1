package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
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
	// Screen is the terminal of Out, nil if Out is none, or one that knows no cursor. Interactive says that In and Out are
	// terminals. Hidden reads a line from In without showing it; nil if In is no terminal.
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
	Command     string       // the name of the command, as in deployctl stack ls
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

// Report prints an error, unless that was done.
func (s *Env) Report(err error) {
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
