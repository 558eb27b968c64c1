//go:build unix

package attack

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
)

// backtracking are patterns with which a matcher that tries every way does not come to an end on backtracked.
var backtracking = []string{
	strings.Repeat("**/a/", 12) + "z", strings.Repeat("*a", 24) + "z", strings.Repeat("a*", 40) + "z",
	strings.Repeat("**a", 20) + "/z",
}

var backtracked = strings.TrimSuffix(strings.Repeat("a/", 400), "/")

// slowTargets names resources, and stacks, by patterns that a simple matcher would compare for years.
func slowTargets(t *testing.T, f *field) {
	program := "packages: [{name: fake, version: 0.1.0}]\nsteps:\n  - {register: " + strings.Repeat("a", 200) +
		", type: fake:index:Tagged}\n"
	tool := f.project(t, "slowly", program, "FAKECLOUD_ENDPOINT="+f.cloud.URL())
	tool.Must(t, "up", "--yes", "--skip-preview")
	for _, pattern := range backtracking {
		for _, verb := range []string{"up", "destroy"} {
			tool.Run(t, verb, "--yes", "--skip-preview", "--target", "urn:pulumi:dev::slowly::fake:index:Tagged::"+pattern)
		}
		f.victim.Run(t, "token", "create", "slow", "--role", "viewer", "--organization", "organization", "--stacks",
			strings.ReplaceAll(pattern, "/", "")+"/*") // refused, or made
		f.victim.Run(t, "token", "rm", "slow")
	}
	tool.Must(t, "destroy", "--yes", "--skip-preview")
}

// slowFilters has pushes name files that a path filter of the settings would take years to compare with; and filters
// that are no patterns are refused when they are written.
func slowFilters(t *testing.T, f *field) {
	a := f.apart()
	write := func(filters ...string) int {
		t.Helper()
		settings, err := json.Marshal(map[string]any{
			"webhook":       map[string]any{"secret": pushKey},
			"sourceContext": map[string]any{"git": map[string]any{"repoUrl": "https://example.com/o/r.git", "branch": "main"}},
			"gitHub":        map[string]any{"repository": "o/r", "deployCommits": true, "paths": filters},
		})
		harness.Must(t, err)
		status, text, err := a.said(patient(t), http.DefaultClient, "/settings", strings.NewReader(string(settings)),
			int64(len(settings)), "Authorization", "token "+a.other)
		harness.Must(t, err)
		if status/100 != 2 && !strings.Contains(text, `"message"`) {
			t.Errorf("the settings are answered %d: %s", status, text)
		}
		return status
	}
	for _, filter := range []string{"[", "a/b[", "\\", strings.Repeat("x", 10_000), strings.Repeat("a/", 1_000)} {
		if status := write(filter); status/100 != 4 {
			t.Errorf("the filter %.20q is answered %d", filter, status)
		}
	}
	for _, filter := range backtracking {
		if write(filter)/100 == 4 {
			continue // it is refused when it is written
		}
		body := `{"ref":"refs/heads/main","after":"` + strings.Repeat("0", 39) + `1","repository":{"full_name":"o/r"},` +
			`"commits":[{"modified":["` + backtracked + `"]}]}`
		mac := hmac.New(sha256.New, []byte(pushKey))
		_, _ = io.WriteString(mac, body) // never fails
		status, text, err := a.said(patient(t), http.DefaultClient, "/push", strings.NewReader(body), int64(len(body)),
			"X-GitHub-Event", "push", "X-Hub-Signature-256", "sha256="+hex.EncodeToString(mac.Sum(nil)))
		if err != nil || status != http.StatusOK {
			t.Errorf("a push is answered %d: %s %v", status, text, err)
		}
	}
}

// hugePages asks for pages whose numbers do not fit.
func hugePages(t *testing.T, f *field) {
	a := f.apart()
	for _, path := range []string{"updates", "deployments", "updates/latest/previews"} {
		for _, size := range []string{"4611686018427387904", "9223372036854775807", "99999999999999999999", "-1"} {
			for _, page := range []string{"3", "9223372036854775807", "-9223372036854775808"} {
				url := fmt.Sprintf("/api/stacks/org/watched/dev/%s?pageSize=%s&page=%s", path, size, page)
				if status, text := f.says(t, http.MethodGet, url, "token "+a.other, ""); status/100 == 5 {
					t.Errorf("%s is answered %d: %s", url, status, text)
				}
			}
		}
	}
}

// secretWords keeps as secrets words that results and states are made of: replacing them changes nothing that the
// service decides by.
func secretWords(t *testing.T, f *field) {
	tool := f.project(t, "words", `
packages: [{name: fake, version: 0.1.0}]
steps:
  - {register: one, type: fake:index:Tagged, properties: {settings: {"mark": "[secret]"}}}
  - {register: two, type: fake:index:Tagged, properties: {settings: {"mark": "${config.word0}"}}}
`, "FAKECLOUD_ENDPOINT="+f.cloud.URL())
	for i, word := range []string{"create", "same", "StepFailed", "UnknownOutcome", "op", "[secret]", "0", "true", "urn",
		"pulumi:dev", "{", "\""} {
		tool.Must(t, "config", "set", "--secret", fmt.Sprintf("word%d", i), "--", word)
	}
	tool.Expect(t, harness.Changes{"create": 3}, "up")
	tool.Expect(t, harness.Changes{"same": 3}, "up")
	tool.Expect(t, harness.Changes{"same": 3}, "refresh")
	tool.Must(t, "destroy", "--yes", "--skip-preview")
}
