package providertest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// fault is what a provider of notes does wrong, in the words of a mutant.
type fault string

const (
	createsBlindly      fault = "a create does not look first"
	namesAnew           fault = "each attempt at a create has another name"
	answersOtherwise    fault = "a create that finds what exists returns another id"
	labelsFirst         fault = "the label is set before the note is made"
	neverDone           fault = "nothing is ever done"
	createsWithoutMark  fault = "the mark is set by a second call"
	createsTwice        fault = "the service makes a second thing of the same name"
	overwrites          fault = "a create overwrites what was made since it looked"
	refusesAfterLoss    fault = "a lost answer is a plain error"
	notDoneAfterLoss    fault = "a lost answer is not done"
	neverFinishes       fault = "an id always comes with an error"
	updatesPartly       fault = "an update does not write the label"
	comparesWithOlds    fault = "an update compares with the old inputs"
	comparesWithOutput  fault = "an update compares with outputs that Read has remembered"
	trustsItsID         fault = "an update of what is gone succeeds"
	movesStableOutput   fault = "an update changes a stable output"
	readsTextOnly       fault = "Read returns the label that it remembers"
	readsOtherwise      fault = "Read returns inputs in another form"
	readsFewerOutputs   fault = "Read forgets an output"
	readsNothingAsValue fault = "Read returns a value for what was not declared"
	readsByIDOnly       fault = "Read finds nothing without an id"
	readsOtherID        fault = "Read finds an id by which it finds nothing"
	adoptsMarkOnly      fault = "an update with an id sets the mark and nothing else"
	readsWhatIsGone     fault = "Read says of what is gone that it is owned"
	readsAllAsOwned     fault = "Read says of all that it is owned"
	readsAllAsForeign   fault = "Read says of all that it is another owner's"
	takesForeign        fault = "a create takes what another stack has made"
	takesUnmarked       fault = "a create takes what has no mark"
	refusesForeign      fault = "another owner's thing is a plain error"
	adoptsWithoutMark   fault = "an update with an id does not set the mark"
	deletesOnce         fault = "a delete of what is gone fails"
	deletesPartly       fault = "a delete leaves the label"
	replacesInPlace     fault = "a replacement has the name of what it replaces"
	previewsForReal     fault = "a preview makes it"
	previewsWrongly     fault = "a preview says what does not come"
	tellsSecretInOutput fault = "an output tells a secret"
	tellsSecretInError  fault = "an error tells a secret"
	tellsSecretInLog    fault = "the log tells a secret"
	printsSecret        fault = "a secret is printed"
	undecided           fault = "a type that settles by Read cannot say"
)

// noteStore has notes, and their labels apart from them.
type noteStore struct {
	mu     sync.Mutex
	notes  map[string]storedNote
	labels map[string]string
	serial int
}

type storedNote struct{ Text, Key, Colour, Owner string }

func (s *noteStore) things() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]any{}
	for name, n := range s.notes {
		all["note "+name] = n
	}
	for name, label := range s.labels {
		all["label "+name] = label
	}
	return all
}

// noteAPI calls the store; each call may be cut off.
type noteAPI struct {
	calls *Calls
	store *noteStore
	fault fault
	// byRead: the type does not converge, and is settled by Read.
	byRead bool
}

func (a *noteAPI) call(what string, do func() error) error {
	err := a.calls.Do(what, func() error {
		a.store.mu.Lock()
		defer a.store.mu.Unlock()
		return do()
	})
	switch {
	case !errors.Is(err, ErrCut) || a.fault == refusesAfterLoss:
		return err
	case a.fault == notDoneAfterLoss:
		return &provider.NotDone{Err: err}
	}
	return &provider.Unknown{Err: err}
}

func (a *noteAPI) get(name string) (n *storedNote, label string, err error) {
	err = a.call("get "+name, func() error {
		if have, ok := a.store.notes[name]; ok {
			n, label = &have, a.store.labels[name]
		}
		return nil
	})
	return n, label, err
}

// put writes a note; one that is new only if there is none. What does not converge is made whole by one call.
func (a *noteAPI) put(name string, n storedNote, label string, isNew bool) error {
	return a.call("put "+name, func() error {
		_, exists := a.store.notes[name]
		switch {
		case a.fault == overwrites:
		case exists && isNew && a.fault == createsTwice:
			name += "~"
		case exists && isNew && a.byRead:
			return &provider.Foreign{Thing: "note " + name, ID: name}
		case exists && isNew && a.fault == createsBlindly:
			return errors.New("it exists")
		case exists && isNew:
			return &provider.NotDone{Err: errors.New("it exists by now")}
		}
		a.store.notes[name] = n
		if a.byRead {
			a.store.labels[name] = label
		}
		return nil
	})
}

func (a *noteAPI) setLabel(name, label string) error {
	return a.call("label "+name, func() error {
		a.store.labels[name] = label
		return nil
	})
}

func (a *noteAPI) deleteLabel(name string) error {
	return a.call("delete label "+name, func() error { delete(a.store.labels, name); return nil })
}

