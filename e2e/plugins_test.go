package e2e

import (
	"archive/tar"
	"compress/gzip"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// released is the version of the fake provider that is released, and not installed anywhere.
const released = "0.3.0"

// releases serves the archive of the fake provider's release, as the server of a publisher does.
type releases struct {
	*httptest.Server
	served atomic.Int32
}

func newReleases() *releases {
	r := &releases{}
	r.Server = httptest.NewServer(r)
	return r
}

func (s *releases) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const name = "pulumi-resource-fake"
	path, err := exec.LookPath(name)
	if err != nil || r.URL.Path != "/"+name+"-v"+released+"-"+runtime.GOOS+"-"+runtime.GOARCH+".tar.gz" {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	content, err := os.ReadFile(path)
	if err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	s.served.Add(1)
	zipped, _ := gzip.NewWriterLevel(w, gzip.BestSpeed) // the level is a valid one
	archive := tar.NewWriter(zipped)
	_ = archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o755, Size: int64(len(content))})
	_, _ = archive.Write(content)
	_, _ = archive.Close(), zipped.Close() // a client that sees no end fails
}

// program is one that needs the release, and has resources of these names.
func (s *releases) program(server string, names ...string) string {
	text := "packages: [{name: fake, version: " + released + ", server: '" + server + "'}]\nsteps:\n"
	for _, name := range names {
		text += "  - {register: " + name + ", type: fake:index:Named, properties: {name: " + name + "}}\n"
	}
	return text
}

// withoutPlugins returns the environment of a machine that has the language host of scenarios, and no other plugin.
func withoutPlugins(t *testing.T) []string {
	t.Helper()
	only := t.TempDir()
	path, err := exec.LookPath("pulumi-language-scenario")
	must(t, err)
	must(t, os.Symlink(path, filepath.Join(only, "pulumi-language-scenario")))
	return []string{"PATH=" + only, "PULUMI_HOME=" + t.TempDir()}
}

// TestAPluginIsDownloadedForAnUpdateAndPinned runs on a service whose downloads come from the mirror of the tests.
func TestAPluginIsDownloadedForAnUpdateAndPinned(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	s.env = append(s.env, withoutPlugins(t)...)
	s.write(t, "scenario.yaml", mirror.program("", "one"))
	if said := s.must(t, "up", "--yes", "--skip-preview"); !strings.Contains(said,
		"Downloaded provider plugin pulumi-resource-fake v"+released+" from "+mirror.URL) {
		t.Errorf("it says\n%s", said)
	}
	s.update(t, "up").expect(t, map[string]int{"same": 2})

	s.must(t, "plugin", "install", "resource", "fake", released)
	if said := s.must(t, "plugin", "ls"); !strings.Contains(said, released) {
		t.Errorf("installed are\n%s", said)
	}
	s.must(t, "install")
	lock, err := os.ReadFile(s.path("deployctl.lock"))
	must(t, err)
	digest := regexp.MustCompile(`: [0-9a-f]{64}\n`)
	if !digest.Match(lock) {
		t.Fatalf("the lock is\n%s", lock)
	}
	s.must(t, "plugin", "rm", "resource", "fake", "--yes")
	s.update(t, "up").expect(t, map[string]int{"same": 2})
	s.write(t, "deployctl.lock", digest.ReplaceAllString(string(lock), ": "+strings.Repeat("0", 64)+"\n"))
	s.fails(t, 1, []string{"has changed", "the one in deployctl.lock is 0000"}, "up", "--yes", "--skip-preview")
	s.stateKnows(t)
}

// TestAWorkerTakesAPluginThatAnotherOneDownloadedFromTheBucket runs a service in parts, whose workers may download from
// the address that the program names.
func TestAWorkerTakesAPluginThatAnotherOneDownloadedFromTheBucket(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h, publisher := newHome(t), newReleases()
	defer publisher.Close()
	h.in(h.dir).must(t, "dev", "--background")
	settings, status := h.parts(t)
	h.in(h.dir).must(t, "dev", "stop")
	listen := porttest.Address(t)
	settings = append(append(settings, withoutPlugins(t)...), "DEPLOYCTL_PLUGINS_DOWNLOAD=auto")
	service := h.in(h.dir, settings...)
	service.start(t, "dev", "s3", "--home", status.Home)
	service.start(t, "dev", "temporal", "--home", status.Home)
	service.start(t, "serve", "--listen", listen).says(t, "serving")
	healthy(t, listen)
	s := newStage(t, h, "DEPLOYCTL_SERVER="+listen, "DEPLOYCTL_TOKEN=the-first-token")
	s.must(t, "config", "set", "fake:endpoint", s.cloud.URL())
	s.write(t, "scenario.yaml", publisher.program(publisher.URL, "one"))

	refusing := service.start(t, "worker")
	s.fails(t, 1, []string{"the server 127.0.0.1 has no public address", "plugins.private-hosts"},
		"up", "--yes", "--skip-preview")
	refusing.interrupt(t)
	refusing.mustEnd(t, 0)
	if n := publisher.served.Load(); n != 0 {
		t.Errorf("the server was asked %d times", n)
	}

	service.env = append(service.env, "DEPLOYCTL_PLUGINS_PRIVATE_HOSTS=127.0.0.1")
	first := service.start(t, "worker")
	s.must(t, "up", "--yes", "--skip-preview")
	first.interrupt(t)
	first.mustEnd(t, 0)
	publisher.Close()

	service.start(t, "worker")
	s.write(t, "scenario.yaml", publisher.program(publisher.URL, "one", "two"))
	s.update(t, "up").expect(t, map[string]int{"same": 2, "create": 1})
	if n := publisher.served.Load(); n != 1 {
		t.Errorf("it was downloaded %d times", n)
	}
}
