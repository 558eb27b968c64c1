package service

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service/gitpush"
	"github.com/deployctl/deployctl/statestore/jobs"
)

// patch changes the settings of the stack.
func patch(t *testing.T, s *Service, text string, by string) {
	t.Helper()
	must(t, s.PatchDeploymentSettings(t.Context(), dev, json.RawMessage(text), &deployments.Authority{
		Holders: []deployments.Holder{{Token: by}}}))
}

const gitSettings = `{"sourceContext":{"git":{"repoUrl":"https://example.com/acme/shop.git","branch":"main",
	"repoDir":"infra","gitAuth":{"accessToken":"the-token"}}},"operationContext":{"environmentVariables":{
	"A":{"secret":"the-secret"},"B":"shown"},"preRunCommands":["make"]}}`

func TestSettingsThatAreSentBackStayAsTheyAre(t *testing.T) {
	s := newService(t)
	patch(t, s, gitSettings, "ann")
	before, err := s.store.Jobs.DeploymentSettings(t.Context(), dev)
	must(t, err)
	shown, err := s.DeploymentSettings(t.Context(), dev)
	must(t, err)
	text, err := json.Marshal(shown)
	must(t, err)
	if strings.Contains(string(text), "the-") || !strings.Contains(string(text), "shown") {
		t.Errorf("the settings show %s", text)
	}
	must(t, s.RemoveDeploymentSettings(t.Context(), dev))
	patch(t, s, string(text), "ann")
	after, err := s.store.Jobs.DeploymentSettings(t.Context(), dev)
	must(t, err)
	was, _ := json.Marshal(before)
	is, _ := json.Marshal(after)
	if string(was) != string(is) {
		t.Errorf("%s\nbecame\n%s", was, is)
	}
}

func TestAPauseDoesNotChangeWhoMadeTheSettings(t *testing.T) {
	s := newService(t)
	patch(t, s, gitSettings, "ann")
	patch(t, s, `{"paused":true}`, "bob")
	settings, err := s.store.Jobs.DeploymentSettings(t.Context(), dev)
	must(t, err)
	if !settings.Paused || settings.Authority.Holders[0].Token != "ann" {
		t.Errorf("%+v", settings)
	}
	patch(t, s, `{"operationContext":{"preRunCommands":["rm -r /"]},"paused":null}`, "bob")
	settings, err = s.store.Jobs.DeploymentSettings(t.Context(), dev)
	must(t, err)
	if settings.Paused || settings.Authority.Holders[0].Token != "bob" {
		t.Errorf("%+v", settings)
	}
}

// settingsOf returns what counts for a request.
func settingsOf(t *testing.T, s *Service, inherits bool, request string) (deployments.DeploymentSettings, error) {
	t.Helper()
	r := deployments.DeploymentRequest{Stack: dev, Inherits: inherits}
	must(t, json.Unmarshal([]byte(request), &r.Settings))
	var stored jobs.Settings
	if inherits {
		var err error
		stored, err = s.store.Jobs.DeploymentSettings(t.Context(), dev)
		must(t, err)
	}
	return s.effective(t.Context(), r, stored.DeploymentSettings)
}

func TestADeploymentHasTheSettingsOfItsStackUnderItsOwn(t *testing.T) {
	s := newService(t)
	patch(t, s, gitSettings, "ann")
	got, err := settingsOf(t, s, true, `{"sourceContext":{"git":{"commit":"ab12"}},"operationContext":{
		"environmentVariables":{"B":"other"},"preRunCommands":null}}`)
	must(t, err)
	git, run := got.Git(), got.Run()
	if git.Commit != "ab12" || git.Branch != "" || git.RepoDir != "infra" ||
		git.GitAuth.PersonalAccessToken.Value != "the-token" {
		t.Errorf("%+v", git)
	}
	if run.EnvironmentVariables["A"].Value != "the-secret" || run.EnvironmentVariables["B"].Value != "other" ||
		len(run.PreRunCommands) != 1 {
		t.Errorf("%+v", run)
	}
}

