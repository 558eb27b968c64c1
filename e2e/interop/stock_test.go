//go:build unix

package interop

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
)

// newStock is the stock CLI in a project of h, with a file backend, with deployctl's language hosts and its provider of
// dynamic resources on PATH, and with deployctl and the fake cloud's provider as installed plugins.
func newStock(t *testing.T, h *harness.Home, project *harness.Tool) *harness.Tool {
	t.Helper()
	peers, err := harness.Peers()
	harness.Must(t, err)
	dir := t.TempDir()
	hosts, state := filepath.Join(dir, "bin"), filepath.Join(dir, "state")
	harness.Must(t, os.MkdirAll(hosts, 0o700))
	harness.Must(t, os.MkdirAll(state, 0o700))
	for _, name := range []string{"pulumi-language-nodejs", "pulumi-language-go", "pulumi-resource-pulumi-nodejs"} {
		harness.Must(t, os.Symlink(h.Binary, filepath.Join(hosts, name)))
	}
	env := append([]string{}, project.Env...)
	for i, variable := range env {
		if rest, is := strings.CutPrefix(variable, "PATH="); is {
			env[i] = "PATH=" + hosts + string(os.PathListSeparator) + rest
		}
	}
	stock := &harness.Tool{Path: filepath.Join(peers[0], "pulumi"), Dir: project.Dir,
		Env: append(env, s3Environment(t, h)...)}
	stock.Env = append(stock.Env, "PULUMI_HOME="+filepath.Join(dir, "home"), "PULUMI_BACKEND_URL=file://"+state,
		"PULUMI_SKIP_UPDATE_CHECK=true", "PULUMI_DISABLE_AUTOMATIC_PLUGIN_ACQUISITION=true")

	ours := filepath.Join(dir, "pulumi-resource-deployctl")
	if err := os.Link(h.Binary, ours); err != nil { // another file system
		text, err := os.ReadFile(h.Binary)
		harness.Must(t, err)
		harness.Must(t, os.WriteFile(ours, text, 0o700)) //nolint:gosec // an executable
	}
	stock.Must(t, "plugin", "install", "resource", "deployctl", "0.1.0", "--file", ours)
	stock.Must(t, "plugin", "install", "resource", "fake", "0.1.0", "--file",
		filepath.Join(peers[1], "pulumi-resource-fake"))
	return stock
}

// s3Environment leads the s3 provider of another engine to the embedded service's S3.
func s3Environment(t *testing.T, h *harness.Home) []string {
	t.Helper()
	access := h.S3(t)
	return []string{"AWS_ENDPOINT_URL_S3=" + access.Endpoint, "AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=" + access.AccessKey, "AWS_SECRET_ACCESS_KEY=" + access.SecretKey}
}
