package statestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/deployctl/deployctl/statestore/keys"
	"github.com/deployctl/deployctl/statestore/leases"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// writer is a function of the store that writes under a condition. Play has ten of it at once, and finds out whether
// each has its effect; test names another test that does. Told says what becomes of one that comes second, if that is
// no loss.
type writer struct {
	play       func(t *testing.T, s *statestore.Store)
	test, told string
}

const crowd = 10

// writers has each function of the store that looks at bucket.ErrChanged, or writes under a condition on what it
// has read: TestEachWriterOfTheStoreIsPlayed compares it with the source.
var writers = map[string]writer{
	"Store.changeKnownHead":          {play: lockAtOnce},
	"Store.changeReadHead":           {play: tagAtOnce},
	"Store.AdoptStack":               {play: adoptAtOnce},
	"Store.adoptCheckpoint":          {play: adoptAtOnce},
	"Store.createStack":              {play: createAtOnce},
	"Store.RenameStack":              {play: renameAtOnce},
	"Store.reserveName":              {play: renameAtOnce},
	"Store.giveFree":                 {play: renameAtOnce},
	"Store.raiseTombstone":           {play: removeAtOnce},
	"Store.RecreateStack":            {play: recreateAtOnce},
	"Store.readTombstone":            {play: removeAtOnce},
	"Store.Raise":                    {told: "the greatest number counts, whoever has written it"},
	"Store.readGenerations":          {told: "the greatest number counts, whoever has written it"},
	"Store.changeMember":             {play: joinAtOnce},
	"owned.put":                      {play: trustAtOnce},
	"Store.ChangeProfile":            {play: profileAtOnce},
	"Issuer.readKeys":                {play: issuerAtOnce},
	"Store.newToken":                 {play: tokensAtOnce},
	"Store.authenticate":             {told: "only the time of the last use may be lost, which is known by the hour"},
	"Store.spend":                    {told: "an identity token is good for one exchange"},
	"Store.ChangeWebhooks":           {play: hookAtOnce},
	"Store.ChangeSchedule":           {play: runAtOnce},
	"Store.AddDeployment":            {play: deployAtOnce},
	"Objects.PutIn":                  {play: deployAtOnce},
	"Store.ChangeDeployment":         {play: stepAtOnce},
	"Store.ChangeDeploymentSettings": {play: settingsAtOnce},
	"Store.PutGitHostKey":            {told: "the key that was seen first counts"},
	"Store.changeKeyring":            {play: rotateAtOnce},
	"Store.reseal":                   {play: resealAtOnce},
	"Store.writeFirst":               {told: "the keyring that was written first counts"},
	"PluginArchives.record":          {told: "the digest of a release that was seen first counts"},
	"Store.BeginPreview":             {told: "a repeated request finds its own preview"},
	"Store.BeginInfo":                {told: "the one that comes second gets the description that is there"},
	"Store.Dedicate":                 {told: "it is dedicated then"},
	"Store.TakeDelivery":             {told: "one attempt of a delivery has it"},
	"Store.putAuditBatch":            {told: "a batch has a random name, and one that is there is its own"},
	"Store.nextSnapshot":             {play: snapshotAtOnce},
	"Store.appendLog":                {test: "TestAJournalOfSeveralServersHasWhatWasAcknowledged"},
	"Store.putLog":                   {test: "TestAJournalOfSeveralServersHasWhatWasAcknowledged"},
	"Store.EndJournal":               {told: "the first end counts, and it is after all that was acknowledged"},
	"Store.End":                      {test: "TestAJournalOfSeveralServersHasWhatWasAcknowledged"},
	"Store.writeUnless":              {play: editAtOnce},
	"Store.SetQuota":                 {play: limitsAtOnce},
	"Store.changePlaces":             {play: placesAtOnce},
	"Store.CountMinutes":             {play: minutesAtOnce},
}

func TestTenWritersAtOnceLoseNothing(t *testing.T) {
	played := map[string]bool{}
	for name, w := range writers {
		switch place := fmt.Sprintf("%p", w.play); {
		case w.play != nil && !played[place]:
			played[place] = true
			for kind, open := range map[string]func(*testing.T) bucket.Objects{"memory": openMemory, "bucket": openS3} {
				t.Run(name+" in a "+kind, func(t *testing.T) {
					s := opened(t, bucket.NewRetry(open(t), time.Minute), statestore.Options{})
					if err := s.CreateStack(t.Context(), dev, map[string]string{"first": "tag"}); err != nil {
						t.Fatal(err)
					}
					w.play(t, s)
				})
			}
		}
	}
}

