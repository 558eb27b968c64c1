package storetest

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/programs"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Master is the master key that the suite's stores have.
var Master = bytes.Repeat([]byte{42}, 32)

// Store checks the typed store over an object store. Open gives an empty one for each test, which need not be reliable
// as long as it retries.
func Store(t *testing.T, open func(t *testing.T) bucket.Objects) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, f fixture)
	}{
		{"a stack is made once, listed, tagged and removed", stacks},
		{"a stack that does not exist is not found", noStack},
		{"a stack with resources is removed only by force", removeFull},
		{"a renamed stack keeps its values, history and files, under new URNs", rename},
		{"one update at a time has a stack", claims},
		{"an update has its stack once, whatever is repeated", claimsOnce},
		{"a writer that lost the stack cannot move the head", fencing},
		{"one damaged object hides only itself", damagedObjects},
		{"no name leads to the object of another", names},
		{"of racing claims one wins", raceClaims},
		{"settling twice is settling once", settleTwice},
		{"a finished update is the next base, to the last value", finishAndLoad},
		{"finishing after a lost worker gives the same state", finishTwice},
		{"an update ends with all of its saves, or not", missingSave},
		{"what an update has had answered is known from what it saved", answered},
		{"a head is not older than what its stack has committed", staleHead("checkpoints/2.", 1)},
		{"a head is not older than the states that its stack has", staleHead("history/", 2)},
		{"a head is not older than an update that has saved what it did", headFromBeforeAnUpdate},
		{"what only recovery wants of an update goes with the update after it", sweep},
		{"of what is old only what somebody needs is kept, with the history", retention},
		{"collecting beside updates takes nothing from them", collectBeside},
		{"notes of creates are collected but for those that are still open", collectAbsences},
		{"project files are kept by the month", filesByMonth},
		{"what was stored before values had an update and files a month is read, and collected", formerPlaces},
		{"an earlier version is made the newest again", restore},
		{"a broken snapshot is repaired, or kept whole and not built on", brokenSnapshot},
		{"values of an update's own operations are found in its deltas", operationValues},
		{"pending operations and their seeds outlive the update", pendingOperations},
		{"an update's request, events, outcomes and description come back", updateRecords},
		{"history is newest first, without what never began", history},
		{"the last update of a stack is one that began", lastOfStatus},
		{"the last drift check comes back", drift},
		{"a project's files arrive whole and once", bundles},
		{"a token opens the door until it is removed", tokens},
		{"a token of a member may do what the member may at the time", members},
		{"configuration secrets belong to one stack", configSecrets},
		{"nothing stored shows a secret", nothingShows},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := open(t)
			s, err := statestore.New(o, statestore.Options{Master: Master})
			if err != nil {
				t.Fatal(err)
			}
			c.test(t, fixture{s, o})
		})
	}
}

type fixture struct {
	*statestore.Store
	objects bucket.Objects
}

var (
	dev  = deployments.StackName{Organization: "organization", Project: "web", Stack: "dev"}
	prod = deployments.StackName{Organization: "organization", Project: "web", Stack: "prod"}
)

// hush is a secret that must not show anywhere.
const hush = "hush-hush-4711"

func up(n int) deployments.UpdateName {
	return deployments.UpdateName{StackName: dev, Version: fmt.Sprint(n)}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t *testing.T, err error, code deployments.Code) {
	t.Helper()
	if err == nil || deployments.CodeOf(err) != code {
		t.Fatalf("got %v; want an error with code %s", err, code)
	}
}

func (f fixture) create(t *testing.T) {
	t.Helper()
	ok(t, f.CreateStack(t.Context(), dev, nil))
}

func (f fixture) claim(t *testing.T, n int, writer string) statestore.Claim {
	t.Helper()
	c, err := f.Claim(t.Context(), statestore.Claimant{Update: up(n), RequestID: fmt.Sprint("request ", n),
		Writer: writer})
	ok(t, err)
	return c
}

const (
	rootURN  = urn.URN("urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev")
	cloudURN = urn.URN("urn:pulumi:dev::web::pulumi:providers:cloud::default")
)

func thingURN(name string) urn.URN { return urn.URN("urn:pulumi:dev::web::cloud:index:Thing::" + name) }