func TestAnotherRepositoryDoesNotGetTheCredentialsOfTheStacks(t *testing.T) {
	s := newService(t)
	patch(t, s, gitSettings, "ann")
	got, err := settingsOf(t, s, true, `{"sourceContext":{"git":{"repoUrl":"https://evil.example.com/x.git",
		"branch":"main"}}}`)
	must(t, err)
	if got.Git().GitAuth != nil {
		t.Errorf("%+v", got.Git())
	}
}

func TestADeploymentWithoutARepositoryIsRefused(t *testing.T) {
	s := newService(t)
	patch(t, s, gitSettings, "ann")
	for _, request := range []string{`{}`, `{"sourceContext":{"git":{"branch":"main"}}}`} {
		if _, err := settingsOf(t, s, false, request); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %v", request, err)
		}
	}
}

func TestTheSettingsDecideWhatAPushStarts(t *testing.T) {
	settings := func(text string) (s jobs.Settings) {
		must(t, json.Unmarshal([]byte(text), &s.DeploymentSettings))
		return s
	}
	const source = `"sourceContext":{"git":{"repoUrl":"https://example.com/acme/shop.git","branch":"main"}}`
	all := settings(`{` + source + `,"gitHub":{"deployCommits":true,"previewPullRequests":true,"paths":["infra/**"]}}`)
	push := gitpush.Event{Repository: "acme/shop", Branch: "main", Commit: "ab", Paths: []string{"infra/x"}}
	request, foreign, elsewhere, other, outside := push, push, push, push, push
	request.PullRequest, request.Paths = 7, nil
	foreign.PullRequest, foreign.Foreign = 7, true
	elsewhere.Repository, other.Branch, outside.Paths = "eve/shop", "next", []string{"README"}
	for why, c := range map[string]struct {
		settings jobs.Settings
		event    *gitpush.Event
	}{
		"deploys nothing": {all, nil}, "from another repository": {all, &foreign},
		"another repository (eve/shop) than the one in the deployment settings (https://example.com/acme/shop.git)": {all,
			&elsewhere},
		"another branch (next) than the one in the deployment settings (main)": {all, &other}, "paths": {all, &outside},
		"no deployments of pushes": {settings(`{` + source + `}`), &push},
		"no previews":              {settings(`{` + source + `,"gitHub":{"deployCommits":true}}`), &request},
	} {
		if got, err := ignored(t.Context(), c.settings, c.event); err != nil || !strings.Contains(got, why) {
			t.Errorf("%s: %q", why, got)
		}
	}
	for _, e := range []gitpush.Event{push, request} {
		if why, err := ignored(t.Context(), all, &e); err != nil || why != "" {
			t.Errorf("%+v is ignored: %s", e, why)
		}
	}
	if r := pushed(dev, all, request); r.Operation != apitype.Preview || r.Settings.Git().Commit != "ab" || !r.Inherits {
		t.Errorf("a pull request starts %+v", r)
	}
	if r := pushed(dev, all, push); r.Operation != apitype.Update {
		t.Errorf("a push starts %+v", r)
	}
}

func TestAnOldMessageOfAGitServerIsNotTaken(t *testing.T) {
	now := time.Now()
	push := func(at time.Time) gitpush.Message {
		return gitpush.Message{Header: http.Header{"X-Hub-Signature-256": {"x"}, "X-Github-Event": {"push"}},
			Body: []byte(fmt.Sprintf(`{"repository":{"pushed_at":%d}}`, at.Unix()))}
	}
	for name, c := range map[string]struct {
		message gitpush.Message
		lasts   time.Duration
		code    deployments.Code
	}{
		"of now":                {push(now), takenFor, ""},
		"of a clock ahead":      {push(now.Add(aheadBy - time.Minute)), takenFor, ""},
		"of days ago":           {push(now.Add(time.Hour - takenFor)), takenFor, ""},
		"of long ago":           {push(now.Add(-time.Hour - takenFor)), 0, deployments.CodeInvalid},
		"of the future":         {push(now.Add(time.Hour)), 0, deployments.CodeInvalid},
		"that says no time":     {gitpush.Message{Header: push(now).Header, Body: []byte("{}")}, 0, ""},
		"with the token itself": {gitpush.Message{Header: http.Header{"X-Gitlab-Token": {"x"}}}, takenFor, ""},
	} {
		d, err := deliveryOf(c.message, now)
		if deployments.CodeOf(err) != c.code || err == nil && (d.Lasts != c.lasts || d.Digest != c.message.Digest()) {
			t.Errorf("a message %s: %+v, %v", name, d, err)
		}
	}
}