// atOnce does something ten times at once. All must succeed.
func atOnce(t *testing.T, do func(ctx context.Context, i int) error) {
	t.Helper()
	if errs := allAtOnce(t, do); len(errs) > 0 {
		t.Fatalf("%d of %d fail: %v", len(errs), crowd, errors.Join(errs...))
	}
}

// allAtOnce does something ten times at once, and returns the errors.
func allAtOnce(t *testing.T, do func(ctx context.Context, i int) error) (errs []error) {
	t.Helper()
	var group sync.WaitGroup
	var mu sync.Mutex
	begin := make(chan struct{})
	for i := range crowd {
		group.Go(func() {
			<-begin
			if err := do(t.Context(), i); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
			}
		})
	}
	close(begin)
	group.Wait()
	return errs
}

func want(t *testing.T, err error, holds bool, format string, args ...any) {
	t.Helper()
	if err != nil || !holds {
		t.Errorf(format+": %v", append(args, err)...)
	}
}

func tagAtOnce(t *testing.T, s *statestore.Store) {
	atOnce(t, func(ctx context.Context, i int) error {
		name := strconv.Itoa(i)
		if err := s.ChangeTags(ctx, dev, map[string]string{name: "x", "gone" + name: "x"}, nil); err != nil {
			return err
		}
		return s.ChangeTags(ctx, dev, nil, []string{"gone" + name})
	})
	h, err := s.Head(t.Context(), dev)
	want(t, err, len(h.Tags) == crowd+1 && h.Tags["first"] == "tag", "the tags are %v", h.Tags)
}

func lockAtOnce(t *testing.T, s *statestore.Store) {
	atOnce(t, func(ctx context.Context, i int) error {
		return s.TagStack(ctx, dev, map[string]string{"by": strconv.Itoa(i)})
	})
	h, err := s.Head(t.Context(), dev)
	want(t, err, len(h.Tags) == 1 && h.Tags["by"] != "", "the tags are %v", h.Tags)
}

func createAtOnce(t *testing.T, s *statestore.Store) {
	other := dev
	other.Stack = "other"
	errs := allAtOnce(t, func(ctx context.Context, i int) error {
		return s.CreateStack(ctx, other, map[string]string{"by": strconv.Itoa(i)})
	})
	for _, err := range errs {
		want(t, nil, deployments.CodeOf(err) == deployments.CodeExists, "it fails with %v", err)
	}
	h, err := s.Head(t.Context(), other)
	want(t, err, len(errs) == crowd-1 && len(h.Tags) == 1, "%d fail, and the stack is %+v", len(errs), h)
}

func recreateAtOnce(t *testing.T, s *statestore.Store) {
	const gone = "o/p/gone"
	as := func(i int) deployments.StackName {
		return deployments.StackName{Organization: "o", Project: "p", Stack: "as" + strconv.Itoa(i)}
	}
	errs := allAtOnce(t, func(ctx context.Context, i int) error { return s.RecreateStack(ctx, as(i), gone, false) })
	for _, err := range errs {
		want(t, nil, deployments.CodeOf(err) == deployments.CodeConflict, "it fails with %v", err)
	}
	holders := 0
	for i := range crowd {
		if h, err := s.Head(t.Context(), as(i)); err == nil && h.Identity == gone {
			holders++
		}
	}
	want(t, nil, len(errs) == crowd-1 && holders == 1, "%d fail, and %d have the identity", len(errs), holders)
}

func renameAtOnce(t *testing.T, s *statestore.Store) {
	before, err := s.Head(t.Context(), dev)
	want(t, err, true, "the head")
	name := func(i int) deployments.StackName {
		return deployments.StackName{Organization: dev.Organization, Project: dev.Project, Stack: "as" + strconv.Itoa(i)}
	}
	errs := allAtOnce(t, func(ctx context.Context, i int) error { return s.RenameStack(ctx, dev, name(i)) })
	found := 0
	for i := range crowd {
		h, err := s.Head(t.Context(), name(i))
		if err == nil && h.ID == before.ID && h.Active == nil && h.Tags["first"] == "tag" {
			found++
		}
	}
	want(t, nil, found == 1 && len(errs) == crowd-1, "%d stacks have it, and %d fail: %v", found, len(errs),
		errors.Join(errs...))
}

