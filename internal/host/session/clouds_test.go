package session

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/workload"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
)

const testIssuer = "https://deploy.example.com"

var testClouds = deployments.Clouds{AWS: &deployments.AWSRole{Role: "arn:aws:iam::123456789012:role/deploy"},
	Google: &deployments.GoogleWorkload{
		Provider: "projects/12/locations/global/workloadIdentityPools/pool/providers/deployctl"},
	Azure: &deployments.AzureClient{Tenant: "01234567-89ab-cdef-0123-456789abcdef",
		Client: "fedcba98-7654-3210-fedc-ba9876543210"}}

// setClouds makes the service an issuer, and gives the profile aws clouds.
func (h *house) setClouds(c deployments.Clouds) {
	h.t.Helper()
	h.store.Access.Issuer.SetAddress(testIssuer)
	_, err := h.store.Access.ChangeProfile(h.t.Context(), deployments.ProfileChange{
		Organization: testStack.Organization, Name: "aws", Stacks: &[]string{"*/dev"}, Clouds: c})
	if err != nil {
		h.t.Fatal(err)
	}
}

// handed returns the session of the update, and the directory of its tokens.
func (h *house) handed() (*Session, string) {
	h.t.Helper()
	s := h.sessions.Find(h.update)
	if s == nil || s.tokens == nil {
		h.t.Fatal("the update has no tokens")
	}
	return s, s.tokens.dir.Path
}

// claimsIn reads the claims of the token in a file, which is not verified.
func claimsIn(t *testing.T, file string) (text string, c workload.Claims) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(data), ".")
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(payload, &c)
	}
	if err != nil || len(parts) != 3 {
		t.Fatalf("%s, %v", data, err)
	}
	return string(data), c
}

func TestAnUpdateHasATokenForEachCloudOfItsProfile(t *testing.T) {
	h := newHouse(t)
	h.setClouds(testClouds)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy, Config: useProfile, Environment: []string{
		"AWS_ACCESS_KEY_ID=shell", "AWS_PROFILE=shell", "GOOGLE_CREDENTIALS=shell", "ARM_CLIENT_SECRET=shell",
		"AWS_REGION=eu-central-1"}})
	s, dir := h.handed()
	for file, audience := range map[string]string{deployments.AWSTokenFile: "sts.amazonaws.com",
		deployments.GoogleTokenFile: "https://iam.googleapis.com/" + testClouds.Google.Provider,
		deployments.AzureTokenFile:  "api://AzureADTokenExchange"} {
		_, c := claimsIn(t, filepath.Join(dir, file))
		if c.Issuer != testIssuer || c.Audience != audience || c.Subject != "stack:organization/test/dev:destroy" ||
			c.Profile != "aws" || c.Update != "1" {
			t.Errorf("%s says %+v", file, c)
		}
	}
	env := s.environment()
	for _, entry := range []string{"AWS_WEB_IDENTITY_TOKEN_FILE=" + filepath.Join(dir, "aws.jwt"),
		"AWS_ROLE_ARN=" + testClouds.AWS.Role, "AWS_ROLE_SESSION_NAME=organization.test.dev.1", "AWS_REGION=eu-central-1",
		"GOOGLE_APPLICATION_CREDENTIALS=" + filepath.Join(dir, "google.json"),
		"AZURE_FEDERATED_TOKEN_FILE=" + filepath.Join(dir, "azure.jwt"), "ARM_USE_OIDC=true"} {
		if !slices.Contains(env, entry) {
			t.Errorf("%s is missing in %q", entry, env)
		}
	}
	for _, entry := range env {
		if strings.HasSuffix(entry, "=shell") {
			t.Errorf("the update would use %s in place of its token", entry)
		}
	}
	release(h)
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the tokens are there after the session: %v", err)
	}
}