// thing gives the state of a resource with a secret, and with outputs that are too large to travel inline.
func (f fixture) thing(t *testing.T, sc statestore.Scope, op int, name string) engine.State {
	t.Helper()
	c, err := f.Bags(t.Context(), sc)
	ok(t, err)
	in, err := c.Encode(t.Context(), inputs(name))
	ok(t, err)
	out, err := c.Encode(t.Context(), outputs(name))
	ok(t, err)
	trigger, err := c.Encode(t.Context(), triggered(name))
	ok(t, err)
	value, err := bags.TriggerValue(c.Key, triggered(name))
	ok(t, err)
	extension, err := c.EncodeExtension(t.Context(), extending)
	ok(t, err)
	return engine.State{
		Key: engine.Key(fmt.Sprint("o", op)), URN: thingURN(name), Type: "cloud:index:Thing", Custom: true, ID: "id-" +
			name,
		Parent: rootURN, Provider: string(cloudURN) + "::p1", Dependencies: []urn.URN{cloudURN}, Inputs: in,
		Outputs: out, Trigger: trigger, TriggerValue: value,
		PropertyDependencies: []engine.PropertyDependency{{Property: "a", URNs: []urn.URN{cloudURN}}, {Property: "b"}},
		Timeouts:             &engine.Timeouts{Create: 60}, IgnoreChanges: []string{"x.y"}, HideDiff: []string{"z[0]"},
		Created: "2024-01-02T03:04:05.678Z", RefreshBeforeUpdate: true, Extension: extension,
	}
}

// extending is an extension that does not travel inline.
var extending = apitype.Extension{Name: "gateway", Version: "1.2.3", Value: bytes.Repeat([]byte("\x00crd"), 1000)}

func triggered(by string) resource.PropertyMap {
	return resource.PropertyMap{"value": resource.MakeSecret(resource.NewProperty(by))}
}

func inputs(name string) resource.PropertyMap {
	return resource.PropertyMap{"name": resource.NewProperty(name),
		"password": resource.MakeSecret(resource.NewProperty(hush))}
}

func outputs(name string) resource.PropertyMap {
	return resource.PropertyMap{
		"name": resource.NewProperty(name), "self": resource.MakeCustomResourceReference(thingURN(name),
			resource.ID("id-"+name), "1.0.0"),
		"large": resource.MakeSecret(resource.NewProperty(strings.Repeat(hush, 1000))),
	}
}

func puts(states ...engine.State) []engine.Delta {
	var deltas []engine.Delta
	for i := range states {
		deltas = append(deltas, engine.Delta{Seq: i + 1, Kind: engine.DeltaPut, State: &states[i]})
	}
	return deltas
}

// deploy makes version 1 of dev, with a stack, a provider and the named things.
func (f fixture) deploy(t *testing.T, names ...string) statestore.Written {
	t.Helper()
	f.claim(t, 1, "w")
	sc := statestore.Scope{Update: up(1)}
	states := []engine.State{
		{Key: "o1", URN: rootURN, Type: "pulumi:pulumi:Stack"},
		{Key: "o2", URN: cloudURN, Type: "pulumi:providers:cloud", Custom: true, ID: "p1"},
	}
	ok(t, f.Updates.SaveDeltas(t.Context(), up(1), 1, puts(states...)))
	for i, name := range names {
		ok(t, f.Updates.SaveDeltas(t.Context(), up(1), 2+i, puts(f.thing(t, sc, 3+i, name))))
	}
	w, err := f.Finish(t.Context(), statestore.Finish{Scope: sc, Saves: 1 + len(names)})
	ok(t, err)
	return w
}

func stacks(t *testing.T, f fixture) {
	f.create(t)
	wantCode(t, f.CreateStack(t.Context(), dev, nil), deployments.CodeExists)
	wantCode(t, f.CreateStack(t.Context(), deployments.StackName{Organization: "o", Project: "a/b", Stack: "s"}, nil),
		deployments.CodeInvalid)
	ok(t, f.CreateStack(t.Context(), prod, map[string]string{"env": "prod"}))
	ok(t, f.CreateStack(t.Context(), deployments.StackName{Organization: "other", Project: "web", Stack: "dev"}, nil))
	for _, c := range []struct {
		org, project string
		want         string
	}{
		{"organization", "web", "organization/web/dev organization/web/prod"}, {"organization", "nothing", ""},
		{"", "", "organization/web/dev organization/web/prod other/web/dev"},
		{"other", "", "other/web/dev"}, {"", "web", "organization/web/dev organization/web/prod other/web/dev"},
	} {
		list, err := f.ListStacks(t.Context(), c.org, c.project)
		ok(t, err)
		var names []string
		for _, i := range list {
			names = append(names, i.Stack.String())
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s/%s has %q; want %q", c.org, c.project, got, c.want)
		}
	}
	ok(t, f.TagStack(t.Context(), prod, map[string]string{"env": "staging"}))
	info, err := f.Stack(t.Context(), prod)
	ok(t, err)
	if info.Tags["env"] != "staging" || info.Version != 0 {
		t.Errorf("got %+v", info)
	}
	ok(t, f.RemoveStack(t.Context(), prod, false))
	wantCode(t, f.RemoveStack(t.Context(), prod, false), deployments.CodeNotFound)
	ok(t, f.CreateStack(t.Context(), prod, nil))
}