func removeAtOnce(t *testing.T, s *statestore.Store) {
	_, err := s.Claim(t.Context(), statestore.Claimant{Update: up(7), Writer: "w"})
	want(t, err, true, "the claim")
	claim, err := s.ClaimOf(t.Context(), up(7))
	want(t, err, true, "the claim")
	want(t, s.Commit(t.Context(), claim, statestore.Written{}), true, "the commit")
	errs := allAtOnce(t, func(ctx context.Context, _ int) error { return s.RemoveStack(ctx, dev, false) })
	want(t, nil, len(errs) < crowd, "none removes it: %v", errors.Join(errs...))
	want(t, s.CreateStack(t.Context(), dev, nil), true, "a stack of the name")
	h, err := s.Head(t.Context(), dev)
	want(t, err, h.Next == 8, "its next version is %d", h.Next)
}

func joinAtOnce(t *testing.T, s *statestore.Store) {
	atOnce(t, func(ctx context.Context, i int) error {
		team := "team" + strconv.Itoa(i)
		g := deployments.Grant{Role: deployments.RoleViewer, Organization: "acme"}
		if err := s.Access.GrantTeam(ctx, team, g); err != nil {
			return err
		}
		return s.Access.JoinTeam(ctx, "acme", team, "ann")
	})
	m, err := s.Access.Member(t.Context(), "acme", "ann")
	want(t, err, len(m.Teams) == crowd, "the member is in %d teams", len(m.Teams))
	atOnce(t, func(ctx context.Context, i int) error {
		if i%2 == 0 {
			return s.Access.LeaveTeam(ctx, "acme", "team"+strconv.Itoa(i), "ann")
		}
		return s.Access.GrantMember(ctx, "ann", deployments.Grant{Role: deployments.RoleViewer, Organization: "acme"})
	})
	m, err = s.Access.Member(t.Context(), "acme", "ann")
	want(t, err, len(m.Teams) == crowd/2 && m.Grant != nil, "the member is in %d teams, and has %+v", len(m.Teams),
		m.Grant)
}

func trustAtOnce(t *testing.T, s *statestore.Store) {
	trust := deployments.Trust{Organization: "acme", Issuer: "https://ci.example", Audiences: []string{"acme"},
		Conditions: []deployments.Condition{{Claim: "sub", Pattern: "repo:acme/*"}},
		Grant:      deployments.Grant{Role: deployments.RoleViewer, Organization: "acme"}}
	atOnce(t, func(ctx context.Context, i int) error {
		of := trust
		if of.Name = "shared"; i%2 == 0 {
			of.Name = "own" + strconv.Itoa(i)
		}
		return s.Access.PutTrust(ctx, of)
	})
	all, err := s.Access.TrustsOf(t.Context(), "acme")
	want(t, err, len(all) == crowd/2+1, "there are %d trusts", len(all))
	for _, of := range all {
		before := of.Created
		want(t, s.Access.PutTrust(t.Context(), of), true, "put it again")
		again, err := s.Access.AnyTrust(t.Context(), "acme", of.Name)
		want(t, err, again.Created.Equal(before), "%s was created at %s and %s", of.Name, before, again.Created)
	}
}

