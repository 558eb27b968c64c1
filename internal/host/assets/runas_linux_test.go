package assets

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

func TestWhatIsNamedIsOpenedByTheUserOfTheOrganization(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start processes of another user")
	}
	dir, err := os.MkdirTemp("", "assets-") // every user can pass through its parent
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	policy, _, err := sandbox.New(sandbox.Options{Mode: sandbox.RunAs, RunAs: "2000000000-2000000010",
		Record: filepath.Join(dir, "users.json")})
	must(t, err)
	must(t, os.Chmod(dir, 0o755)) //nolint:gosec // every user may read it
	box, err := policy.Box("mine", filepath.Join(dir, "rooms"))
	must(t, err)
	defer func() { _ = box.Close() }()
	files(t, dir, "open", "closed")
	must(t, os.Chmod(filepath.Join(dir, "open"), 0o644)) //nolint:gosec // every user may read it
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	h := in(t, dir, box)
	must(t, h.asset(t.Context(), &asset.Asset{Path: "open"}))
	must(t, h.asset(t.Context(), &asset.Asset{URI: server.URL}))
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", h.reader.process.Pid()))
	if err != nil || !strings.Contains(string(status), "Uid:\t2000") {
		t.Errorf("the process is not the organization's: %v %s", err, status)
	}
	if err := h.asset(t.Context(), &asset.Asset{Path: "closed"}); err == nil ||
		!strings.Contains(err.Error(), "permission denied") {
		t.Errorf("what the user cannot read: %v", err)
	}
}