func TestATokenIsMadeAgainForAsLongAsASessionLives(t *testing.T) {
	h := newHouse(t)
	h.setClouds(deployments.Clouds{AWS: testClouds.AWS})
	synctest.Test(t, func(t *testing.T) {
		s := &Session{update: deployments.UpdateName{StackName: testStack, Version: "3"},
			request: deployments.UpdateRequest{Kind: engine.KindUp, Profile: &deployments.PinnedProfile{
				ProfileVersion: deployments.ProfileVersion{Name: "aws", Version: 1}, Clouds: deployments.Clouds{
					AWS: testClouds.AWS}}}}
		if err := h.sessions.openTokens(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		away, told, keys := atomic.Bool{}, make(chan string, 10), s.tokens.keys
		s.tokens.warn = func(text string) { told <- text }
		s.tokens.keys = func(ctx context.Context) (workload.Keys, error) {
			if away.Load() {
				return workload.Keys{}, errors.New("the bucket is away")
			}
			return keys(ctx)
		}
		s.tokens.keep(t.Context())
		file := filepath.Join(s.tokens.dir.Path, deployments.AWSTokenFile)
		seen, hides := map[string]bool{}, s.secretsOfProfile()
		for begun := time.Now(); time.Since(begun) < 2*time.Hour; time.Sleep(time.Minute) { // of the bubble
			synctest.Wait()
			text, c := claimsIn(t, file)
			if left := time.Until(time.Unix(c.Expires, 0)); left < 12*time.Minute {
				t.Fatalf("after %s the token counts for %s", time.Since(begun), left)
			}
			if !hides("it is "+text) || !hides(text[strings.LastIndex(text, ".")+1:]) {
				t.Fatalf("after %s the token is no secret", time.Since(begun))
			}
			seen[text] = true
		}
		away.Store(true)
		time.Sleep(workload.Life)
		synctest.Wait()
		if len(told) != 1 || !strings.Contains(<-told, "the bucket is away") {
			t.Errorf("it is told %d times that there are no new tokens", len(told))
		}
		if len(seen) < 30 || len(s.tokens.issued) > 10 {
			t.Errorf("there were %d tokens, and %d are kept", len(seen), len(s.tokens.issued))
		}
		if err := s.tokens.close(); err != nil {
			t.Error(err)
		}
	})
}

func TestAWorkerThatGoesOnWithAnUpdateMakesATokenOfItsOwn(t *testing.T) {
	h := newHouse(t)
	h.setClouds(testClouds)
	r := deployments.UpdateRequest{Config: useProfile, RequestID: "first", Kind: engine.KindUp}
	h.claim(r)
	_, dir := h.handed()
	first, _ := claimsIn(t, filepath.Join(dir, deployments.AWSTokenFile))
	if err := h.store.Access.RemoveProfile(t.Context(), testStack.Organization, "aws"); err != nil {
		t.Fatal(err)
	}
	release(h)
	h.reopen()
	_, dir = h.handed()
	if again, c := claimsIn(t, filepath.Join(dir, deployments.AWSTokenFile)); again == first ||
		c.Subject != "stack:organization/test/dev:up" {
		t.Errorf("it has the same, or says %+v", c)
	}
}

func TestATokenIsSecretInStatesAndLogs(t *testing.T) {
	h := newHouse(t)
	h.setClouds(deployments.Clouds{AWS: testClouds.AWS})
	h.claim(deployments.UpdateRequest{Config: useProfile})
	s, dir := h.handed()
	text, _ := claimsIn(t, filepath.Join(dir, deployments.AWSTokenFile))
	if got := s.redactor(t.Context())("refused " + text + "!"); got != "refused [secret]!" {
		t.Errorf("an error of a provider says %q", got)
	}
	if !s.values.Secret("it is " + text) {
		t.Error("the token is no secret in a value")
	}
	s.tell(diag.Info, "", "it is "+text)
	s.Flush(t.Context())
	if log := h.log(); strings.Contains(log, text) || !strings.Contains(log, "it is [secret]") {
		t.Errorf("the log says %s", log)
	}
}

func TestAnUpdateWhoseProfileHasNoCloudsHasNoToken(t *testing.T) {
	h := newHouse(t)
	h.store.Access.Issuer.SetAddress(testIssuer)
	h.setProfile([]string{"*/dev"}, deployments.ProfileVariable{Name: "AWS_ACCESS_KEY_ID", Value: "of-the-profile"})
	h.claim(deployments.UpdateRequest{Config: useProfile, Environment: []string{"AWS_PROFILE=shell"}})
	s := h.sessions.Find(h.update)
	if env := s.environment(); s.tokens != nil || !slices.Contains(env, "AWS_PROFILE=shell") ||
		!slices.Contains(env, "AWS_ACCESS_KEY_ID=of-the-profile") {
		t.Errorf("it has %+v and %q", s.tokens, env)
	}
}