func TestAStackWithoutAWebhookTakesNoPush(t *testing.T) {
	s := newService(t)
	patch(t, s, gitSettings, "ann")
	read := func() ([]byte, func(), error) {
		t.Error("the body is read")
		return nil, func() {}, nil
	}
	missing := dev
	missing.Stack = "missing"
	for _, name := range []deployments.StackName{dev, missing} {
		for _, header := range []http.Header{{"X-Gitlab-Token": {""}},
			{"X-Hub-Signature-256": {"sha256=" + strings.Repeat("0", 64)}}} {
			_, _, err := s.Push(t.Context(), name, header, read)
			if deployments.CodeOf(err) != deployments.CodeUnauthorized {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestAPushRunsTheSettingsOfWhomItActsForThoughTheyAreChangedWhileItArrives(t *testing.T) {
	s := newService(t)
	const secret = "the-secret-of-pushes"
	patch(t, s, gitSettings, "mallory")
	patch(t, s, `{"gitHub":{"deployCommits":true},"webhook":{"secret":"`+secret+`"}}`, "ann")
	body := []byte(`{"ref":"refs/heads/main","after":"` + strings.Repeat("ab", 20) + `","repository":{"full_name":
		"acme/shop"}}`)
	read := func() ([]byte, func(), error) {
		patch(t, s, `{"sourceContext":{"git":{"repoUrl":"https://evil.example.com/x.git"}},"operationContext":{
			"preRunCommands":["take"]}}`, "mallory")
		return body, func() {}, nil
	}
	_, why, err := s.Push(t.Context(), dev, http.Header{"X-Gitlab-Token": {secret}, "X-Github-Event": {"push"}}, read)
	if why != "" || deployments.CodeOf(err) != deployments.CodeUnavailable { // there is no Temporal
		t.Fatalf("%q, %v", why, err)
	}
	d, err := s.store.Jobs.Deployment(t.Context(), deployments.DeploymentName{StackName: dev, Number: 1})
	if err != nil || d.RequestedBy != "ann" || !strings.HasPrefix(d.Source, "https://example.com/acme/shop.git") {
		t.Errorf("for %s it is from %s, %v", d.RequestedBy, d.Source, err)
	}
}

func TestADeploymentThatCannotBeStartedHasFailed(t *testing.T) {
	s := newService(t)
	patch(t, s, gitSettings, "ann")
	_, err := s.CreateDeployment(t.Context(), deployments.DeploymentRequest{Stack: dev, Operation: apitype.Update,
		Inherits: true})
	if deployments.CodeOf(err) != deployments.CodeUnavailable {
		t.Fatal(err)
	}
	d, err := s.store.Jobs.Deployment(t.Context(), deployments.DeploymentName{StackName: dev, Number: 1})
	if err != nil || d.Status != deployments.DeploymentFailed || d.Settings.Git().RepoURL != "" {
		t.Errorf("%+v, %v", d, err)
	}
	if err := s.CancelDeployment(t.Context(), d.Name); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("it is cancelled: %v", err)
	}
	list, total, err := s.ListDeployments(t.Context(), dev, deployments.DeploymentPage{Page: deployments.Page{Number: 1,
		Size: 10}})
	if err != nil || total != 1 || list[0].Source != "https://example.com/acme/shop.git, branch main, directory infra" {
		t.Errorf("%+v, %d, %v", list, total, err)
	}
}

func TestAnotherRepositoryGetsNoneOfTheCredentialsOfTheOneBefore(t *testing.T) {
	const other = `{"sourceContext":{"git":{"repoUrl":"https://other.example/x.git"%s}}}`
	for name, c := range map[string]struct{ auth, want string }{
		"none":            {"", ""},
		"a part of them":  {`,"gitAuth":{"basicAuth":{"userName":"ann","password":"p"}}`, ""},
		"an empty object": {`,"gitAuth":{}`, ""},
		"its own":         {`,"gitAuth":{"accessToken":"the-new-token"}`, "the-new-token"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t)
			patch(t, s, gitSettings, "ann")
			patch(t, s, strings.Replace(other, "%s", c.auth, 1), "bob")
			settings, err := s.store.Jobs.DeploymentSettings(t.Context(), dev)
			must(t, err)
			got := ""
			if auth := settings.Git().GitAuth; auth != nil && auth.PersonalAccessToken != nil {
				got = auth.PersonalAccessToken.Value
			}
			if got != c.want || settings.Git().Branch != "main" {
				t.Errorf("it gets %q: %+v", got, settings.Git())
			}
		})
	}
}

func TestATextThatStandsForASecretIsOfUseInItsPlaceOnly(t *testing.T) {
	s := newService(t)
	patch(t, s, gitSettings, "ann")
	patch(t, s, `{"webhook":{"secret":"the-secret-of-pushes"}}`, "ann")
	shown, err := s.DeploymentSettings(t.Context(), dev)
	must(t, err)
	for name, text := range map[string]string{
		"of the webhook":    shown.Webhook.Secret.Ciphertext,
		"of the git server": shown.Git().GitAuth.PersonalAccessToken.Ciphertext,
		"of a variable":     shown.Operation.EnvironmentVariables["A"].Ciphertext,
	} {
		stolen := json.RawMessage(`{"operationContext":{"environmentVariables":{"X":{"ciphertext":"` + text + `"}}}}`)
		err := s.PatchDeploymentSettings(t.Context(), dev, stolen, &deployments.Authority{})
		if text == "" || deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("the secret %s became a variable: %v", name, err)
		}
	}
}