// profileAtOnce has each of ten set a variable of its own, and change one as of the version that it read, again when it
// is told that this is old.
func profileAtOnce(t *testing.T, s *statestore.Store) {
	count := func(p deployments.Profile) (n int) {
		for _, v := range p.Variables {
			if v.Name == "COUNT" {
				n, _ = strconv.Atoi(v.Value)
			}
		}
		return n
	}
	atOnce(t, func(ctx context.Context, i int) error {
		_, err := s.Access.ChangeProfile(ctx, deployments.ProfileChange{Organization: "acme", Name: "aws",
			Set: []deployments.ProfileVariable{{Name: "V" + strconv.Itoa(i), Value: "x", Secret: true}}})
		for err == nil {
			p, err := s.Access.Profile(ctx, "acme", "aws")
			if err != nil {
				return err
			}
			_, err = s.Access.ChangeProfile(ctx, deployments.ProfileChange{Organization: "acme", Name: "aws",
				Base: &p.Version, Set: []deployments.ProfileVariable{{Name: "COUNT", Value: strconv.Itoa(count(p) + 1)}}})
			if deployments.CodeOf(err) != deployments.CodeConflict {
				return err
			}
		}
		return err
	})
	p, err := s.Access.Profile(t.Context(), "acme", "aws")
	want(t, err, len(p.Variables) == crowd+1 && count(p) == crowd && p.Version == 2*crowd, "it is %+v", p)
}

// issuerAtOnce has each of ten make the first key of the issuer: one counts, for all.
func issuerAtOnce(t *testing.T, s *statestore.Store) {
	ids := make([]string, crowd)
	atOnce(t, func(ctx context.Context, i int) error {
		keys, err := s.Access.Issuer.Keys(ctx)
		if err == nil {
			ids[i] = keys[0].ID
		}
		return err
	})
	slices.Sort(ids)
	want(t, nil, len(slices.Compact(ids)) == 1, "the keys are %q", ids)
}

func tokensAtOnce(t *testing.T, s *statestore.Store) {
	texts := make([]string, crowd)
	errs := allAtOnce(t, func(ctx context.Context, i int) (err error) {
		g := deployments.Grant{Role: deployments.RoleViewer, Organization: "acme"}
		texts[i], err = s.Access.CreateToken(ctx, deployments.Token{Name: "ci", Grant: &g})
		return err
	})
	good := 0
	for _, text := range texts {
		if _, err := s.Access.Authenticate(t.Context(), text); err == nil && text != "" {
			good++
		}
	}
	want(t, nil, len(errs) == crowd-1 && good == 1, "%d fail and %d are good: %v", len(errs), good, errors.Join(errs...))
}

func hookAtOnce(t *testing.T, s *statestore.Store) {
	scope := deployments.ScopeOf(dev)
	atOnce(t, func(ctx context.Context, i int) error {
		return s.Jobs.ChangeWebhooks(ctx, scope, func(hooks []deployments.Webhook) ([]deployments.Webhook, error) {
			w := deployments.Webhook{Name: deployments.WebhookName{Scope: scope, Name: strconv.Itoa(i)}}
			return append(hooks, w), nil
		})
	})
	hooks, err := s.Jobs.Webhooks(t.Context(), scope)
	want(t, err, len(hooks) == crowd, "there are %d webhooks", len(hooks))
}

func runAtOnce(t *testing.T, s *statestore.Store) {
	n := deployments.ScheduleName{StackName: dev, Name: "nightly"}
	wanted := jobs.Schedule{}
	wanted.Schedule.Name = n
	want(t, s.Jobs.PutSchedule(t.Context(), wanted), true, "put the schedule")
	atOnce(t, func(ctx context.Context, _ int) error {
		_, err := s.Jobs.ChangeSchedule(ctx, n, func(w *jobs.Schedule) error {
			w.Due = w.Due.Add(time.Hour)
			return nil
		})
		return err
	})
	w, err := s.Jobs.Schedule(t.Context(), n)
	want(t, err, w.Due.Equal(time.Time{}.Add(crowd*time.Hour)), "it is due at %s", w.Due)
}

func deployAtOnce(t *testing.T, s *statestore.Store) {
	atOnce(t, func(ctx context.Context, _ int) error {
		_, err := s.Jobs.AddDeployment(ctx, jobs.Deployment{Deployment: deployments.Deployment{
			Name: deployments.DeploymentName{StackName: dev}}})
		return err
	})
	numbers, err := s.Jobs.DeploymentNumbers(t.Context(), dev)
	want(t, err, len(numbers) == crowd && numbers[crowd-1] == crowd, "they are %v", numbers)
}

