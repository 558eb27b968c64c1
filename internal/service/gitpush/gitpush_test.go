package gitpush

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

const (
	secret = "the-secret-of-the-webhook"
	hash   = "9c3a2b5759a8cba982833e2ae2c1502ed92d19e3"
)

func message(body string, headers ...string) Message {
	m := Message{Header: http.Header{}, Body: []byte(body)}
	for i := 0; i < len(headers); i += 2 {
		m.Header.Set(headers[i], headers[i+1])
	}
	return m
}

func TestAMessageIsFromTheHolderOfTheSecret(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	hub := func(key, body string) string { return "sha256=" + hex.EncodeToString(sum([]byte(key), []byte(body))) }
	standard := func(key []byte, at time.Time) Message {
		stamp := fmt.Sprint(at.Unix())
		signature := "v1," + base64.StdEncoding.EncodeToString(sum(key, []byte("7."+stamp+".{}")))
		return message("{}", "Webhook-Id", "7", "Webhook-Timestamp", stamp, "Webhook-Signature", "v1,AAAA "+signature)
	}
	right := map[string]Message{
		"GitHub's signature": message("{}", "X-Hub-Signature-256", hub(secret, "{}")),
		"GitLab's token":     message("{}", "X-Gitlab-Token", secret),
		"GitLab's signature": standard([]byte(secret), now.Add(-time.Minute)),
	}
	for what, m := range right {
		if !m.From(secret, now) {
			t.Errorf("%s is refused", what)
		}
		if m.From(secret+"x", now) || m.From("", now) {
			t.Errorf("%s is taken for another secret", what)
		}
	}
	for what, m := range map[string]Message{
		"nothing": message("{}"), "another body": message("{ }", "X-Hub-Signature-256", hub(secret, "{}")),
		"another key":                  message("{}", "X-Hub-Signature-256", hub("x", "{}")),
		"no hex":                       message("{}", "X-Hub-Signature-256", "sha256=zz"),
		"another token":                message("{}", "X-Gitlab-Token", "x"),
		"an old signature":             standard([]byte(secret), now.Add(-time.Hour)),
		"a wrong signature with token": message("{}", "X-Hub-Signature-256", "sha256=00", "X-Gitlab-Token", secret),
	} {
		if m.From(secret, now) {
			t.Errorf("%s is taken", what)
		}
	}
	key := "whsec_" + base64.StdEncoding.EncodeToString([]byte("a key of GitLab"))
	if !standard([]byte("a key of GitLab"), now).From(key, now) {
		t.Error("a signature with a key in base64 is refused")
	}
}

