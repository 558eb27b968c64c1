// Package e2e tests the built binary: real commands against real embedded services, with real language hosts, providers
// and a fake cloud, all processes of their own, which the tests kill at chosen moments.
//
// DEPLOYCTL names the binary, bin/deployctl by default. The peers are looked for on PATH, in bin, and then where
// tools/peers/build puts them.
package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/cloudtest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// binary is the deployctl under test, an absolute path; root is the repository.
var binary, root string

// mirror is where the services of homes download plugins from.
var mirror *releases

// aim plays what kills somebody at a moment that cannot be held, and tells whether it met it. What must hold after that
// must hold wherever the kill came, so that once is enough; only with -full it is played until the moment is met.
func aim(t *testing.T, rounds int, play func() (met bool)) {
	t.Helper()
	if !*soaktest.Full {
		t.Logf("the moment was met: %t", play())
		return
	}
	for range rounds {
		if play() {
			return
		}
	}
	t.Errorf("in %d rounds the moment was never met", rounds)
}

func TestMain(m *testing.M) {
	cloudtest.ExchangeIfAsked()
	if err := findBinaries(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	mirror = newReleases()
	code := m.Run()
	if err := endShared(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	mirror.Close()
	os.Exit(code)
}

// findBinaries makes sure that everything that the tests run is there, and on PATH.
func findBinaries() (err error) {
	if root, err = filepath.Abs(".."); err != nil {
		return err
	}
	bin := filepath.Join(root, "bin")
	if binary = os.Getenv("DEPLOYCTL"); binary == "" {
		binary = filepath.Join(bin, "deployctl")
	}
	for _, program := range []string{binary, binary + "-embedded"} {
		if _, err := os.Stat(program); err != nil {
			return fmt.Errorf("build it with make build: %w", err)
		}
	}
	if err := os.Setenv("PATH", os.Getenv("PATH")+":"+bin); err != nil {
		return err
	}
	for _, name := range []string{"pulumi-language-yaml", "pulumi-language-scenario", "pulumi-resource-fake",
		"fakecloud"} {
		if _, err := exec.LookPath(name); err == nil {
			continue
		}
		peers, err := exec.Command(filepath.Join(root, "tools", "peers", "build")).Output()
		if err != nil {
			return fmt.Errorf("build the peers: %w", err)
		}
		return os.Setenv("PATH", strings.TrimSpace(string(peers))+":"+os.Getenv("PATH"))
	}
	return nil
}

// shared is the service of the tests that do not kill it.
var shared struct {
	once sync.Once
	dir  string
	home *home
}

// sharedHome gives the home that such tests share. Its service starts with the first command.
func sharedHome(t *testing.T) *home {
	t.Helper()
	shared.once.Do(func() {
		dir, err := os.MkdirTemp("", "deployctl-e2e-")
		must(t, err)
		shared.dir = dir
		shared.home, err = openHome(dir)
		must(t, err)
	})
	if shared.home == nil {
		t.Fatal("the shared home could not be made")
	}
	t.Cleanup(func() { shared.home.explain(t) })
	return shared.home
}

func endShared() error {
	if shared.home == nil {
		return nil
	}
	err := shared.home.end()
	_ = os.RemoveAll(shared.dir) // nothing runs there any more
	return err
}
