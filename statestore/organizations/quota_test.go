package organizations_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/programs"
	"github.com/deployctl/deployctl/statestore/storetest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const bounded = "acme"

// limited sets limits of the organization acme.
func limited(t *testing.T, s *statestore.Store, q deployments.Quota) {
	t.Helper()
	change := deployments.QuotaChange{Organization: bounded, Set: q, By: "root"}
	if err := s.Organizations.SetQuota(t.Context(), change); err != nil {
		t.Fatal(err)
	}
}

func named(stack string) deployments.StackName {
	return deployments.StackName{Organization: bounded, Project: "web", Stack: stack}
}

func created(t *testing.T, s *statestore.Store, stacks ...string) {
	t.Helper()
	for _, stack := range stacks {
		if err := s.CreateStack(t.Context(), named(stack), nil); err != nil {
			t.Fatal(err)
		}
	}
}

// stateOf is the state of a stack with so many resources.
func stateOf(name deployments.StackName, n int) apitype.UntypedDeployment {
	var resources []string
	for i := range n {
		resources = append(resources, fmt.Sprintf(`{"urn":"urn:pulumi:%s::%s::t:m:T::r%d","type":"t:m:T"}`, name.Stack,
			name.Project, i))
	}
	return apitype.UntypedDeployment{Version: 3, Deployment: json.RawMessage(`{"manifest":{"time":"2026-01-02T03:04:05Z",` +
		`"magic":"","version":""},"metadata":{},"resources":[` + strings.Join(resources, ",") + `]}`)}
}

// overQuota fails the test unless an error says that an organization has used up a limit.
func overQuota(t *testing.T, what string, err error, sentence string) {
	t.Helper()
	if deployments.CodeOf(err) != deployments.CodeQuota || !strings.Contains(err.Error(), sentence) ||
		!strings.Contains(err.Error(), "ask an operator of the service for more") {
		t.Errorf("%s ends with %v, not with %q", what, err, sentence)
	}
}

// several are stores of one bucket, as processes have them.
func several(t *testing.T, n int, o statestore.Options) []*statestore.Store {
	t.Helper()
	objects := storetest.NewContended(&bucket.Memory{})
	storetest.Opened(t, objects, o)
	list := make([]*statestore.Store, n)
	for i := range list {
		list[i] = storetest.Opened(t, objects, o)
	}
	return list
}

// together calls fn for the numbers below n at the same time.
func together(n int, fn func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { fn(i) })
	}
	all.Wait()
}

func TestAQuotaHoldsForEachProcessWithinABoundAndChangesByLimit(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	stores := several(t, 2, statestore.Options{Now: func() time.Time { return now }})
	is := func(when, want string) {
		t.Helper()
		now = now.Add(deployments.QuotaKnownWithin)
		for i, s := range stores {
			if q, err := s.Organizations.Quota(t.Context(), bounded); err != nil || fmt.Sprint(q) != want {
				t.Errorf("%s the quota is %v for process %d, %v; want %s", when, q, i, err, want)
			}
		}
	}
	is("at first", "map[]")
	limited(t, stores[0], deployments.Quota{deployments.LimitStacks: 3, deployments.LimitUpdates: 2})
	is("once it is set", "map[stacks:3 updates:2]")
	limited(t, stores[1], deployments.Quota{deployments.LimitStacks: 4})
	is("once one limit is raised", "map[stacks:4 updates:2]")
	if err := stores[0].Organizations.SetQuota(t.Context(), deployments.QuotaChange{Organization: bounded,
		Removed: []deployments.Limit{deployments.LimitStacks}}); err != nil {
		t.Fatal(err)
	}
	is("once one limit is removed", "map[updates:2]")
	if q, err := stores[0].Organizations.Quota(t.Context(), "other"); err != nil || len(q) != 0 {
		t.Errorf("another organization has the quota %v, %v", q, err)
	}
}

func TestOperatorsWhoSetLimitsAtTheSameTimeLoseNone(t *testing.T) {
	stores := several(t, 6, statestore.Options{})
	together(len(stores), func(i int) {
		limited(t, stores[i], deployments.Quota{deployments.Limits()[i]: int64(i + 1)})
	})
	list, err := stores[0].Organizations.Quotas(t.Context(), bounded)
	if err != nil || len(list) != 1 || len(list[0].Limits) != 6 || list[0].By != "root" {
		t.Errorf("the quota is %+v, %v", list, err)
	}
}