func TestMessagesSayWhatIsDeployed(t *testing.T) {
	commits := `"commits":[{"added":["a/b"],"removed":["c"],"modified":["d"]}]`
	paths := []string{"a/b", "c", "d"}
	for name, c := range map[string]struct {
		kind, body string
		want       *Event
	}{
		"a push": {"push", `{"ref":"refs/heads/main","after":"` + hash + `","repository":{"full_name":"acme/shop"},` + commits +
			`}`, &Event{Repository: "acme/shop", Branch: "main", Commit: hash, Paths: paths}},
		"a tag":              {"push", `{"ref":"refs/tags/main","after":"` + hash + `"}`, nil},
		"a deleted branch":   {"push", `{"ref":"refs/heads/x","deleted":true,"after":"` + strings.Repeat("0", 40) + `"}`, nil},
		"an option, no hash": {"push", `{"ref":"refs/heads/main","after":"--upload-pack=x"}`, nil},
		"a ping":             {"ping", `{}`, nil},
		"a pull request": {"pull_request", `{"action":"synchronize","number":7,"pull_request":{"head":{"sha":"` + hash +
			`","ref":"x","repo":{"full_name":"acme/shop"}},"base":{"ref":"main","repo":{"full_name":"acme/shop"}}}}`,
			&Event{Repository: "acme/shop", Branch: "main", Commit: hash, PullRequest: 7}},
		"a pull request of a stranger": {"pull_request", `{"action":"opened","number":7,"pull_request":{"head":{"sha":"` +
			hash + `","repo":{"full_name":"eve/shop"}},"base":{"ref":"main","repo":{"full_name":"acme/shop"}}}}`,
			&Event{Repository: "acme/shop", Branch: "main", Commit: hash, PullRequest: 7, Foreign: true}},
		"a closed pull request": {"pull_request", `{"action":"closed"}`, nil},
		"a push to GitLab": {"Push Hook", `{"ref":"refs/heads/main","after":"` + hash + `","checkout_sha":"` + hash +
			`","total_commits_count":1,"project":{"path_with_namespace":"acme/shop"},` + commits + `}`,
			&Event{Repository: "acme/shop", Branch: "main", Commit: hash, Paths: paths}},
		"a push to GitLab of many commits": {"Push Hook", `{"ref":"refs/heads/main","after":"` + hash + `","checkout_sha":"` +
			hash + `","total_commits_count":21,"project":{"path_with_namespace":"acme/shop"},` + commits + `}`,
			&Event{Repository: "acme/shop", Branch: "main", Commit: hash}},
		"a merge request": {"Merge Request Hook", `{"project":{"path_with_namespace":"acme/shop"},"object_attributes":{"iid":3,
			"action":"open","target_branch":"main","source_project_id":1,"target_project_id":2,"last_commit":{"id":"` + hash +
			`"}}}`, &Event{Repository: "acme/shop", Branch: "main", Commit: hash, PullRequest: 3, Foreign: true}},
		"commits for a merge request": {"Merge Request Hook", `{"project":{"path_with_namespace":"acme/shop"},
			"object_attributes":{"iid":3,"action":"update","oldrev":"` + strings.Repeat("1", 40) + `","target_branch":"main",
			"last_commit":{"id":"` + hash + `"}}}`, &Event{Repository: "acme/shop", Branch: "main", Commit: hash,
			PullRequest: 3}},
		"a new title of a merge request": {"Merge Request Hook", `{"object_attributes":{"action":"update","last_commit":{
			"id":"` + hash + `"}}}`, nil},
	} {
		header := "X-Github-Event"
		if strings.Contains(c.kind, "Hook") {
			header = "X-Gitlab-Event"
		}
		got, err := message(c.body, header, c.kind).Event()
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	if _, err := message("{", "X-Github-Event", "push").Event(); err == nil {
		t.Error("a message that is no JSON is read")
	}
}

func TestAMessageOfAServerBelowAPathIsOfItsRepository(t *testing.T) {
	const hub = `{"ref":"refs/heads/main","after":"` + hash + `","repository":{"full_name":"acme/shop",
		"clone_url":"https://host/gitea/acme/shop.git","ssh_url":"git@host:gitea/acme/shop.git"}}`
	const request = `{"action":"opened","number":7,"pull_request":{"head":{"sha":"` + hash + `"},"base":{"ref":"main",
		"repo":{"full_name":"acme/shop","clone_url":"https://host/gitea/acme/shop.git"}}}}`
	const lab = `{"ref":"refs/heads/main","after":"` + hash + `","checkout_sha":"` + hash + `","project":{
		"path_with_namespace":"acme/shop","git_http_url":"https://host/gitlab/acme/shop.git",
		"git_ssh_url":"ssh://git@host:2222/acme/shop.git"}}`
	const merge = `{"project":{"path_with_namespace":"acme/shop","git_http_url":"https://host/gitlab/acme/shop.git"},
		"object_attributes":{"action":"open","target_branch":"main","last_commit":{"id":"` + hash + `"}}}`
	for _, c := range []struct {
		header, kind, body, url string
		want                    bool
	}{
		{"X-Github-Event", "push", hub, "https://inside:3000/gitea/acme/shop.git", true},
		{"X-Github-Event", "push", hub, "git@host:gitea/acme/shop", true},
		{"X-Github-Event", "push", hub, "https://host/acme/shop", true},
		{"X-Github-Event", "push", hub, "https://host/other/acme/shop", false},
		{"X-Github-Event", "push", hub, "https://host/shop", false},
		{"X-Github-Event", "pull_request", request, "https://host/gitea/acme/shop", true},
		{"X-Gitlab-Event", "Push Hook", lab, "https://host/gitlab/acme/shop.git", true},
		{"X-Gitlab-Event", "Push Hook", lab, "https://host/gitea/acme/shop.git", false},
		{"X-Gitlab-Event", "Merge Request Hook", merge, "https://host/gitlab/Acme/Shop.git", true},
	} {
		e, err := message(c.body, c.header, c.kind).Event()
		if err != nil {
			t.Fatal(err)
		}
		u, err := deployments.GitURL(c.url)
		if err != nil || e.Of(u) != c.want {
			t.Errorf("%s: %+v of %s: %v, %v", c.kind, e, c.url, !c.want, err)
		}
	}
}

func TestAMessageSaysItsAgeInWhatIsSigned(t *testing.T) {
	now, at := time.Unix(1_700_000_000, 0), time.Unix(1_600_000_000, 0)
	const hub, kind = "X-Hub-Signature-256", "X-Github-Event"
	for name, c := range map[string]struct {
		message Message
		want    time.Time
	}{
		"a push": {message(`{"repository":{"pushed_at":1600000000}}`, hub, "x", kind, "push"), at},
		"a pull request": {message(`{"repository":{"pushed_at":"2020-09-13T12:26:41Z"},"pull_request":{"updated_at":
			"2020-09-13T12:26:40Z"}}`, hub, "x", kind, "pull_request"), at},
		"a push without a time":         {message(`{"repository":{}}`, hub, "x", kind, "push"), time.Time{}},
		"a time that is none":           {message(`{"repository":{"pushed_at":{}}}`, hub, "x", kind, "push"), time.Time{}},
		"a pull request without a time": {message(`{"repository":{}}`, hub, "x", kind, "pull_request"), time.Time{}},
		"no JSON":                       {message(`{`, hub, "x", kind, "push"), time.Time{}},
		"a header beside the signature": {message(`{}`, hub, "x", kind, "push", "Webhook-Timestamp", "1600000000",
			"Webhook-Signature", "x"), time.Time{}},
		"GitLab's signature": {message(`{}`, "Webhook-Signature", "x", "Webhook-Timestamp", "1600000000"), at},
		"GitLab's token":     {message(`{"repository":{"pushed_at":1600000000}}`, "X-Gitlab-Token", secret), now},
	} {
		if got := c.message.Happened(now); !got.Equal(c.want) {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestADeliveryIsKnownByWhatItsSenderVouchesFor(t *testing.T) {
	const hub, standard, token = "X-Hub-Signature-256", "Webhook-Signature", "X-Gitlab-Token"
	same := func(a, b Message) bool { return a.Digest() == b.Digest() }
	for name, c := range map[string]struct {
		one, other Message
		same       bool
	}{
		"another id of GitHub": {message("{}", hub, "x", "X-Github-Delivery", "1"), message("{}", hub, "x",
			"X-Github-Delivery", "2"), true},
		"another body": {message("{}", hub, "x"), message("{ }", hub, "x"), false},
		"an id beside GitHub's signature": {message("{}", hub, "x"), message("{}", hub, "x", standard, "x", "Webhook-Id", "1",
			"Idempotency-Key", "1"), true},
		"an equal push to GitLab": {message("{}", standard, "x", "Webhook-Id", "1"), message("{}", standard, "x",
			"Webhook-Id", "2"), false},
		"a delivery that GitLab repeats": {message("{}", standard, "x", "Webhook-Id", "1", "Webhook-Timestamp", "1"),
			message("{}", standard, "y", "Webhook-Id", "1", "Webhook-Timestamp", "2"), true},
		"a key beside GitLab's signature": {message("{}", standard, "x", "Webhook-Id", "1"), message("{}", standard, "x",
			"Webhook-Id", "1", "Idempotency-Key", "2"), true},
		"an equal push with the token": {message("{}", token, "x", "Idempotency-Key", "1"), message("{}", token, "x",
			"Idempotency-Key", "2"), false},
		"a delivery with the token that is repeated": {message("{}", token, "x", "Idempotency-Key", "1"), message("{}",
			token, "x", "Idempotency-Key", "1"), true},
	} {
		if same(c.one, c.other) != c.same {
			t.Errorf("%s: the same is %v", name, !c.same)
		}
	}
}

func TestOneSchemeCountsForAllOfAMessage(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	stamp := fmt.Sprint(now.Unix())
	signature := "v1," + base64.StdEncoding.EncodeToString(sum([]byte(secret), []byte("7."+stamp+".{}")))
	signed := []string{"Webhook-Id", "7", "Webhook-Timestamp", stamp, "Webhook-Signature", signature}
	if !message("{}", signed...).From(secret, now) {
		t.Fatal("a signed message is refused")
	}
	for _, hub := range []string{"x", "sha1=00", "sha256="} {
		if message("{}", append(signed, "X-Hub-Signature-256", hub)...).From(secret, now) {
			t.Errorf("with %q, it is taken as one of GitLab, and remembered as one of GitHub", hub)
		}
	}
}

func TestPathsSelectPushes(t *testing.T) {
	e := Event{Paths: []string{"infra/prod/main.ts", "README.md"}}
	for pattern, want := range map[string]bool{
		"infra": true, "infra/": true, "infra/**": true, "**/*.ts": true, "*.md": true, "infra/*": true, "app/**": false,
		"*.ts": false, "infra/dev/**": false, "[": false,
	} {
		if got := touches(t, e, pattern); got != want {
			t.Errorf("%s: %v", pattern, got)
		}
	}
	if !touches(t, e) || !touches(t, Event{}, "x") {
		t.Error("without patterns, or when the files are not known, nothing is deployed")
	}
}

func touches(t *testing.T, e Event, patterns ...string) bool {
	t.Helper()
	is, err := e.Touches(t.Context(), patterns)
	if err != nil {
		t.Fatal(err)
	}
	return is
}

// It ends: a matcher that tries each ** at each depth would take longer than the test.
func TestAPatternWithManyStarsIsComparedWithADeepPath(t *testing.T) {
	deep := Event{Paths: []string{strings.Repeat("a/", 400) + "a"}}
	if touches(t, deep, strings.Repeat("**/a/", 12)+"z") {
		t.Error("a path without z matches")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := deep.Touches(ended, []string{"z"}); err == nil {
		t.Error("paths are compared for a caller who has gone")
	}
}

func TestAPushOfMoreFilesThanAreComparedTouchesAll(t *testing.T) {
	for size, known := range map[int]bool{mostNames: true, mostNames + 1: false} {
		paths := changed([]commit{{Added: []string{strings.Repeat("a", size)}}}, true)
		if (paths != nil) != known || touches(t, Event{Paths: paths}, "x") == known {
			t.Errorf("with %d bytes of names, the files are known: %v", size, paths != nil)
		}
	}
}

func FuzzEvents(f *testing.F) {
	f.Add("push", []byte(`{"ref":"refs/heads/main","after":"`+hash+`"}`))
	f.Add("Merge Request Hook", []byte(`{"object_attributes":{"action":"open","last_commit":{"id":"`+hash+`"}}}`))
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		m := Message{Header: http.Header{"X-Github-Event": {kind}}, Body: body}
		if e, err := m.Event(); err == nil && e != nil && !isCommit(e.Commit) {
			t.Errorf("the commit is %q", e.Commit)
		}
	})
}
