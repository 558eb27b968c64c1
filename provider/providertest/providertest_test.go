package providertest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/provider"
)

func TestAProviderThatConvergesPasses(t *testing.T) {
	Run(t, noteService("", false), noteCase())
}

func TestAProviderThatIsSettledByReadPasses(t *testing.T) {
	Run(t, noteService("", true), noteCase())
}

func TestAResourceWithAGivenNameIsReplacedIfTheOldOneIsDeletedFirst(t *testing.T) {
	Run(t, noteService("", false), named(noteCase()))
}

// TestEachFaultOfAProviderIsFound plays the check that finds a fault, for a provider with that fault and no other.
func TestEachFaultOfAProviderIsFound(t *testing.T) {
	faults := []struct {
		fault       fault
		check, says string
	}{
		{createsBlindly, "a create is interrupted", "look at what exists first"},
		{createsBlindly, "the state is lost", "look at what exists first"},
		{namesAnew, "a create is interrupted", "the service does not have what it has undisturbed"},
		{namesAnew, "two creates run at once", "they made two things"},
		{answersOtherwise, "a create is interrupted", `the id "note/it-11b0f38" leads to what Read calls "absent"`},
		{labelsFirst, "two stacks create it at once", "the one that is too late has changed what the other has made"},
		{neverDone, "a resource lives undisturbed", "the create comes to no end"},
		{createsWithoutMark, "a create is interrupted", "the create was made again, and fails"},
		{createsWithoutMark, "two creates run at once", "met what another process has made"},
		{createsTwice, "two creates run at once", "they leave something else than one"},
		{overwrites, "two stacks create it at once", "both have made it"},
		{refusesForeign, "two stacks create it at once", "must fail with provider.Foreign"},
		{refusesAfterLoss, "a create is interrupted", "wrap it in provider.Unknown"},
		{refusesAfterLoss, "an update is interrupted", "wrap it in provider.Unknown"},
		{refusesAfterLoss, "a delete is interrupted", "wrap it in provider.Unknown"},
		{refusesAfterLoss, "a replacement is interrupted", "wrap it in provider.Unknown"},
		{notDoneAfterLoss, "a create is interrupted", "ended with provider.NotDone, although"},
		{neverFinishes, "a resource lives undisturbed", "still returns an id together with an error"},
		{updatesPartly, "a resource lives undisturbed", "does not come to what a create of the same inputs makes"},
		{updatesPartly, "properties are changed from outside", `"label" changes nothing`},
		{comparesWithOlds, "properties are changed from outside", "up --force"},
		{comparesWithOutput, "properties are changed from outside", "the update after a refresh does not repair it"},
		{trustsItsID, "it is deleted from outside", "succeeds without making it again"},
		{movesStableOutput, "a resource lives undisturbed", `"address" is declared stable`},
		{readsTextOnly, "properties are changed from outside", `"label" was changed from outside, and Read does not see it`},
		{readsOtherwise, "what has not changed needs no change", `returns other inputs: ["text"]`},
		{readsFewerOutputs, "what has not changed needs no change", `returns other outputs: ["address"]`},
		{readsOtherwise, "the state is lost", `when nothing is remembered: ["text"]`},
		{readsNothingAsValue, "optional inputs are left out", `Read, right after a create, returns other inputs: ["key"]`},
		{readsByIDOnly, "the state is lost", `Read without an id says "absent"`},
		{readsByIDOnly, "another owner's thing is in the way", `Read without an id says "absent"`},
		{readsOtherID, "the state is lost", `with the id "note/it-11b0f38"`},
		{readsOtherID, "another owner's thing is in the way", "by the id \"note/it-11b0f38\" that it has returned"},
		{adoptsMarkOnly, "another owner's thing is in the way", "is not as declared"},
		{readsWhatIsGone, "it is deleted from outside", "it must say Absent"},
		{readsAllAsOwned, "another owner's thing is in the way", "say Unowned"},
		{readsAllAsForeign, "what has not changed needs no change", "it must say Owned"},
		{takesForeign, "another owner's thing is in the way", "another stack's thing is in the way of a create, and the"},
		{takesUnmarked, "another owner's thing is in the way", "a hand-made thing is in the way of a create, and the create"},
		{refusesForeign, "another owner's thing is in the way", "must fail with provider.Foreign"},
		{adoptsWithoutMark, "another owner's thing is in the way", "Reconcile must mark what has its id"},
		{deletesOnce, "a resource lives undisturbed", "a delete of what is gone already fails"},
		{deletesOnce, "a delete is interrupted", "the delete was made again, and fails"},
		{deletesOnce, "it is deleted from outside", "a delete of what was deleted from outside fails"},
		{deletesPartly, "a resource lives undisturbed", "is left over"},
		{previewsForReal, "a preview makes nothing", "a preview has made something"},
		{previewsWrongly, "a preview makes nothing", `the output "address" will be`},
		{tellsSecretInOutput, "secrets stay secret", `"hint"`},
		{tellsSecretInError, "secrets stay secret", "the error message"},
		{tellsSecretInLog, "secrets stay secret", "what the provider writes"},
		{printsSecret, "secrets stay secret", "what the provider writes"},
	}
	for _, f := range faults {
		t.Run(string(f.fault)+": "+f.check, func(t *testing.T) {
			finds(t, f.check, f.says, noteService(f.fault, false), noteCase())
		})
	}
	t.Run(string(replacesInPlace), func(t *testing.T) {
		finds(t, "a resource lives undisturbed", "must ask for DeleteFirst", noteService(replacesInPlace, false),
			named(noteCase()))
	})
	t.Run(string(deletesPartly), func(t *testing.T) {
		c := noteCase()
		c.Replace = nil
		finds(t, "a resource lives undisturbed", "after the delete the service does not have",
			noteService(deletesPartly, false), c)
	})
	shared := noteCase()
	shared.Shared = true
	t.Run("what is shared is another's", func(t *testing.T) {
		finds(t, "another owner's thing is in the way", "that is Shared, and Read without an id says", noteService("", false),
			shared)
	})
	t.Run("what is shared is refused", func(t *testing.T) {
		finds(t, "another owner's thing is in the way", "that is Shared, and the create fails",
			noteService(readsAllAsOwned, false), shared)
	})
	t.Run(string(undecided), func(t *testing.T) {
		finds(t, "a create is interrupted", "it must say Owned or Absent", noteService(undecided, true), noteCase())
	})
}