func stepAtOnce(t *testing.T, s *statestore.Store) {
	d, err := s.Jobs.AddDeployment(t.Context(), jobs.Deployment{Deployment: deployments.Deployment{
		Name: deployments.DeploymentName{StackName: dev}}})
	want(t, err, true, "add it")
	atOnce(t, func(ctx context.Context, i int) error {
		_, err := s.Jobs.ChangeDeployment(ctx, d.Name, func(d *jobs.Deployment) error {
			d.Steps = append(d.Steps, deployments.DeploymentStep{Name: strconv.Itoa(i)})
			return nil
		})
		return err
	})
	d, err = s.Jobs.Deployment(t.Context(), d.Name)
	want(t, err, len(d.Steps) == crowd, "it has %d steps", len(d.Steps))
}

func settingsAtOnce(t *testing.T, s *statestore.Store) {
	atOnce(t, func(ctx context.Context, i int) error {
		return s.Jobs.ChangeDeploymentSettings(ctx, dev, func(settings *jobs.Settings) error {
			patch := fmt.Sprintf(`{"operationContext":{"environmentVariables":{"V%d":"x"}}}`, i)
			was, err := json.Marshal(settings.DeploymentSettings)
			if err != nil {
				return err
			}
			text, err := deployments.MergePatch(was, []byte(patch))
			if err != nil {
				return err
			}
			return json.Unmarshal(text, &settings.DeploymentSettings)
		})
	})
	settings, err := s.Jobs.DeploymentSettings(t.Context(), dev)
	want(t, err, settings.Operation != nil && len(settings.Operation.EnvironmentVariables) == crowd, "they are %+v",
		settings.Operation)
}

func rotateAtOnce(t *testing.T, s *statestore.Store) {
	atOnce(t, func(ctx context.Context, _ int) error {
		_, err := s.Keys.Rotate(ctx)
		return err
	})
	there, err := s.Keys.List(t.Context(), nil)
	want(t, err, len(there) == crowd+1 && s.Keys.Outdated() == nil, "there are %d keys", len(there))
	unused := slices.DeleteFunc(there, func(k keys.Info) bool { return k.Retired.IsZero() || k.Objects > 0 })
	atOnce(t, func(ctx context.Context, i int) error {
		if i%2 == 0 {
			_, err := s.Keys.Rotate(ctx)
			return err
		}
		if err := s.Keys.Drop(ctx, unused[i%len(unused)].ID, nil); deployments.CodeOf(err) != deployments.CodeConflict {
			return fmt.Errorf("a key that was just replaced: %w", err)
		}
		return nil
	})
	want(t, s.Keys.Outdated(), true, "the keys")
}

func resealAtOnce(t *testing.T, s *statestore.Store) {
	n := deployments.ScheduleName{StackName: dev, Name: "nightly"}
	wanted := jobs.Schedule{}
	wanted.Schedule.Name = n
	want(t, s.Jobs.PutSchedule(t.Context(), wanted), true, "put the schedule")
	_, err := s.Keys.Rotate(t.Context())
	want(t, err, true, "rotate")
	atOnce(t, func(ctx context.Context, i int) error {
		if i%2 == 0 {
			_, err := s.Keys.Reseal(ctx, nil)
			return err
		}
		_, err := s.Jobs.ChangeSchedule(ctx, n, func(w *jobs.Schedule) error {
			w.Due = w.Due.Add(time.Hour)
			return nil
		})
		return err
	})
	w, err := s.Jobs.Schedule(t.Context(), n)
	want(t, err, w.Due.Equal(time.Time{}.Add(crowd/2*time.Hour)), "it is due at %s", w.Due)
}

func adoptAtOnce(t *testing.T, s *statestore.Store) {
	atOnce(t, func(ctx context.Context, i int) error {
		if i%2 == 0 {
			return s.AdoptStack(ctx, dev)
		}
		return s.ChangeTags(ctx, dev, map[string]string{strconv.Itoa(i): "x"}, nil)
	})
	h, err := s.Head(t.Context(), dev)
	want(t, err, len(h.Tags) == crowd/2+1, "the tags are %v", h.Tags)
}

