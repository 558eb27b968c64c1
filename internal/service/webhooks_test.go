package service

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// hook is a webhook of the stack, or with an organization of that.
func hook(organization, title string, events ...string) deployments.Webhook {
	scope := deployments.ScopeOf(dev)
	if organization != "" {
		scope = deployments.WebhookScope{Organization: organization}
	}
	return deployments.Webhook{Name: deployments.WebhookName{Scope: scope}, Title: title, URL: "https://example.com",
		Format: deployments.WebhookRaw, Events: events}
}

// finished is an update that has ended.
func finished(n int, kind engine.Kind, status string) deployments.UpdateInfo {
	return deployments.UpdateInfo{Update: version(n), Kind: kind, Status: status, Started: time.Unix(int64(n), 0),
		Ended: time.Unix(int64(n)+1, 0)}
}

func TestAnEventIsToldOnceToTheWebhooksThatWantIt(t *testing.T) {
	s, f := newFake(t)
	names := map[string]string{}
	paused := hook("", "paused")
	paused.Paused = true
	grouped := hook("", "deployments only")
	grouped.Groups = []string{"deployments"}
	for _, w := range []deployments.Webhook{hook("", "all"), hook("", "failures", "update_failed"),
		hook(dev.Organization, "of the organization"), hook("other", "of another"), paused, grouped} {
		made, err := s.PutWebhook(t.Context(), w)
		must(t, err)
		names[made.Name.Name] = made.Title
	}
	told := func() (titles []string) {
		for _, in := range f.told {
			for _, w := range in.Webhooks {
				titles = append(titles, in.Event.Name+" "+names[w.Name])
			}
		}
		f.told = nil
		slices.Sort(titles)
		return titles
	}
	migrated := finished(1, engine.KindUp, deployments.StatusFailed)
	migrated.Next = "2"
	must(t, s.UpdateEnded(t.Context(), migrated, false))
	check := finished(1, engine.KindRefresh, deployments.StatusSucceeded)
	check.DryRun = true
	must(t, s.UpdateEnded(t.Context(), check, true))
	if got := told(); got != nil {
		t.Errorf("of a migrated update and of a drift check it is told %q", got)
	}
	for range 2 {
		must(t, s.UpdateEnded(t.Context(), finished(2, engine.KindUp, deployments.StatusCancelled), false))
	}
	must(t, s.UpdateEnded(t.Context(), finished(3, engine.KindDestroy, deployments.StatusSucceeded), false))
	must(t, s.TellDrift(t.Context(), deployments.Drift{Resources: make([]deployments.DriftedResource, 1)}, check))
	must(t, s.CreateStack(t.Context(), deployments.StackName{Organization: dev.Organization, Project: "p", Stack: "s"},
		nil))
	const all, of = " all", " of the organization"
	want := []string{"destroy_succeeded" + all, "destroy_succeeded" + of, "drift_detected" + all,
		"drift_detected deployments only", "drift_detected" + of, "drift_detection_succeeded" + all,
		"drift_detection_succeeded deployments only", "drift_detection_succeeded" + of, "stack_created" + of,
		"update_failed" + all, "update_failed failures", "update_failed" + of}
	if got := told(); !slices.Equal(got, want) {
		t.Errorf("it is told\n%q, want\n%q", got, want)
	}
}

func TestTheSecretOfAWebhookIsKeptReplacedOrRemovedAndNeverShown(t *testing.T) {
	s, _ := newFake(t)
	w := hook("", "signed")
	w.Secret = "first"
	w, err := s.PutWebhook(t.Context(), w)
	must(t, err)
	for _, c := range []struct {
		given string
		has   bool
		want  string
	}{{"", true, "first"}, {"second", true, "second"}, {"", false, ""}, {"", true, ""}} {
		w.Secret, w.HasSecret = c.given, c.has
		if w, err = s.PutWebhook(t.Context(), w); err != nil || w.Secret != "" || w.HasSecret != (c.want != "") {
			t.Errorf("%+v is answered %+v, %v", c, w, err)
		}
		stored, err := s.store.Jobs.Webhook(t.Context(), w.Name)
		must(t, err)
		list, err := s.Webhooks(t.Context(), w.Name.Scope)
		must(t, err)
		if stored.Secret != c.want || len(list) != 1 || list[0].Secret != "" {
			t.Errorf("%+v: stored is %q, and listed %+v", c, stored.Secret, list)
		}
	}
}

// overtaken is an object store in which another write comes before the next one.
type overtaken struct {
	bucket.Objects
	other func()
}

func (o *overtaken) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	if other := o.other; other != nil {
		o.other = nil
		other()
	}
	return o.Objects.Put(ctx, key, data, c)
}

func TestWebhooksThatAreMadeAtOnceAreAllMade(t *testing.T) {
	objects := &overtaken{Objects: &bucket.Memory{}}
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	s := New(nil, store, Readers{})
	_, err = s.PutWebhook(t.Context(), hook("acme", "the first"))
	must(t, err)
	objects.other = func() {
		_, err := s.PutWebhook(t.Context(), hook("acme", "the faster one"))
		must(t, err)
	}
	_, err = s.PutWebhook(t.Context(), hook("acme", "the slower one"))
	must(t, err)
	if list, err := s.Webhooks(t.Context(), deployments.WebhookScope{Organization: "acme"}); err != nil || len(list) != 3 {
		t.Errorf("%d are there, %v", len(list), err)
	}
}

func TestAScopeHasOnlySoManyWebhooks(t *testing.T) {
	s, _ := newFake(t)
	for range deployments.MaxWebhooks {
		_, err := s.PutWebhook(t.Context(), hook("acme", "one of many"))
		must(t, err)
	}
	if _, err := s.PutWebhook(t.Context(), hook("acme", "one more")); deployments.CodeOf(err) !=
		deployments.CodeConflict {
		t.Errorf("one more: %v", err)
	}
	unknown := hook("", "x")
	unknown.Name.Name = "nothing"
	if _, err := s.PutWebhook(t.Context(), unknown); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("one that does not exist: %v", err)
	}
}

func TestAWebhookThatCannotBeIsRefused(t *testing.T) {
	tooLong := strings.Repeat("x", deployments.MaxWebhookSecret+1)
	for name, spoil := range map[string]func(*deployments.Webhook){
		"no title":            func(w *deployments.Webhook) { w.Title = "" },
		"no URL":              func(w *deployments.Webhook) { w.URL = "" },
		"a file":              func(w *deployments.Webhook) { w.URL = "file:///etc/passwd" },
		"a password":          func(w *deployments.Webhook) { w.URL = "https://ann:secret@example.com" },
		"a long URL":          func(w *deployments.Webhook) { w.URL += strings.Repeat("x", deployments.MaxWebhookURL) },
		"an unknown format":   func(w *deployments.Webhook) { w.Format = "xml" },
		"an unknown event":    func(w *deployments.Webhook) { w.Events = []string{"update"} },
		"an unknown group":    func(w *deployments.Webhook) { w.Groups = []string{"everything"} },
		"a long secret":       func(w *deployments.Webhook) { w.Secret = tooLong },
		"a scope that leaves": func(w *deployments.Webhook) { w.Name.Scope.Stack = ".." },
		"half a scope":        func(w *deployments.Webhook) { w.Name.Scope.Stack = "" },
		"a control in it":     func(w *deployments.Webhook) { w.Title = "\x1b[2J" },
	} {
		w := hook("", "fine")
		if err := w.Validate(); err != nil {
			t.Fatal(err)
		}
		spoil(&w)
		if err := w.Validate(); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