// finds plays one check, and fails unless it finds what says says.
func finds(t *testing.T, name, says string, start Start, c Case) {
	t.Helper()
	for _, check := range checks {
		if check.name != name {
			continue
		}
		if err := check.play(newLife(t, start, c)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("it says %v, not %q", err, says)
		}
		return
	}
	t.Fatalf("there is no check %q", name)
}

func TestAMistakeInACaseIsSaid(t *testing.T) {
	good := noteService("", false)
	wrong := func(change func(*Case)) Case {
		c := noteCase()
		change(&c)
		return c
	}
	without := func(change func(*Setup)) Start {
		return func(t *testing.T, calls *Calls) Setup {
			s := good(t, calls)
			change(&s)
			return s
		}
	}
	for name, m := range map[string]struct {
		start       Start
		c           Case
		check, says string
	}{
		"no Things": {without(func(s *Setup) { s.Things = nil }), noteCase(), "a resource lives undisturbed",
			"no Package or no Things"},
		"Things that tell nothing": {without(func(s *Setup) { s.Things = func() map[string]any { return nil } }), noteCase(),
			"a resource lives undisturbed", "Things must tell all"},
		"calls that do not pass": {without(func(s *Setup) {
			own := &Calls{}
			store := &noteStore{notes: map[string]storedNote{}, labels: map[string]string{}}
			s.Things = store.things
			s.Package = func() provider.Package {
				return provider.Package{Name: "notes", Modules: []provider.Module{{Resources: []provider.Resource{
					provider.NewResource("notes:index:Note", notes{&noteAPI{calls: own, store: store}})}}}}
			}
		}), noteCase(), "a create is interrupted", "makes no call that passes through Calls"},
		"a Config that is not known": {without(func(s *Setup) { s.Config = Inputs{"regoin": "x"} }), noteCase(),
			"a resource lives undisturbed", "the Config of the Setup is refused"},
		"inputs that Check refuses": {good, wrong(func(c *Case) { c.Inputs = nil }), "a resource lives undisturbed",
			"Check refuses the inputs"},
		"a type that is not there": {good, wrong(func(c *Case) { c.Type = "notes:index:Other" }),
			"a resource lives undisturbed", "no resource type"},
		"a Change that changes nothing": {good, wrong(func(c *Case) { c.Change = Inputs{"text": "one"} }),
			"a resource lives undisturbed", "Change changes nothing"},
		"a Change that replaces": {good, wrong(func(c *Case) { c.Change = Inputs{"colour": "red"} }),
			"a resource lives undisturbed", "name them in Replace"},
		"a Replace that updates": {good, wrong(func(c *Case) { c.Replace = Inputs{"text": "three"} }),
			"a resource lives undisturbed", "Replace does not replace"},
	} {
		t.Run(name, func(t *testing.T) { finds(t, m.check, m.says, m.start, m.c) })
	}
}

