package console

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/urfave/cli/v2"
)

// Session is one run of a command. Each command has its own.
type Session struct {
	*Env
	Flags    *cli.Context
	Settings settings.Settings
	Service  Connection // empty before Dial

	WorkDir string           // --cwd, or Env.Dir
	Project *project.Project // nil before NeedProject, and if the stack is of another project

	Kept string // the configuration file that --config has changed; Declined names it

	Completing bool // a shell completion: nothing is printed, asked or started

	showing sync.Mutex   // guards the next two
	view    display.View // while an update is shown
	waits   bool         // that update waits for its turn
}

// NewSession returns a session that is not connected yet.
func NewSession(s *Env, c *cli.Context) (*Session, error) {
	loaded, err := LoadSettings(s, c)
	if err != nil {
		return nil, err
	}
	return &Session{Env: s, Flags: c, Settings: loaded, WorkDir: s.workingDir(c)}, nil
}

// Action returns a command's action, which runs run in a session of its own.
func Action(s *Env, run func(context.Context, *Session) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		session, err := NewSession(s, c)
		if err != nil {
			return err
		}
		defer session.Close()
		ctx, stop := session.Interruptible(c.Context)
		defer stop()
		err = run(ctx, session)
		if ctx.Err() != nil && errors.Is(context.Cause(ctx), errInterrupted) && errors.Is(err, context.Canceled) {
			return errInterrupted
		}
		return err
	}
}

// workingDir returns the command's working directory: --cwd, relative to the directory in which deployctl was started.
func (s *Env) workingDir(c *cli.Context) string {
	switch cwd := c.String("cwd"); {
	case cwd == "":
		return s.Dir
	case filepath.IsAbs(cwd):
		return cwd
	default:
		return filepath.Join(s.Dir, cwd)
	}
}

// LoadSettings reads the settings for a command.
func LoadSettings(s *Env, c *cli.Context) (settings.Settings, error) {
	file, named := c.String("settings"), true
	if file == "" {
		file = s.Variable(settings.FileVariable)
	}
	if file == "" {
		file, named = settings.DefaultFile(s.Variable), false
	}
	return settings.Load(settings.Sources{
		Flag:     func(k settings.Key) (string, bool) { return c.String(k.Flag()), c.IsSet(k.Flag()) },
		Variable: s.Variable, File: file, Named: named,
	})
}

// errInterrupted is the error after Ctrl-C before anything was confirmed.
var errInterrupted = errors.New("interrupted; nothing was changed")

// Interruptible returns a context that ends with the next interrupt.
func (s *Session) Interruptible(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		select {
		case <-s.Interrupts:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}

// Dial connects to the service; later calls do nothing.
func (s *Session) Dial(ctx context.Context) error {
	if s.Service.Service != nil {
		return nil
	}
	where, restart := "the embedded service", " (if it was stopped, any deployctl command starts it again)"
	if address := s.Settings.Get(settings.Server); address != "" {
		where, restart = "the service at "+address, ""
	}
	service, err := s.Connect(ctx, s.Settings, Notifier{Command: s.Flags.Command.HelpName, Say: s.Note,
		Found: s.Completing, Waiting: func(why string) {
			if why == "" {
				s.Note(where + " answers again")
				return
			}
			s.Note(why + "; waiting…")
		}, Unreachable: func(lost bool) {
			if lost {
				s.Note(where + " has been unreachable since " + time.Now().Add(-client.Quiet).Format(time.TimeOnly) +
					"; waiting…" + restart)
			} else {
				s.Note(where + " is reachable again")
			}
		}})
	s.Service = service
	return err
}

// Close ends the connection, if there is one.
func (s *Session) Close() {
	if s.Service.Close != nil {
		_ = s.Service.Close() // nothing is in flight
	}
}

// Note prints a message to the user beside the command's output.
func (s *Session) Note(text string) {
	if s.Completing {
		return
	}
	s.showing.Lock()
	defer s.showing.Unlock()
	if s.view != nil {
		s.view.Note(safetext.Text(text))
		return
	}
	_, _ = fmt.Fprintln(s.Err, display.Fold(safetext.Text(text), s.Screen))
}

// BeginView makes a view the one that shows an update, with the notes that come meanwhile.
func (s *Session) BeginView(view display.View) {
	s.showing.Lock()
	defer s.showing.Unlock()
	s.view, s.waits = view, false
}

// ShowEvent adds an event to the view.
func (s *Session) ShowEvent(e deployments.WatchEvent) {
	s.showing.Lock()
	defer s.showing.Unlock()
	s.waits = e.Progress != nil && e.Progress.Position > 0
	s.view.Item(e)
}

// Waiting reports whether the update that is shown waits for its turn.
func (s *Session) Waiting() bool {
	s.showing.Lock()
	defer s.showing.Unlock()
	return s.waits
}

// EndView closes the view: the update has ended, or is no longer followed.
func (s *Session) EndView() {
	s.showing.Lock()
	defer s.showing.Unlock()
	view := s.view
	s.view, s.waits = nil, false
	view.Close()
}

// Say prints a line of the command's output. On a terminal, control sequences are removed from it; in a pipe it is
// printed unchanged.
func (s *Session) Say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.Screen != nil {
		text = safetext.Text(text)
	}
	_, _ = fmt.Fprintln(s.Out, text)
}

// Asks reports whether the command can ask the user.
func (s *Session) Asks() bool {
	return s.Interactive && !s.Completing && !s.Flags.Bool("non-interactive") && !s.Flags.Bool("json")
}

// NeedProject loads the project of the working directory.
func (s *Session) NeedProject() error {
	if s.Project != nil {
		return nil
	}
	found, err := project.Find(s.WorkDir)
	s.Project = found
	return err
}

// Initiator returns the local user and host, such as ann@laptop.
func Initiator() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		if host, err := os.Hostname(); err == nil {
			return u.Username + "@" + host
		}
		return u.Username
	}
	return "unknown"
}

// Secrets returns access to the secrets of a stack of the project.
func (s *Session) Secrets(name deployments.StackName) (*project.Secrets, error) {
	return s.SecretsIn(name, s.ConfigFileText())
}

// SecretsIn returns access to the secrets of a stack whose configuration is in a file; "" is Pulumi.STACK.yaml.
func (s *Session) SecretsIn(name deployments.StackName, path string) (*project.Secrets, error) {
	file, err := s.Project.StackIn(name.Stack, path)
	if err != nil {
		return nil, err
	}
	return &project.Secrets{Stack: file, Name: name, Service: lazySealer{s}, Passphrase: s.passphrase,
		Keys: s.Keys}, nil
}

// lazySealer encrypts and decrypts with the service. It connects at the first use: many commands need no secret.
type lazySealer struct{ s *Session }

func (l lazySealer) Encrypt(ctx context.Context, name deployments.StackName, plain []string) ([]string, error) {
	if err := l.s.Dial(ctx); err != nil {
		return nil, err
	}
	return l.s.Service.Encrypt(ctx, name, plain)
}

func (l lazySealer) Decrypt(ctx context.Context, name deployments.StackName, sealed []string) ([]string, error) {
	if err := l.s.Dial(ctx); err != nil {
		return nil, err
	}
	return l.s.Service.Decrypt(ctx, name, sealed)
}

// Path returns the absolute path of a file, whose name is relative to the working directory.
func (s *Session) Path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.WorkDir, name)
}

// ConfigFileText is the path of --config-file; "" if it is not given.
func (s *Session) ConfigFileText() string {
	if text := strings.TrimSpace(s.Flags.String("config-file")); text != "" {
		return s.Path(text)
	}
	return ""
}