// records adds deployments of a status; some of those that have ended had their turn.
func records(t *testing.T, s *Service, n int, status deployments.DeploymentStatus, begun time.Time) {
	t.Helper()
	for range n {
		_, err := s.Jobs.AddDeployment(t.Context(), jobs.Deployment{Begun: begun, Deployment: deployments.Deployment{
			Name: deployments.DeploymentName{StackName: dev}, Status: status}})
		must(t, err)
	}
}

func TestOnlySoManyDeploymentsOfAStackWaitAndThoseThatWereSkippedDoNot(t *testing.T) {
	s := newService(t)
	patch(t, s, gitSettings, "ann")
	room := func() deployments.Code { return deployments.CodeOf(s.roomForDeployment(t.Context(), dev)) }
	records(t, s, 1, deployments.DeploymentRunning, time.Now())
	records(t, s, 2*mostWaiting, deployments.DeploymentSkipped, time.Time{})
	records(t, s, mostWaiting-2, deployments.DeploymentAccepted, time.Time{})
	if code := room(); code != "" {
		t.Errorf("the last that may wait is refused: %s", code)
	}
	records(t, s, 1, deployments.DeploymentNotStarted, time.Time{})
	_, err := s.CreateDeployment(t.Context(), deployments.DeploymentRequest{Stack: dev, Operation: apitype.Update,
		Inherits: true})
	if deployments.CodeOf(err) != deployments.CodeConflict || !strings.Contains(err.Error(), "cancel some") {
		t.Errorf("one too many: %v", err)
	}
	records(t, s, 1, deployments.DeploymentSucceeded, time.Now())
	if code := room(); code != "" {
		t.Errorf("after one that had its turn, there is no room: %s", code)
	}
}
