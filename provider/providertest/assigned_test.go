package providertest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// memo is a memo as its service has it, which gives it its id. No two need to differ.
type memo struct{ ID, Mark, Text, Folder string }

// memoStore has memos, from the oldest to the newest.
type memoStore struct {
	mu     sync.Mutex
	memos  []memo
	serial int
}

func (s *memoStore) things() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all, counts := map[string]any{}, map[string]int{}
	for _, m := range s.memos {
		all[fmt.Sprintf("%s#%d", m.Mark, counts[m.Mark])] = m.Text + " in " + m.Folder
		counts[m.Mark]++
	}
	return all
}

func (s *memoStore) add(m memo) {
	s.serial++
	m.ID = fmt.Sprint("m", s.serial)
	s.memos = append(s.memos, m)
}

func (s *memoStore) index(id string) int {
	return slices.IndexFunc(s.memos, func(m memo) bool { return m.ID == id })
}

// memoAPI calls the store; each call may be cut off.
type memoAPI struct {
	calls *Calls
	store *memoStore
	// faults of a provider
	keepsTwins, takesAll bool
}

func (a *memoAPI) call(what string, do func()) error {
	err := a.calls.Do(what, func() error {
		a.store.mu.Lock()
		defer a.store.mu.Unlock()
		do()
		return nil
	})
	if err != nil {
		return &provider.Unknown{Err: err}
	}
	return nil
}

// list returns what bears the mark, or begins with it, from the oldest to the newest.
func (a *memoAPI) list(mark string) (found []memo, err error) {
	err = a.call("list", func() {
		for _, m := range a.store.memos {
			if strings.HasPrefix(m.Mark, mark) || a.takesAll {
				found = append(found, m)
			}
		}
		if a.keepsTwins && len(found) > 0 {
			found = found[:1]
		}
	})
	return found, err
}

func (a *memoAPI) get(id string) (found *memo, err error) {
	err = a.call("get", func() {
		if i := a.store.index(id); i >= 0 {
			have := a.store.memos[i]
			found = &have
		}
	})
	return found, err
}

func (a *memoAPI) create(m memo) error { return a.call("create", func() { a.store.add(m) }) }

func (a *memoAPI) put(m memo) error {
	return a.call("put", func() {
		if i := a.store.index(m.ID); i >= 0 {
			a.store.memos[i] = m
		}
	})
}

func (a *memoAPI) delete(id string) error {
	return a.call("delete", func() {
		a.store.memos = slices.DeleteFunc(a.store.memos, func(m memo) bool { return m.ID == id })
	})
}

// MemoIn declares a memo.
type MemoIn struct {
	Text   string `pulumi:"text"`
	Folder string `pulumi:"folder,optional,replace"`
}

// MemoOut describes a memo that exists.
type MemoOut struct {
	MemoIn
	Number string `pulumi:"number,stable"`
}

// Memo is memos:index:Memo.
type Memo struct{ api *memoAPI }

// markOf is the mark of a memo: the stack that it is of, for List, and the resource.
func markOf(who provider.Identity) string { return stackMark(who) + "." + who.Owner() }

func stackMark(who provider.Identity) string {
	sum := sha256.Sum256([]byte(who.StackID))
	return hex.EncodeToString(sum[:8])
}

// made returns the oldest memo with the mark, which stays, and deletes what other attempts have made beside it; nil if
// there is none.
func (m *Memo) made(mark string) (*memo, error) {
	all, err := m.api.list(mark) // from the oldest to the newest
	if err != nil || len(all) == 0 {
		return nil, err
	}
	for _, twin := range all[1:] {
		if err := m.api.delete(twin.ID); err != nil {
			return nil, err
		}
	}
	return &all[0], nil
}

// existing returns the memo with the id or, on a create, the one with the mark, which is made if there is none.
func (m *Memo) existing(id string, want memo) (*memo, error) {
	if id != "" {
		have, err := m.api.get(id)
		if err == nil && have == nil {
			err = errors.New("memo " + id + " is gone: run deployctl up --refresh")
		}
		return have, err
	}
	have, err := m.made(want.Mark)
	if err != nil || have != nil {
		return have, err
	}
	if err := m.api.create(want); err != nil {
		return nil, err
	}
	have, err = m.made(want.Mark) // another attempt may have made one meanwhile
	if err == nil && have == nil {
		err = &provider.Unknown{Err: errors.New("the new memo is not listed")}
	}
	return have, err
}

// Reconcile makes the memo as declared, whether it exists or not.
func (m *Memo) Reconcile(_ context.Context, req provider.Request[MemoIn, MemoOut]) (string, MemoOut, error) {
	want := memo{ID: req.ID, Mark: markOf(req.Identity), Text: req.News.Text, Folder: req.News.Folder}
	have, err := m.existing(req.ID, want)
	if err != nil {
		return "", MemoOut{}, err
	}
	want.ID = have.ID
	if *have != want {
		if err := m.api.put(want); err != nil {
			return "", MemoOut{}, err
		}
	}
	return want.ID, MemoOut{req.News, want.ID}, nil
}

// Diff says that the old memo goes before the new one is made, which has the same mark and would be found in its place.
func (m *Memo) Diff(_ context.Context, req provider.Request[MemoIn, MemoOut]) (provider.Change, error) {
	change := provider.Change{DeleteFirst: true}
	if req.Olds.Text != req.News.Text {
		change.Updates = []string{"text"}
	}
	if req.Olds.Folder != req.News.Folder {
		change.Replaces = []string{"folder"}
	}
	return change, nil
}

