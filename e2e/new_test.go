package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// fresh is an empty directory of the shared home, for a project of the test's own name.
func fresh(t *testing.T, env ...string) *project {
	t.Helper()
	return sharedHome(t).in(t.TempDir(), env...)
}

func TestANewWebsiteIsUpWithTwoCommands(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	p := fresh(t)
	said := p.must(t, "new", "website", "--yes", "--name", projectName(t))
	if !strings.Contains(said, "deployctl up") {
		t.Errorf("it does not say what is next but\n%s", said)
	}
	p.update(t, "up").expect(t, map[string]int{"create": 10})
	url, _ := p.outputs(t)["url"].(string)
	resp, err := http.Get(url)
	must(t, err)
	page, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	if resp.StatusCode != http.StatusOK || !strings.Contains(string(page), "It is up") {
		t.Errorf("%s is %s: %s", url, resp.Status, page)
	}
	p.update(t, "up").expect(t, map[string]int{})
	p.update(t, "destroy")
	p.fails(t, 2, []string{"is not empty"}, "new", "website", "--yes")
}

// TestANewProviderOfGoManagesResources builds a provider from its template, as its README says, and deploys with it.
func TestANewProviderOfGoManagesResources(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	p, name := fresh(t), projectName(t)
	p.must(t, "new", "go-provider", "--yes", "--name", name)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	must(t, err)
	p.write(t, "go.sum", string(sums))
	for _, args := range [][]string{
		{"mod", "edit", "-replace", "github.com/deployctl/deployctl=" + root},
		{"build", "-o", "bin/pulumi-resource-" + name, "."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = p.dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	notes := &noteService{notes: map[string]string{}}
	server := httptest.NewServer(notes)
	t.Cleanup(server.Close)
	p.must(t, "config", "set", name+":endpoint", server.URL)
	p.update(t, "up").expect(t, map[string]int{"create": 2})
	if got := notes.String(); strings.Count(got, "Hello") != 1 {
		t.Errorf("the notes are %s", got)
	}
	p.replaceIn(t, "Pulumi.yaml", "text: Hello", "text: Bye")
	p.update(t, "up").expect(t, map[string]int{"update": 1})
	if got := notes.String(); strings.Count(got, "Bye") != 1 || strings.Contains(got, "Hello") {
		t.Errorf("the notes are %s", got)
	}
	p.update(t, "destroy")
	if got := notes.String(); got != "map[]" {
		t.Errorf("the notes are %s", got)
	}
}

// noteService keeps the notes of the provider.
type noteService struct {
	mu    sync.Mutex
	notes map[string]string
}

func (s *noteService) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Sprint(s.notes)
}

func (s *noteService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	text, exists := s.notes[r.URL.Path]
	switch {
	case r.Method == http.MethodPut:
		body, _ := io.ReadAll(r.Body)
		s.notes[r.URL.Path] = string(body)
	case !exists:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(s.notes, r.URL.Path)
	default:
		_, _ = io.WriteString(w, text)
	}
}