// editAtOnce has each of ten add a resource to what it read, and read again when it is told that this is old.
func editAtOnce(t *testing.T, s *statestore.Store) {
	_, err := s.Import(t.Context(), statestore.Exchange{Stack: dev}, apitype.UntypedDeployment{Version: 3,
		Deployment: json.RawMessage(`{"manifest":{},"resources":[` + resourceJSON("first") + `]}`)})
	want(t, err, true, "the first")
	atOnce(t, func(ctx context.Context, i int) error {
		for {
			h, err := s.Head(ctx, dev)
			if err != nil {
				return err
			}
			_, err = s.Edit(ctx, statestore.Exchange{Stack: dev, Base: &h.Version},
				func(states []engine.State) ([]engine.State, error) {
					more := states[0]
					more.URN += urn.URN(strconv.Itoa(i))
					return append(states, more), nil
				})
			if deployments.CodeOf(err) != deployments.CodeConflict {
				return err
			}
		}
	})
	h, err := s.Head(t.Context(), dev)
	want(t, err, h.Resources == crowd+1, "version %d has %d resources", h.Version, h.Resources)
}

func snapshotAtOnce(t *testing.T, s *statestore.Store) {
	claim, err := s.Claim(t.Context(), statestore.Claimant{Update: up(1), Writer: leases.Writer})
	want(t, err, true, "the claim")
	lease := deployments.Leased{Update: up(1), ID: "id", Fence: claim.Fence, Expires: time.Now().Add(time.Hour)}
	atOnce(t, func(ctx context.Context, i int) error {
		text := fmt.Sprintf(`{"version":3,"deployment":{"manifest":{},"resources":[%s]}}`, resourceJSON("r"+strconv.Itoa(i+1)))
		return s.Leases.WriteSnapshot(ctx, lease, i+1, []byte(text))
	})
	_, err = s.FinishLease(t.Context(), up(1), "")
	want(t, err, true, "the end")
	d, err := s.Export(t.Context(), statestore.Exchange{Stack: dev}, 0, false)
	want(t, err, strings.Contains(string(d.Deployment), "::r"+strconv.Itoa(crowd)+`"`), "the last is %s", d.Deployment)
}

// quotaOf describes the quota of the organization of dev.
func quotaOf(t *testing.T, s *statestore.Store) deployments.QuotaUse {
	t.Helper()
	list, err := s.Organizations.Quotas(t.Context(), dev.Organization)
	want(t, err, len(list) == 1, "%d organizations are described", len(list))
	return list[0]
}

func limitsAtOnce(t *testing.T, s *statestore.Store) {
	atOnce(t, func(ctx context.Context, i int) error {
		limits := deployments.Limits()
		return s.Organizations.SetQuota(ctx, deployments.QuotaChange{Organization: dev.Organization,
			Set: deployments.Quota{limits[i%len(limits)]: int64(i + 1)}})
	})
	q := quotaOf(t, s)
	want(t, nil, len(q.Limits) == len(deployments.Limits()), "the limits are %v", q.Limits)
}

func placesAtOnce(t *testing.T, s *statestore.Store) {
	const most = 4
	want(t, s.Organizations.SetQuota(t.Context(), deployments.QuotaChange{Organization: dev.Organization,
		Set: deployments.Quota{deployments.LimitStacks: most}}), true, "the quota")
	errs := allAtOnce(t, func(ctx context.Context, i int) error {
		name := dev
		name.Stack = "more" + strconv.Itoa(i)
		return s.CreateStack(ctx, name, nil)
	})
	for _, err := range errs {
		want(t, nil, deployments.CodeOf(err) == deployments.CodeQuota, "it fails with %v", err)
	}
	q := quotaOf(t, s)
	want(t, nil, len(errs) == crowd-most+1 && q.Used[deployments.LimitStacks] == most, "%d fail, and there are %v",
		len(errs), q.Used)
}

func minutesAtOnce(t *testing.T, s *statestore.Store) {
	want(t, s.Organizations.SetQuota(t.Context(), deployments.QuotaChange{Organization: dev.Organization,
		Set: deployments.Quota{deployments.LimitWorkerMinutes: 1000}}), true, "the quota")
	for range 2 { // the second time by activities that run again
		atOnce(t, func(ctx context.Context, i int) error {
			return s.Organizations.CountMinutes(ctx, up(i+1), 90*time.Second)
		})
	}
	q := quotaOf(t, s)
	want(t, nil, q.Used[deployments.LimitWorkerMinutes] == crowd*3/2, "%v are used", q.Used)
}
