// Command deployctl deploys infrastructure with updates that survive crashes. The same binary is the client, the
// service, the worker, the embedded service of one machine and, depending on the name that it is started with, plugins
// for other engines.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"strings"
	"syscall"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command"
	_ "github.com/deployctl/deployctl/internal/collector" // puts off the first garbage collection
	"github.com/deployctl/deployctl/internal/display"
	"github.com/deployctl/deployctl/internal/kms"
	"github.com/deployctl/deployctl/internal/project"
	"golang.org/x/term"
)

// version is set by the linker in releases.
var version = ""

func main() {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	if plugin, ok := pluginMains[name]; ok {
		os.Exit(plugin(os.Args[1:]))
	}
	os.Exit(run())
}

// run runs deployctl as a command-line tool.
func run() int {
	dir, err := os.Getwd()
	if err != nil {
		dir = "."
	}
	// An update does not end with its terminal: SIGHUP detaches, as Ctrl-C does.
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	s := &command.Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Dir: dir,
		Interactive: term.IsTerminal(int(os.Stdin.Fd())), Hidden: readHidden,
		Interrupts: interrupts, Connect: connect, Keys: openKey, More: serviceCommands, Offers: offers,
		Version: versionText(),
	}
	s.Screen = display.FindScreen(os.Stdout, s.Variable)
	return command.Main(context.Background(), s, os.Args)
}

// openKey finds a key of a key management service.
func openKey(ctx context.Context, url string) (project.Key, error) { return kms.Open(ctx, url) }

// readHidden reads a line from the keyboard without showing it.
func readHidden() (string, error) {
	text, err := term.ReadPassword(int(os.Stdin.Fd()))
	return string(text), err
}

// versionText returns the version that the linker set, or the one that Go recorded for this build.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "(unknown)"
}
