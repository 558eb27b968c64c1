package command

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/sys/build"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// desk is the environment of a user: a project directory, variables, and a service in memory.
type desk struct {
	t       *testing.T
	service *memory.Service
	dir     string
	environ []string
	input   string
	hidden  []string
	person  bool // a user is at the terminal
	signals chan os.Signal
	fail    error // the error of Connect
}

const yamlProject = "name: shop\nruntime: yaml\n"

// newDesk returns a desk in an empty directory below a new home, or in a project with these files.
func newDesk(t *testing.T, files map[string]string) *desk {
	t.Helper()
	root := t.TempDir()
	d := &desk{
		t: t, service: memory.New(), dir: filepath.Join(root, "work"), signals: make(chan os.Signal, 1),
		environ: []string{"HOME=" + root, "XDG_STATE_HOME=" + filepath.Join(root, "state"), "XDG_CONFIG_HOME=" +
			filepath.Join(root, "config")},
	}
	d.write("x/.keep", "")
	for name, text := range files {
		d.write(name, text)
	}
	return d
}

func (d *desk) write(name, text string) {
	d.t.Helper()
	path := filepath.Join(d.dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		d.t.Fatal(err)
	}
	part := filepath.Join(d.t.TempDir(), "part") // renamed: nobody reads a half of it
	err := os.WriteFile(part, []byte(text), 0o644)
	if err == nil {
		err = os.Rename(part, path)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) read(name string) string {
	d.t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(text)
}

// stack creates a stack of the project and selects it.
func (d *desk) stack(name string) deployments.StackName {
	d.t.Helper()
	d.must("stack", "init", name)
	return deployments.StackName{Organization: "organization", Project: "shop", Stack: name}
}

// syncBuffer may be written and read concurrently.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// shows waits until the text was written.
func (s *syncBuffer) shows(t *testing.T, text string) {
	t.Helper()
	s.showsTimes(t, text, 1)
}

// showsTimes waits until the text was written n times.
func (s *syncBuffer) showsTimes(t *testing.T, text string, n int) {
	t.Helper()
	waittest.Until(t, fmt.Sprintf("%q is shown %d times", text, n), func() bool {
		return strings.Count(s.String(), text) >= n
	})
}

// outcome is the result of a command line.
type outcome struct {
	code     int
	out, err string
}

// run runs a command line.
func (d *desk) run(args ...string) outcome {
	var out, errs syncBuffer
	code := Main(context.Background(), d.env(&out, &errs), append([]string{"deployctl"}, args...))
	return outcome{code, out.String(), errs.String()}
}

func (d *desk) env(out, errs *syncBuffer) *console.Env {
	s := &console.Env{
		In: strings.NewReader(d.input), Out: out, Err: errs, Environ: d.environ, Dir: d.dir, Interrupts: d.signals,
		Build: build.Info{Version: "test", Commit: "0123abc", Date: "2026-01-02T03:04:05Z", Revision: "7", Go: "go1",
			Platform: "linux/amd64"},
		Connect: func(context.Context, settings.Settings, console.Notifier) (console.Connection, error) {
			return console.Connection{Service: d.service, Embedded: true}, d.fail
		},
	}
	if d.person {
		s.Interactive = true
		s.Screen = &display.Screen{Size: func() (int, int) { return 80, 24 }}
		s.Environ = append(s.Environ, "NO_COLOR=1")
		s.Hidden = func() (string, error) {
			text := d.hidden[0]
			d.hidden = d.hidden[1:]
			return text, nil
		}
	}
	return s
}

// must runs a command line that must succeed, and returns its output.
func (d *desk) must(args ...string) string {
	d.t.Helper()
	o := d.run(args...)
	if o.code != 0 {
		d.t.Fatalf("deployctl %s: exit code %d\n%s%s", strings.Join(args, " "), o.code, o.out, o.err)
	}
	return o.out
}

// refused runs a command line that must fail with this exit code and this sentence.
func (d *desk) refused(code int, sentence string, args ...string) {
	d.t.Helper()
	o := d.run(args...)
	if o.code != code || !strings.Contains(o.err, sentence) {
		d.t.Errorf("deployctl %s: exit code %d, want %d and %q\n%s%s", strings.Join(args, " "), o.code, code, sentence,
			o.out, o.err)
	}
}