func TestATypeWithoutReadIsTold(t *testing.T) {
	start := func(_ *testing.T, calls *Calls) Setup {
		store := &noteStore{notes: map[string]storedNote{}, labels: map[string]string{}}
		return Setup{Things: store.things, Package: func() provider.Package {
			blind := struct {
				provider.Reconciler[noteIn, noteOut]
			}{notes{&noteAPI{calls: calls, store: store}}}
			return provider.Package{Name: "notes", Modules: []provider.Module{{
				Resources: []provider.Resource{provider.NewResource("notes:index:Note", blind)}}}}
		}}
	}
	finds(t, "what has not changed needs no change", "the type has no Read", start, noteCase())
}

func TestCallsOfATransportAreCutToo(t *testing.T) {
	served := 0
	service := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ }))
	defer service.Close()
	calls := &Calls{things: func() map[string]any { return map[string]any{"served": served} }}
	client := &http.Client{Transport: calls.Transport(http.DefaultTransport)}
	get := func() error {
		resp, err := client.Get(service.URL)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	for kind, want := range map[interruption]struct {
		served int
		effect bool
	}{unsent: {1, true}, unanswered: {2, true}, killed: {2, true}} {
		served = 0
		calls.arm(kind, 2)
		first, second := get(), get()
		met, effect := calls.interrupted()
		if first != nil || second == nil || !strings.Contains(second.Error(), ErrCut.Error()) || !met {
			t.Errorf("%s: %v, %v", kind, first, second)
		}
		if served != want.served || effect != want.effect {
			t.Errorf("%s: %d were served, effect %t", kind, served, effect)
		}
		third := get()
		if (third != nil) != (kind == killed) {
			t.Errorf("%s: the next call ends with %v", kind, third)
		}
		calls.disarm()
		if err := get(); err != nil {
			t.Errorf("%s: after it, %v", kind, err)
		}
	}
}

// TestTheGuideHasTheSectionsThatFailuresName compares the sources with the headings of docs/providers.md.
func TestTheGuideHasTheSectionsThatFailuresName(t *testing.T) {
	page, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	headings := map[string]bool{}
	for _, h := range regexp.MustCompile(`(?m)^## (.*)$`).FindAllStringSubmatch(string(page), -1) {
		headings[strings.ReplaceAll(strings.ToLower(h[1]), " ", "-")] = true
	}
	named := 0
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`faultf\("([^"%]*)",`).FindAllStringSubmatch(string(source), -1) {
			if named++; !headings[m[1]] {
				t.Errorf("%s names the section %q, which the guide does not have", file, m[1])
			}
		}
	}
	if named == 0 {
		t.Error("no failure names a section")
	}
}