func (a *noteAPI) delete(name string) error {
	return a.call("delete "+name, func() error {
		if _, ok := a.store.notes[name]; !ok && a.fault == deletesOnce {
			return errors.New("no such note")
		}
		delete(a.store.notes, name)
		return nil
	})
}

type noteIn struct {
	Name   string `pulumi:"name,autoname,replace"`
	Colour string `pulumi:"colour,optional,replace"`
	Text   string `pulumi:"text"`
	Label  string `pulumi:"label" default:"none"`
	Key    string `pulumi:"key,optional,secret"`
}

type noteOut struct {
	noteIn
	Address string `pulumi:"address,stable"`
	Hint    string `pulumi:"hint,optional"`
}

// notes is notes:index:Note.
type notes struct{ *noteAPI }

func (n notes) Settling() provider.Settle {
	if n.byRead {
		return provider.SettleByRead
	}
	return provider.SettleByReconcile
}

func (n notes) Reconcile(_ context.Context, r provider.Request[noteIn, noteOut]) (string, noteOut, error) {
	if n.fault == namesAnew {
		if r.ID == "" {
			n.store.serial++ // of the test, without a call
			r.ID = fmt.Sprintf("%s-%d", r.News.Name, n.store.serial)
		}
		r.News.Name = r.ID
	}
	out, err := n.reconcile(r)
	if err == nil && n.fault == neverFinishes {
		return r.News.Name, out, errors.New("it is not ready")
	}
	if err != nil {
		return "", noteOut{}, err
	}
	if n.fault == answersOtherwise && out.Hint == found {
		return "note/" + r.News.Name, out, nil
	}
	return r.News.Name, out, nil
}

// found is the hint of a create that has found what exists.
const found = "found"

func (n notes) reconcile(r provider.Request[noteIn, noteOut]) (noteOut, error) {
	name := r.News.Name
	have, label, err := n.get(name)
	if (n.fault == createsBlindly || n.byRead) && r.ID == "" {
		have = nil
	}
	switch {
	case err != nil && n.fault == tellsSecretInError:
		return noteOut{}, fmt.Errorf("with the key %s: %w", r.News.Key, err)
	case err != nil:
		return noteOut{}, err
	case n.fault == neverDone:
		return noteOut{}, &provider.NotDone{Err: errors.New("try again later")}
	case have == nil && r.ID != "" && n.fault == trustsItsID:
		return n.out(r.News, r.ID), nil
	case have != nil && r.ID == "" && have.Owner != r.Owner() && !n.takes(*have):
		return noteOut{}, n.foreign(name)
	}
	want := storedNote{Text: r.News.Text, Key: r.News.Key, Colour: r.News.Colour, Owner: r.Owner()}
	if have != nil && n.fault == adoptsWithoutMark {
		want.Owner = have.Owner
	}
	if have != nil && have.Owner != r.Owner() && n.fault == adoptsMarkOnly {
		want.Text = have.Text
	}
	if n.fault == labelsFirst && label != r.News.Label {
		if err := n.setLabel(name, r.News.Label); err != nil {
			return noteOut{}, err
		}
		label = r.News.Label
	}
	if have == nil || *have != want || n.byRead && label != r.News.Label {
		if err := n.write(name, want, r.News.Label, have == nil); err != nil {
			return noteOut{}, err
		}
	}
	if !n.byRead && label != r.News.Label && !n.keepsLabel(r) {
		if err := n.setLabel(name, r.News.Label); err != nil {
			return noteOut{}, err
		}
	}
	switch n.fault {
	case tellsSecretInLog:
		log.Print("key ", r.News.Key)
	case printsSecret:
		_, _ = fmt.Fprintln(os.Stdout, "key", r.News.Key)
	}
	out := n.out(r.News, r.ID)
	if have != nil && n.fault == answersOtherwise && r.ID == "" {
		out.Hint = found
	}
	return out, nil
}

func (n notes) takes(have storedNote) bool {
	return n.fault == takesForeign || n.fault == takesUnmarked && have.Owner == ""
}

func (n notes) foreign(name string) error {
	if n.fault == refusesForeign {
		return errors.New("the name is taken")
	}
	return &provider.Foreign{Thing: "note " + name, ID: name}
}

func (n notes) write(name string, want storedNote, label string, isNew bool) error {
	if !isNew || n.fault != createsWithoutMark {
		return n.put(name, want, label, isNew)
	}
	unmarked := want
	unmarked.Owner = ""
	if err := n.put(name, unmarked, label, true); err != nil {
		return err
	}
	return n.put(name, want, label, false)
}

// keepsLabel says whether a wrong provider does not write the label.
func (n notes) keepsLabel(r provider.Request[noteIn, noteOut]) bool {
	switch n.fault {
	case updatesPartly:
		return r.ID != ""
	case comparesWithOlds:
		return r.Olds != nil && r.Olds.Label == r.News.Label
	case comparesWithOutput:
		return r.Output != nil && r.Output.Label == r.News.Label
	}
	return false
}