// Read returns what exists: by its id, or by its mark if no id is known.
func (m *Memo) Read(_ context.Context, req provider.Lookup[MemoIn, MemoOut]) (provider.Found[MemoIn, MemoOut], error) {
	var have *memo
	var err error
	if req.ID != "" {
		have, err = m.api.get(req.ID)
	} else if all, failed := m.api.list(markOf(req.Identity)); failed != nil {
		err = failed
	} else if len(all) > 0 {
		have = &all[0]
	}
	if err != nil || have == nil {
		return provider.Found[MemoIn, MemoOut]{Ownership: provider.Absent, ID: req.ID}, err
	}
	in := MemoIn{have.Text, have.Folder}
	found := provider.Found[MemoIn, MemoOut]{Ownership: provider.Unowned, ID: have.ID, Inputs: in,
		Output: MemoOut{in, have.ID}}
	if have.Mark == markOf(req.Identity) {
		found.Ownership = provider.Owned
	}
	return found, nil
}

// List calls found with what bears the mark of the stack. Other engines tell no stack.
func (m *Memo) List(_ context.Context, stack provider.Identity, found func(id string) error) error {
	if stack.StackID == "" {
		return errors.New("the engine does not say which stack it is")
	}
	all, err := m.api.list(stackMark(stack) + ".")
	for _, have := range all {
		err = errors.Join(err, found(have.ID))
	}
	return err
}

// Delete removes the memo.
func (m *Memo) Delete(_ context.Context, req provider.Existing[MemoIn, MemoOut]) error {
	return m.api.delete(req.ID)
}

type anyMemo = provider.Reconciler[MemoIn, MemoOut]

// inPlace makes the new memo of a replacement beside the old one.
type inPlace struct{ *Memo }

func (m inPlace) Diff(ctx context.Context, req provider.Request[MemoIn, MemoOut]) (provider.Change, error) {
	change, err := m.Memo.Diff(ctx, req)
	change.DeleteFirst = false
	return change, err
}

// memoService starts a store, and a provider with a fault.
func memoService(fault func(*memoAPI) anyMemo) Start {
	return func(_ *testing.T, calls *Calls) Setup {
		store := &memoStore{}
		return Setup{
			Package: func() provider.Package {
				made := fault(&memoAPI{calls: calls, store: store})
				return provider.Package{Name: "memos", Version: "1.0.0", Modules: []provider.Module{{
					Resources: []provider.Resource{provider.NewResource("memos:index:Memo", made)}}}}
			},
			Things: store.things,
			Unmarked: func(in resource.PropertyMap) {
				store.mu.Lock()
				defer store.mu.Unlock()
				store.add(memo{Text: in["text"].StringValue()})
			},
		}
	}
}

// memoCase is a type that has no name.
func memoCase() Case {
	return Case{Type: "memos:index:Memo", Inputs: Inputs{"text": "one"}, Change: Inputs{"text": "two"},
		Replace: Inputs{"folder": "red"}, Unnamed: true}
}

func faultless(a *memoAPI) anyMemo { return &Memo{a} }

func TestAProviderOfWhatItsServiceNumbersPasses(t *testing.T) {
	Run(t, memoService(faultless), memoCase())
}

func TestFaultsOfAProviderOfWhatItsServiceNumbersAreFound(t *testing.T) {
	keepsTwins := func(a *memoAPI) anyMemo { a.keepsTwins = true; return &Memo{a} }
	takesAll := func(a *memoAPI) anyMemo { a.takesAll = true; return &Memo{a} }
	replacesInPlace := func(a *memoAPI) anyMemo { return inPlace{&Memo{a}} }
	named := memoCase()
	named.Unnamed = false
	for _, c := range []struct {
		fault       func(*memoAPI) anyMemo
		of          Case
		check, says string
	}{
		{keepsTwins, memoCase(), "two creates run at once", "they leave something else than one"},
		{replacesInPlace, memoCase(), "a resource lives undisturbed", "must ask for DeleteFirst"},
		{takesAll, memoCase(), "another owner's thing is in the way", "it must say Absent"},
		{takesAll, memoCase(), "two stacks create it at once", "each must make its own"},
		{faultless, named, "two stacks create it at once", "set Unnamed in the Case"},
		{faultless, named, "another owner's thing is in the way", "set Unnamed in the Case"},
	} {
		finds(t, c.check, c.says, memoService(c.fault), c.of)
	}
}

func TestAListByTheMarkOfTheStackLeavesOthersOut(t *testing.T) {
	ours := provider.Identity{StackID: "identity-1", URN: "urn:pulumi:dev::shop::memos:index:Memo::a"}
	theirs := provider.Identity{StackID: "identity-2", URN: ours.URN}
	store := &memoStore{}
	store.add(memo{Mark: markOf(ours)})
	store.add(memo{Mark: markOf(theirs)})
	m := &Memo{&memoAPI{calls: &Calls{things: store.things}, store: store}}
	var ids []string
	err := m.List(t.Context(), provider.Identity{StackID: ours.StackID}, func(id string) error {
		ids = append(ids, id)
		return nil
	})
	if err != nil || !slices.Equal(ids, []string{"m1"}) {
		t.Errorf("it lists %v, %v", ids, err)
	}
	if err := m.List(t.Context(), provider.Identity{}, nil); err == nil {
		t.Error("what is of no stack is listed")
	}
}