func noStack(t *testing.T, f fixture) {
	_, err := f.Head(t.Context(), dev)
	wantCode(t, err, deployments.CodeNotFound)
	_, err = f.Updates.History(t.Context(), dev, 0)
	wantCode(t, err, deployments.CodeNotFound)
	_, err = f.Claim(t.Context(), statestore.Claimant{Update: up(1), Writer: "w"})
	wantCode(t, err, deployments.CodeNotFound)
	f.create(t)
	_, err = f.Checkpoint(t.Context(), dev, 7, deployments.SecretsProvider{})
	wantCode(t, err, deployments.CodeNotFound)
	_, err = f.Updates.Request(t.Context(), up(9))
	wantCode(t, err, deployments.CodeNotFound)
}

func removeFull(t *testing.T, f fixture) {
	f.create(t)
	f.deploy(t, "a")
	wantCode(t, f.RemoveStack(t.Context(), dev, false), deployments.CodeConflict)
	f.claim(t, 2, "w")
	wantCode(t, f.RemoveStack(t.Context(), dev, true), deployments.CodeConflict)
	claim, err := f.ClaimOf(t.Context(), up(2))
	ok(t, err)
	ok(t, f.Commit(t.Context(), claim, statestore.Written{}))
	ok(t, f.RemoveStack(t.Context(), dev, true))
	l, err := f.objects.List(t.Context(), bucket.Query{})
	ok(t, err)
	if !slices.Equal(l.Keys, []string{"removed/organization/web/dev.json"}) {
		t.Fatalf("still there: %q", l.Keys)
	}
	list, err := f.ListStacks(t.Context(), "", "")
	if err != nil || len(list) != 0 {
		t.Errorf("there are the stacks %+v, %v", list, err)
	}
}

func rename(t *testing.T, f fixture) {
	f.create(t)
	f.deploy(t, "a")
	ok(t, f.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(1), Status: "succeeded"}))
	file := []byte("content")
	ok(t, f.Programs.PutFile(t.Context(), dev, programs.Digest(file), file))
	to := deployments.StackName{Organization: "org2", Project: "site", Stack: "live"}
	ok(t, f.RenameStack(t.Context(), dev, to))
	_, err := f.Head(t.Context(), dev)
	wantCode(t, err, deployments.CodeNotFound)
	h, err := f.Head(t.Context(), to)
	ok(t, err)
	c, err := f.Checkpoint(t.Context(), to, h.Version, deployments.SecretsProvider{})
	ok(t, err)
	var urns []string
	for _, s := range c.States() {
		urns = append(urns, string(s.URN))
	}
	want := []string{
		"urn:pulumi:live::site::pulumi:pulumi:Stack::site-live",
		"urn:pulumi:live::site::pulumi:providers:cloud::default",
		"urn:pulumi:live::site::cloud:index:Thing::a",
	}
	if !slices.Equal(urns, want) {
		t.Errorf("got %q", urns)
	}
	values, err := c.Values("base:2/in")
	ok(t, err)
	if !values.DeepEquals(inputs("a")) {
		t.Errorf("got %v", values)
	}
	past, err := f.Updates.History(t.Context(), to, 0)
	ok(t, err)
	content, err := f.Programs.File(t.Context(), to, programs.Digest(file))
	if err != nil || string(content) != "content" || len(past) != 1 {
		t.Errorf("%q, %d updates, %v", content, len(past), err)
	}
	f.create(t)
	wantCode(t, f.RenameStack(t.Context(), dev, to), deployments.CodeExists)
	_, err = f.Claim(t.Context(), statestore.Claimant{Update: up(2), Writer: "w"})
	ok(t, err)
}

func nothingShows(t *testing.T, f fixture) {
	f.create(t)
	f.deploy(t, "a")
	u := up(2)
	ok(t, f.Updates.PutRequest(t.Context(), u, deployments.UpdateRequest{Config: map[string]deployments.ConfigValue{
		"web:p": {Value: hush, Secret: true}}}))
	ok(t, f.Updates.AppendEvents(t.Context(), updates.Part{Update: u, Stream: "program-1", Number: 1}, []byte(hush)))
	ok(t, f.Updates.PutOutcome(t.Context(), u, 1, engine.StepFinished{Op: 1, ID: hush}))
	ok(t, f.Programs.PutFile(t.Context(), dev, programs.Digest([]byte(hush)), []byte(hush)))
	token, err := f.Access.CreateToken(t.Context(), deployments.Token{Name: "ci", Grant: &adminOfAll})
	ok(t, err)
	l, err := f.objects.List(t.Context(), bucket.Query{})
	ok(t, err)
	for _, key := range l.Keys {
		o, err := f.objects.Get(t.Context(), key)
		ok(t, err)
		for _, text := range Readable(o.Data) {
			if bytes.Contains(text, []byte(hush)) || bytes.Contains(text, []byte(token)) ||
				strings.Contains(key, token) {
				t.Errorf("%s shows a secret", key)
			}
		}
	}
	if len(l.Keys) < 9 {
		t.Errorf("only %q were searched", l.Keys)
	}
}