func (n notes) out(in noteIn, id string) noteOut {
	out := noteOut{noteIn: in, Address: "notes/" + in.Name}
	if n.fault == movesStableOutput && id != "" {
		out.Address += "/new"
	}
	if n.fault == tellsSecretInOutput && in.Key != "" {
		out.Hint = "the key is " + in.Key
	}
	return out
}

func (n notes) Preview(_ context.Context, r provider.Request[noteIn, noteOut]) (noteOut, error) {
	switch n.fault {
	case previewsForReal:
		return noteOut{}, n.put(r.News.Name, storedNote{}, "", false)
	case previewsWrongly:
		return noteOut{Address: "notes/1"}, nil
	}
	return noteOut{Address: n.out(r.News, "").Address}, nil
}

func (n notes) Diff(_ context.Context, r provider.Request[noteIn, noteOut]) (provider.Change, error) {
	var change provider.Change
	for name, differs := range map[string]bool{"text": r.Olds.Text != r.News.Text, "label": r.Olds.Label != r.News.Label,
		"key": r.Olds.Key != r.News.Key} {
		if differs {
			change.Updates = append(change.Updates, name)
		}
	}
	for name, differs := range map[string]bool{"name": r.Olds.Name != r.News.Name,
		"colour": r.Olds.Colour != r.News.Colour} {
		if differs {
			change.Replaces = append(change.Replaces, name)
		}
	}
	change.DeleteFirst = r.Olds.Name == r.News.Name && n.fault != replacesInPlace
	return change, nil
}

type noteFound = provider.Found[noteIn, noteOut]

func (n notes) Read(_ context.Context, l provider.Lookup[noteIn, noteOut]) (noteFound, error) {
	name := l.ID
	if name == "" && n.fault != readsByIDOnly {
		name = l.Inputs.Name
	}
	have, label, err := n.get(name)
	switch {
	case err != nil:
		return noteFound{}, err
	case have == nil && n.fault == readsWhatIsGone && l.Inputs != nil && l.ID != "":
		return noteFound{Ownership: provider.Owned, ID: l.ID, Inputs: *l.Inputs}, nil
	case l.ID == "" && n.fault == undecided:
		return noteFound{Ownership: provider.Undecidable}, nil
	case have == nil:
		return noteFound{Ownership: provider.Absent}, nil
	}
	if l.ID == "" && n.fault == readsOtherID {
		name = "note/" + name
	}
	found := noteFound{Ownership: provider.Unowned, ID: name,
		Inputs: noteIn{Name: name, Colour: have.Colour, Text: have.Text, Label: label, Key: have.Key}}
	if (have.Owner == l.Owner() || n.fault == readsAllAsOwned) && n.fault != readsAllAsForeign {
		found.Ownership = provider.Owned
	}
	if n.fault == readsTextOnly && l.Inputs != nil {
		found.Inputs.Label = l.Inputs.Label
	}
	if n.fault == readsOtherwise {
		found.Inputs.Text = strings.ToUpper(have.Text)
	}
	found.Output = n.out(found.Inputs, "")
	if n.fault == comparesWithOutput && l.Output != nil {
		found.Output.Label = l.Output.Label
	}
	if n.fault == readsNothingAsValue {
		found.Inputs.Key = cmp.Or(have.Key, "none")
	}
	if n.fault == readsFewerOutputs {
		found.Output.Address = ""
	}
	return found, nil
}

func (n notes) Delete(_ context.Context, e provider.Existing[noteIn, noteOut]) error {
	if n.fault != deletesPartly {
		if err := n.deleteLabel(e.ID); err != nil {
			return err
		}
	}
	return n.delete(e.ID)
}

// noteService starts a store, and a provider with a fault.
func noteService(f fault, byRead bool) Start {
	return func(_ *testing.T, calls *Calls) Setup {
		store := &noteStore{notes: map[string]storedNote{}, labels: map[string]string{}}
		return Setup{
			Package: func() provider.Package {
				api := &noteAPI{calls: calls, store: store, fault: f, byRead: byRead}
				return provider.Package{Name: "notes", Version: "1.0.0", Modules: []provider.Module{{
					Resources: []provider.Resource{provider.NewResource("notes:index:Note", notes{api})}}}}
			},
			Things: store.things,
			Unmarked: func(in resource.PropertyMap) {
				store.mu.Lock()
				defer store.mu.Unlock()
				store.notes[in["name"].StringValue()] = storedNote{Text: "by hand"}
			},
		}
	}
}

// noteCase is the case of all providers of notes.
func noteCase() Case {
	return Case{Type: "notes:index:Note", Inputs: Inputs{"text": "one", "key": Secret("open sesame")},
		Change: Inputs{"text": "two", "label": "urgent", "key": Secret("another key")}, Replace: Inputs{"colour": "red"}}
}

func named(c Case) Case {
	c.Inputs = maps.Clone(c.Inputs)
	c.Inputs["name"] = "it"
	return c
}