func TestAQuotaThatTheServiceDidNotWriteRaisesNothing(t *testing.T) {
	objects := &bucket.Memory{}
	s := storetest.Opened(t, objects, statestore.Options{})
	limited(t, s, deployments.Quota{deployments.LimitStacks: 0})
	other := deployments.QuotaChange{Organization: "other", Set: deployments.Quota{deployments.LimitStacks: 9}}
	if err := s.Organizations.SetQuota(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	for what, forged := range map[string][]byte{
		"in plain text": []byte(`{"limits":{"stacks":9}}`), "of another organization": get(t, objects, "quotas/other/limits"),
	} {
		put(t, objects, "quotas/acme/limits", forged)
		s := storetest.Opened(t, objects, statestore.Options{})
		if err := s.CreateStack(t.Context(), named("dev"), nil); deployments.CodeOf(err) != deployments.CodeFormat ||
			!strings.Contains(err.Error(), "deployctl quota set acme") {
			t.Errorf("with one %s, creating a stack ends with %v", what, err)
		}
		if list, err := s.Organizations.Quotas(t.Context(), bounded); err != nil || list[0].Damaged == "" {
			t.Errorf("one %s is shown as %+v, %v", what, list, err)
		}
		limited(t, s, deployments.Quota{deployments.LimitStacks: 0})
		overQuota(t, "creating a stack once it is set again", s.CreateStack(t.Context(), named("dev"), nil), "0 stacks")
	}
}

func TestStacksAreCreatedUpToTheQuotaHoweverManyAreAtOnce(t *testing.T) {
	const most, asked = 5, 20
	stores := several(t, 4, statestore.Options{})
	created(t, stores[0], "first", "second")
	limited(t, stores[0], deployments.Quota{deployments.LimitStacks: most})
	errs := make([]error, asked)
	together(asked, func(i int) {
		errs[i] = stores[i%len(stores)].CreateStack(t.Context(), named(fmt.Sprint("s", i)), nil)
	})
	made := 2
	for i, err := range errs {
		if err == nil {
			made++
			continue
		}
		overQuota(t, fmt.Sprint("create ", i), err, "the organization acme has 5 stacks, and its quota allows 5")
	}
	list, err := stores[1].ListStacks(t.Context(), bounded, "")
	if err != nil || len(list) != most || made != most {
		t.Errorf("%d creates succeed and there are %d stacks, %v; want %d", made, len(list), err, most)
	}
	if err := stores[2].RemoveStack(t.Context(), named("first"), false); err != nil {
		t.Fatal(err)
	}
	created(t, stores[3], "instead")
	overQuota(t, "another one", stores[0].CreateStack(t.Context(), named("more"), nil), "has 5 stacks")
	if err := stores[0].CreateStack(t.Context(), named("second"), nil); deployments.CodeOf(err) != deployments.CodeExists {
		t.Errorf("one that is there ends with %v", err)
	}
	state := stateOf(named("more"), 1)
	_, err = stores[0].CreateAsIs(t.Context(), statestore.Exchange{Stack: named("more")}, nil, state)
	overQuota(t, "one with a state", err, "has 5 stacks")
}

func TestAnObjectOfAStackThatIsGoneIsNoStackOfTheQuota(t *testing.T) {
	objects := &bucket.Memory{}
	s := storetest.Opened(t, objects, statestore.Options{})
	limited(t, s, deployments.Quota{deployments.LimitStacks: 1})
	put(t, objects, "stacks/acme/web/gone/updates/1/events/run/00000001", []byte("late"))
	created(t, s, "dev")
	overQuota(t, "the second", s.CreateStack(t.Context(), named("more"), nil), "has 1 stack")
}

func TestAStackThatIsGoneIsNoNamesakeOfOneWithALongerName(t *testing.T) {
	objects := &bucket.Memory{}
	s := storetest.Opened(t, objects, statestore.Options{})
	limited(t, s, deployments.Quota{deployments.LimitStacks: 1})
	created(t, s, "dev-2")
	put(t, objects, "stacks/acme/web/dev/updates/1/events/run/00000001", []byte("late"))
	overQuota(t, "the second", s.CreateStack(t.Context(), named("dev"), nil), "has 1 stack")
}

func TestAPlaceOfAStackThatWasNeverCreatedIsFreeAgain(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	cut := false
	objects := storetest.NewFaulty(&bucket.Memory{}, func(call, key string) storetest.Fault {
		if cut && call == "put" && strings.HasSuffix(key, "/head.json") {
			return storetest.Refused
		}
		return storetest.None
	})
	s := storetest.Opened(t, objects, statestore.Options{Now: func() time.Time { return now }})
	limited(t, s, deployments.Quota{deployments.LimitStacks: 1})
	cut = true
	if err := s.CreateStack(t.Context(), named("lost"), nil); err == nil {
		t.Fatal("the stack is created")
	}
	cut = false
	overQuota(t, "at once", s.CreateStack(t.Context(), named("dev"), nil), "has 1 stack")
	now = now.Add(time.Minute)
	created(t, s, "dev")
}

func TestAStackIsMovedIntoAnOrganizationWithinItsQuota(t *testing.T) {
	s := storetest.Opened(t, &bucket.Memory{}, statestore.Options{})
	from := deployments.StackName{Organization: "other", Project: "web", Stack: "moves"}
	if err := s.CreateStack(t.Context(), from, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ImportAsIs(t.Context(), statestore.Exchange{Stack: from}, stateOf(from, 3)); err != nil {
		t.Fatal(err)
	}
	created(t, s, "dev")
	limited(t, s, deployments.Quota{deployments.LimitStacks: 1})
	to := named("moves")
	overQuota(t, "the move", s.RenameStack(t.Context(), from, to), "has 1 stack")
	limited(t, s, deployments.Quota{deployments.LimitStacks: 2, deployments.LimitResources: 2})
	overQuota(t, "the move", s.RenameStack(t.Context(), from, to), "would have 3 resources")
	if h, err := s.Head(t.Context(), from); err != nil || h.Active != nil || h.Peer != "" {
		t.Errorf("the stack that was not moved is %+v, %v", h, err)
	}
	limited(t, s, deployments.Quota{deployments.LimitResources: 3})
	if err := s.RenameStack(t.Context(), from, to); err != nil {
		t.Error(err)
	}
	if err := s.RenameStack(t.Context(), to, named("renamed")); err != nil { // the organization has no more stacks then
		t.Error(err)
	}
}

func TestAnOrganizationWithTooManyResourcesOnlyDoesWhatMakesNone(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	s := storetest.Opened(t, &bucket.Memory{}, statestore.Options{Now: func() time.Time { return now }})
	created(t, s, "dev", "live")
	if _, err := s.ImportAsIs(t.Context(), statestore.Exchange{Stack: named("dev")},
		stateOf(named("dev"), 4)); err != nil {
		t.Fatal(err)
	}
	limited(t, s, deployments.Quota{deployments.LimitResources: 4})
	request := func(kind engine.Kind, dry bool) deployments.UpdateRequest {
		return deployments.UpdateRequest{Stack: named("live"), Kind: kind, DryRun: dry}
	}
	if err := s.Organizations.MayBegin(t.Context(), request(engine.KindUp, false)); err != nil {
		t.Errorf("an update at the limit: %v", err)
	}
	if _, err := s.ImportAsIs(t.Context(), statestore.Exchange{Stack: named("live")},
		stateOf(named("live"), 1)); err != nil { // a state is never refused
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	for _, r := range []deployments.UpdateRequest{request(engine.KindUp, false), request(engine.KindImport, false),
		{Stack: named("live"), Kind: engine.KindUp, Lease: &deployments.Lease{}}} {
		overQuota(t, string(r.Kind), s.Organizations.MayBegin(t.Context(), r),
			"the organization acme has 5 resources, and its quota allows 4: destroy some first")
	}
	for _, r := range []deployments.UpdateRequest{request(engine.KindUp, true), request(engine.KindRefresh, false),
		request(engine.KindDestroy, false)} {
		if err := s.Organizations.MayBegin(t.Context(), r); err != nil {
			t.Errorf("%s (preview: %t) ends with %v", r.Kind, r.DryRun, err)
		}
	}
	other := request(engine.KindUp, false)
	other.Stack.Organization = "other"
	if err := s.Organizations.MayBegin(t.Context(), other); err != nil {
		t.Errorf("an update of another organization: %v", err)
	}
}

// begin places and claims the first update of a stack.
func begin(t *testing.T, s *statestore.Store, stack string) (claim statestore.Claim, why string) {
	u := deployments.UpdateName{StackName: named(stack), Version: "1"}
	why, err := s.Organizations.PlaceUpdate(t.Context(), u)
	if err == nil && why == "" {
		claim, err = s.Claim(t.Context(), statestore.Claimant{Update: u, Writer: "w", Run: "r"})
	}
	if err != nil {
		t.Error(err)
	}
	return claim, why
}

func TestUpdatesBeginUpToTheQuotaHoweverManyAreAtOnce(t *testing.T) {
	const most, asked = 3, 20
	stores := several(t, 4, statestore.Options{})
	for i := range asked {
		created(t, stores[0], fmt.Sprint("s", i))
	}
	limited(t, stores[0], deployments.Quota{deployments.LimitUpdates: most})
	var mu sync.Mutex
	var running []statestore.Claim
	waiting := map[string]bool{}
	try := func(i int) {
		stack := fmt.Sprint("s", i)
		claim, why := begin(t, stores[i%len(stores)], stack)
		mu.Lock()
		defer mu.Unlock()
		if delete(waiting, stack); why == "" {
			running = append(running, claim)
			return
		}
		waiting[stack] = true
		if want := "the organization acme runs 3 updates, and its quota allows 3 at a time"; !strings.Contains(why, want) {
			t.Errorf("%s waits because %s", stack, why)
		}
	}
	together(asked, try)
	if len(running) != most || len(waiting) != asked-most {
		t.Fatalf("%d updates run and %d wait", len(running), len(waiting))
	}
	if why := stores[3].Organizations.NoPlace(t.Context(), bounded); !strings.Contains(why, "3 at a time") {
		t.Errorf("it is said that another one waits because %q", why)
	}
	list, err := stores[1].Organizations.Quotas(t.Context(), bounded)
	if err != nil || list[0].Used[deployments.LimitUpdates] != most {
		t.Errorf("the use is %+v, %v", list, err)
	}
	if err := stores[1].Commit(t.Context(), running[0], statestore.Written{}); err != nil {
		t.Fatal(err)
	}
	running = running[1:]
	together(asked, func(i int) {
		mu.Lock()
		waits := waiting[fmt.Sprint("s", i)]
		mu.Unlock()
		if waits {
			try(i)
		}
	})
	if len(running) != most {
		t.Errorf("once one has ended, %d run", len(running))
	}
	again := running[0].Update
	if why, err := stores[2].Organizations.PlaceUpdate(t.Context(), again); err != nil || why != "" {
		t.Errorf("one that has its place gets it again: %q, %v", why, err)
	}
}

func TestAPlaceOfAnUpdateThatNeverBeganIsFreeAgain(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	s := storetest.Opened(t, &bucket.Memory{}, statestore.Options{Now: func() time.Time { return now }})
	created(t, s, "dev", "live")
	limited(t, s, deployments.Quota{deployments.LimitUpdates: 1})
	dead := deployments.UpdateName{StackName: named("dev"), Version: "1"}
	if why, err := s.Organizations.PlaceUpdate(t.Context(), dead); err != nil || why != "" {
		t.Fatal(why, err)
	}
	if _, why := begin(t, s, "live"); why == "" {
		t.Error("two updates have a place")
	}
	now = now.Add(time.Minute)
	if _, why := begin(t, s, "live"); why != "" {
		t.Errorf("it still waits: %s", why)
	}
}

func TestMinutesOfWorkersAreCountedOnceAndForAMonth(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	var mu sync.Mutex
	stores := several(t, 4, statestore.Options{Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return now
	}})
	used := func(want int64) {
		t.Helper()
		list, err := stores[0].Organizations.Quotas(t.Context(), bounded)
		if err != nil || list[0].Used[deployments.LimitWorkerMinutes] != want {
			t.Errorf("%v are used, %v; want %d minutes", list, err, want)
		}
	}
	count := func(i int) {
		u := deployments.UpdateName{StackName: named("dev"), Version: fmt.Sprint(i + 1)}
		if err := stores[i%len(stores)].Organizations.CountMinutes(t.Context(), u, 90*time.Second); err != nil {
			t.Error(err)
		}
	}
	count(99) // there is no limit
	limited(t, stores[0], deployments.Quota{deployments.LimitWorkerMinutes: 30})
	used(0)
	mu.Lock()
	now = now.Add(deployments.QuotaKnownWithin)
	mu.Unlock()
	together(20, count)
	used(30)
	together(20, count) // their activities again
	used(30)
	r := deployments.UpdateRequest{Stack: named("dev"), Kind: engine.KindUp}
	refused := func(want bool) {
		t.Helper()
		preview, refresh, lease, destroy, settles := r, r, r, r, r
		preview.DryRun, refresh.Kind, destroy.Kind = true, engine.KindRefresh, engine.KindDestroy
		lease.Lease, settles.Settle = &deployments.Lease{}, &engine.Settling{}
		for _, r := range []deployments.UpdateRequest{r, preview, refresh} {
			if err := stores[1].Organizations.MayBegin(t.Context(), r); want {
				overQuota(t, string(r.Kind), err, "has used 30 minutes of the workers, and its quota allows 30 within 30 days")
			} else if err != nil {
				t.Error(err)
			}
		}
		for what, r := range map[string]deployments.UpdateRequest{"a lease": lease, "a destroy": destroy,
			"the end of another update": settles} {
			if err := stores[1].Organizations.MayBegin(t.Context(), r); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	refused(true)
	mu.Lock()
	now = now.AddDate(0, 0, 29)
	mu.Unlock()
	used(30)
	mu.Lock()
	now = now.AddDate(0, 0, 1)
	mu.Unlock()
	used(0)
	refused(false)
	count(50)
	used(1)
}

func TestAProgramIsUploadedUpToTheQuota(t *testing.T) {
	s := storetest.Opened(t, &bucket.Memory{}, statestore.Options{})
	created(t, s, "dev")
	limited(t, s, deployments.Quota{deployments.LimitUploadBytes: 10})
	small, large := []byte("12345"), []byte("12345678901")
	if err := s.Programs.PutFile(t.Context(), named("dev"), programs.Digest(small), small); err != nil {
		t.Error(err)
	}
	overQuota(t, "a large file", s.Programs.PutFile(t.Context(), named("dev"), programs.Digest(large), large),
		"is sent a program of 11 bytes, and its quota allows 10 bytes")
	file := func(path string) deployments.File {
		return deployments.File{Path: path, Digest: programs.Digest(small), Size: int64(len(small))}
	}
	m := deployments.Manifest{Files: []deployments.File{file("a"), file("b")}}
	if _, err := s.Programs.PutManifest(t.Context(), named("dev"), m); err != nil {
		t.Error(err)
	}
	m.Files = append(m.Files, file("c"))
	_, err := s.Programs.Missing(t.Context(), named("dev"), m)
	overQuota(t, "a question about many files", err, "15 bytes")
	_, err = s.Programs.PutManifest(t.Context(), named("dev"), m)
	overQuota(t, "many files", err, "15 bytes")
}

func TestNoMoreVersionsAreKeptThanTheQuotaAllows(t *testing.T) {
	now := time.Now()
	s := storetest.Opened(t, &bucket.Memory{}, statestore.Options{Now: func() time.Time { return now }})
	created(t, s, "dev")
	for i := range 6 {
		if _, err := s.ImportAsIs(t.Context(), statestore.Exchange{Stack: named("dev")},
			stateOf(named("dev"), i+1)); err != nil {
			t.Fatal(err)
		}
	}
	limited(t, s, deployments.Quota{deployments.LimitVersions: 2})
	collect := func(want int) {
		t.Helper()
		got, err := s.Collect(t.Context(), named("dev"), statestore.Retention{Versions: 100, Age: 30 * 24 * time.Hour})
		if err != nil || got.Checkpoints != want {
			t.Errorf("collected %+v, %v; want %d checkpoints", got, err, want)
		}
	}
	collect(0) // a writer may still use what is young
	now = now.Add(48 * time.Hour)
	collect(4)
	if _, err := s.Export(t.Context(), statestore.Exchange{Stack: named("dev")}, 5, false); err != nil {
		t.Errorf("the version before the last one: %v", err)
	}
}

func TestQuotasAreShownOfEachOrganizationThatHasStacksOrOne(t *testing.T) {
	s := storetest.Opened(t, &bucket.Memory{}, statestore.Options{})
	limited(t, s, deployments.Quota{deployments.LimitStacks: 7})
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	list, err := s.Organizations.Quotas(t.Context(), "")
	if err != nil || len(list) != 2 || list[0].Organization != bounded || list[0].Limits[deployments.LimitStacks] != 7 ||
		list[1].Organization != dev.Organization || list[1].Used[deployments.LimitStacks] != 1 {
		t.Errorf("the quotas are %+v, %v", list, err)
	}
}
