package command

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

// session is one run of a command.
type session struct {
	*Env
	flags    *cli.Context
	settings settings.Settings
	service  Connection

	dir     string
	project *project.Project // see needProject

	kept string // the configuration file that --config has changed

	completing bool // a shell completion: nothing is printed, asked or started

	showing sync.Mutex   // guards the next two
	view    display.View // while an update is shown
	waits   bool         // that update waits for its turn
}

// newSession returns a session that is not connected yet.
func newSession(s *Env, c *cli.Context) (*session, error) {
	loaded, err := LoadSettings(s, c)
	if err != nil {
		return nil, err
	}
	return &session{Env: s, flags: c, settings: loaded, dir: s.workingDir(c)}, nil
}

// action returns a command's action, which runs run in a session of its own.
func action(s *Env, run func(context.Context, *session) error) cli.ActionFunc {
	return func(c *cli.Context) error {
		session, err := newSession(s, c)
		if err != nil {
			return err
		}
		defer session.close()
		ctx, stop := session.interruptible(c.Context)
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

// interruptible returns a context that ends with the next interrupt.
func (s *session) interruptible(ctx context.Context) (context.Context, func()) {
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

// connect connects to the service; later calls do nothing.
func (s *session) connect(ctx context.Context) error {
	if s.service.Service != nil {
		return nil
	}
	where, restart := "the embedded service", " (if it was stopped, any deployctl command starts it again)"
	if address := s.settings.Get(settings.Server); address != "" {
		where, restart = "the service at "+address, ""
	}
	service, err := s.Connect(ctx, s.settings, Notifier{Say: s.note, Found: s.completing, Waiting: func(why string) {
		if why == "" {
			s.note(where + " answers again")
			return
		}
		s.note(why + "; waiting…")
	}, Unreachable: func(lost bool) {
		if lost {
			s.note(where + " has been unreachable since " + time.Now().Add(-client.Quiet).Format(time.TimeOnly) +
				"; waiting…" + restart)
		} else {
			s.note(where + " is reachable again")
		}
	}})
	s.service = service
	return err
}

func (s *session) close() {
	if s.service.Close != nil {
		_ = s.service.Close() // nothing is in flight
	}
}

// note prints a message to the user beside the command's output.
func (s *session) note(text string) {
	if s.completing {
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

// begin makes a view the one that shows an update, with the notes that come meanwhile.
func (s *session) begin(view display.View) {
	s.showing.Lock()
	defer s.showing.Unlock()
	s.view, s.waits = view, false
}

// show adds an event to the view.
func (s *session) show(e deployments.WatchEvent) {
	s.showing.Lock()
	defer s.showing.Unlock()
	s.waits = e.Progress != nil && e.Progress.Position > 0
	s.view.Item(e)
}

// waiting reports whether the update that is shown waits for its turn.
func (s *session) waiting() bool {
	s.showing.Lock()
	defer s.showing.Unlock()
	return s.waits
}

// end closes the view: the update has ended, or is no longer followed.
func (s *session) end() {
	s.showing.Lock()
	defer s.showing.Unlock()
	view := s.view
	s.view, s.waits = nil, false
	view.Close()
}

// say prints a line of the command's output. On a terminal, control sequences are removed from it; in a pipe it is
// printed unchanged.
func (s *session) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if s.Screen != nil {
		text = safetext.Text(text)
	}
	_, _ = fmt.Fprintln(s.Out, text)
}

// asks reports whether the command can ask the user.
func (s *session) asks() bool {
	return s.Interactive && s.Screen != nil && !s.completing && !s.flags.Bool("non-interactive") &&
		!s.flags.Bool("json")
}

// needProject loads the project of the working directory.
func (s *session) needProject() error {
	if s.project != nil {
		return nil
	}
	found, err := project.Find(s.dir)
	s.project = found
	return err
}

// initiator returns the local user and host, such as ann@laptop.
func initiator() string {
	if u, err := user.Current(); err == nil && u.Username != "" {
		if host, err := os.Hostname(); err == nil {
			return u.Username + "@" + host
		}
		return u.Username
	}
	return "unknown"
}

// secrets returns access to the secrets of a stack of the project.
func (s *session) secrets(name deployments.StackName) (*project.Secrets, error) {
	return s.secretsIn(name, s.configFileText())
}

// secretsIn returns access to the secrets of a stack whose configuration is in a file; "" is Pulumi.STACK.yaml.
func (s *session) secretsIn(name deployments.StackName, path string) (*project.Secrets, error) {
	file, err := s.project.StackIn(name.Stack, path)
	if err != nil {
		return nil, err
	}
	return &project.Secrets{Stack: file, Name: name, Service: lazySealer{s}, Passphrase: s.passphrase,
		Keys: s.Keys}, nil
}

// lazySealer encrypts and decrypts with the service. It connects at the first use: many commands need no secret.
type lazySealer struct{ s *session }

func (l lazySealer) Encrypt(ctx context.Context, name deployments.StackName, plain []string) ([]string, error) {
	if err := l.s.connect(ctx); err != nil {
		return nil, err
	}
	return l.s.service.Encrypt(ctx, name, plain)
}

func (l lazySealer) Decrypt(ctx context.Context, name deployments.StackName, sealed []string) ([]string, error) {
	if err := l.s.connect(ctx); err != nil {
		return nil, err
	}
	return l.s.service.Decrypt(ctx, name, sealed)
}

// path returns the absolute path of a file, whose name is relative to the working directory.
func (s *session) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(s.dir, name)
}

// configFileText is the path of --config-file; "" if it is not given.
func (s *session) configFileText() string {
	if text := strings.TrimSpace(s.flags.String("config-file")); text != "" {
		return s.path(text)
	}
	return ""
}
