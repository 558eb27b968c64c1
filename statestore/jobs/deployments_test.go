package jobs_test

import (
	"bytes"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestDeploymentsThatAreMadeAtTheSameTimeHaveDifferentNumbers(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	var making sync.WaitGroup
	for range 8 {
		making.Go(func() {
			if _, err := s.Jobs.AddDeployment(t.Context(), jobs.Deployment{Deployment: deployments.Deployment{
				Name: deployments.DeploymentName{StackName: dev}}}); err != nil {
				t.Error(err)
			}
		})
	}
	making.Wait()
	numbers, err := s.Jobs.DeploymentNumbers(t.Context(), dev)
	if err != nil || len(numbers) != 8 || numbers[0] != 1 || numbers[7] != 8 {
		t.Errorf("%v, %v", numbers, err)
	}
	n := deployments.DeploymentName{StackName: dev, Number: 9}
	if _, err := s.Jobs.Deployment(t.Context(), n); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("one that does not exist: %v", err)
	}
}

func TestADeploymentIsReadUnderItsOwnNumberOnly(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	d, err := s.Jobs.AddDeployment(t.Context(), jobs.Deployment{Deployment: deployments.Deployment{
		Name: deployments.DeploymentName{StackName: dev}}})
	if err != nil {
		t.Fatal(err)
	}
	const records = "stacks/organization/web/dev/deployments/records/"
	copyObject(t, objects, records+"00000001", records+"00000002")
	d.Name.Number = 2
	if _, err := s.Jobs.Deployment(t.Context(), d.Name); err == nil {
		t.Error("a copy of another deployment is read")
	}
}

func TestTheSecretsOfSettingsAreSealedInTheBucketAndWhenTheyAreShown(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	const secret = "the-token-of-the-git-server"
	err := s.Jobs.ChangeDeploymentSettings(t.Context(), dev, func(settings *jobs.Settings) error {
		settings.Webhook = &deployments.PushWebhook{Secret: apitype.SecretValue{Value: secret, Secret: true}}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	stored, err := objects.Get(t.Context(), "stacks/organization/web/dev/deployments/settings")
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(stored.Data, []byte(secret)) {
		t.Error("the bucket has it in clear")
	}
	hidden, err := s.Jobs.HideSetting(t.Context(), dev, "webhook", secret)
	if err != nil || hidden == secret {
		t.Fatalf("%q, %v", hidden, err)
	}
	if plain, err := s.Jobs.OpenSetting(t.Context(), dev, "webhook", hidden); err != nil || plain != secret {
		t.Errorf("%q, %v", plain, err)
	}
	if _, err := s.Secrets.Decrypt(t.Context(), dev, []string{hidden}); err == nil {
		t.Error("it is decrypted as a value of the configuration")
	}
	_, err = s.Jobs.OpenSetting(t.Context(), dev, "variable X", hidden)
	if deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Errorf("it is opened as another setting: %v", err)
	}
	for _, text := range []string{"", "AAAA", "no base64"} {
		_, err := s.Jobs.OpenSetting(t.Context(), dev, "webhook", text)
		if deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%q is opened: %v", text, err)
		}
	}
}

func TestTheLogOfADeploymentIsReadInTheOrderOfItsStepsAndAttempts(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	n := deployments.DeploymentName{StackName: dev, Number: 1}
	for _, p := range []jobs.LogPart{{Step: 10}, {Step: 2, Attempt: 2, Number: 1}, {Step: 2, Attempt: 1, Number: 2},
		{Step: 2, Attempt: 1, Number: 1}, {Step: 1, Attempt: 1, Number: 1}} {
		p.Name = n
		line := apitype.DeploymentLogLine{Line: string(rune('a'+p.Step)) + string(rune('0'+p.Attempt)) +
			string(rune('0'+p.Number))}
		if err := s.Jobs.PutDeploymentLog(t.Context(), p, []apitype.DeploymentLogLine{line}); err != nil {
			t.Fatal(err)
		}
	}
	lines, next, err := s.Jobs.DeploymentLog(t.Context(), n, "")
	text := ""
	for _, l := range lines {
		text += l.Line + " "
	}
	if err != nil || text != "b11 c11 c12 c21 k00 " {
		t.Errorf("%q, %v", text, err)
	}
	if more, again, err := s.Jobs.DeploymentLog(t.Context(), n, next); err != nil || len(more) != 0 || again != next {
		t.Errorf("after its end: %v, %q, %v", more, again, err)
	}
	for _, position := range []string{"../x", "a/b", "\x00"} {
		if _, _, err := s.Jobs.DeploymentLog(t.Context(), n, position); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("the position %q: %v", position, err)
		}
	}
}

func TestTheKeyThatAGitServerHadAtFirstCounts(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	const at = "ssh://git@example.com/acme/shop.git"
	for _, key := range []string{"ssh-ed25519 first", "ssh-ed25519 second"} {
		if err := s.Jobs.PutGitHostKey(t.Context(), dev, at, key); err != nil {
			t.Fatal(err)
		}
	}
	if key, err := s.Jobs.GitHostKey(t.Context(), dev, at); err != nil || key != "ssh-ed25519 first" {
		t.Errorf("%q, %v", key, err)
	}
	if err := s.Jobs.RemoveDeploymentSettings(t.Context(), dev); err != nil {
		t.Fatal(err)
	}
	if key, err := s.Jobs.GitHostKey(t.Context(), dev, at); err != nil || key != "" {
		t.Errorf("after the settings were removed: %q, %v", key, err)
	}
}

func TestTheOldestDeploymentsAreForgottenOnceTheyHaveEnded(t *testing.T) {
	const kept, more = 500, 5
	s := newStack(t, &bucket.Memory{})
	for i := range kept + more {
		status := deployments.DeploymentSkipped
		if i == 1 {
			status = deployments.DeploymentRunning
		}
		if _, err := s.Jobs.AddDeployment(t.Context(), jobs.Deployment{Deployment: deployments.Deployment{
			Name: deployments.DeploymentName{StackName: dev}, Status: status}}); err != nil {
			t.Fatal(err)
		}
	}
	numbers, err := s.Jobs.DeploymentNumbers(t.Context(), dev)
	// The latest does not count yet, and the one that runs stays in addition.
	if err != nil || len(numbers) != kept+2 || numbers[0] != 2 || numbers[1] != more {
		t.Errorf("%d are kept, from %v, %v", len(numbers), numbers[:2], err)
	}
}
