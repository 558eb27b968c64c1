// Package app is the program deployctl: it puts the commands together with the service, the worker and the embedded
// service.
package app

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	_ "github.com/deployctl/deployctl/cmd/deployctl/internal/collector" // puts off the first garbage collection
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/kms"
	"github.com/deployctl/deployctl/cmd/deployctl/internal/unprobed"
	"github.com/deployctl/deployctl/internal/devserver/parts"
	"github.com/deployctl/deployctl/internal/project"
	"github.com/deployctl/deployctl/internal/sys/build"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/recovery"
	"golang.org/x/term"
)

// Main runs the program and returns its exit code. Servers are those of the embedded service, or
// nil in a program without them, which leaves that service to deployctl-embedded.
func Main(servers parts.Servers) int {
	unprobed.Restore()
	hasServers = servers != nil
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if plugin, ok := pluginMains[name]; ok {
		return plugin(os.Args[1:])
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	// An update does not end with its terminal: SIGHUP detaches, as Ctrl-C does.
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	trace := &commandTrace{begun: time.Now(), caller: os.Getenv(strings.ToUpper(tracing.Header))}
	s := &console.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Dir: dir,
		Interrupts: interrupts, Connect: trace.connect, Keys: openKey, Offers: offers, Build: build.Of(recovery.Build),
		More: commands(servers),
	}
	s.Screen = display.FindScreen(os.Stdout, s.Variable)
	if term.IsTerminal(int(os.Stdin.Fd())) {
		s.Interactive, s.Hidden = term.IsTerminal(int(os.Stdout.Fd())), readHidden
	}
	code := command.Main(context.Background(), s, os.Args)
	trace.end(code)
	return code
}

// openKey finds a key of a key management service.
func openKey(ctx context.Context, url string) (project.Key, error) { return kms.Open(ctx, url) }
