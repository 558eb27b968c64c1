package statestore_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/creates"
	"github.com/deployctl/deployctl/statestore/seal"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// lose removes an object behind the store's back.
func lose(t *testing.T, objects bucket.Objects, key string) {
	t.Helper()
	if _, err := objects.Get(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if err := objects.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const devFolder = "stacks/organization/web/dev/"

func TestAStackWhoseHeadWasLostIsDamagedAndNotAbsent(t *testing.T) {
	update := deployments.UpdateName{StackName: dev, Version: "1"}
	for name, begin := range map[string]func(t *testing.T, s *statestore.Store){
		"with a checkpoint": func(t *testing.T, s *statestore.Store) {
			stock := golden(t, "stock.json")
			_, err := s.Import(t.Context(), statestore.Exchange{Stack: dev, Secrets: provider(t, stock)}, stock)
			must(t, err)
		},
		"with a history": func(t *testing.T, s *statestore.Store) {
			must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: update, Status: "running"}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			objects := &bucket.Memory{}
			s := newStack(t, objects)
			begin(t, s)
			lose(t, objects, devFolder+"head.json")
			for what, call := range map[string]func(ctx context.Context) error{
				"an update": func(ctx context.Context) error { _, err := s.Head(ctx, dev); return err },
				"a claim": func(ctx context.Context) error {
					_, err := s.Claim(ctx, statestore.Claimant{Update: update, Writer: "w#1"})
					return err
				},
				"its creation": func(ctx context.Context) error { return s.CreateStack(ctx, dev, nil) },
				"its adoption": func(ctx context.Context) error { return s.AdoptStack(ctx, dev) },
				"its removal":  func(ctx context.Context) error { return s.RemoveStack(ctx, dev, false) },
				"a renaming to its name": func(ctx context.Context) error {
					other := deployments.StackName{Organization: "organization", Project: "web", Stack: "other"}
					_ = s.CreateStack(ctx, other, nil) // it may be there
					return s.RenameStack(ctx, other, dev)
				},
			} {
				err := call(t.Context())
				if deployments.CodeOf(err) != deployments.CodeFormat ||
					!strings.Contains(err.Error(), devFolder+"head.json") ||
					!strings.Contains(err.Error(), "put back") {
					t.Errorf("%s: %v", what, err)
				}
			}
			list, err := s.ListStacks(t.Context(), "", "")
			must(t, err)
			if i := slices.IndexFunc(list, func(i deployments.StackInfo) bool { return i.Stack == dev }); i < 0 ||
				list[i].Damaged == "" {
				t.Errorf("the stacks are %+v", list)
			}
			must(t, s.RemoveStack(t.Context(), dev, true))
			if l, err := objects.List(t.Context(), bucket.Query{Prefix: devFolder}); err != nil || len(l.Keys) > 0 {
				t.Errorf("there are still %q, %v", l.Keys, err)
			}
			must(t, s.CreateStack(t.Context(), dev, nil))
			if _, next, err := s.HeadAndNext(t.Context(), dev); err != nil || next != 2 {
				t.Errorf("the next version is %d, %v", next, err)
			}
		})
	}
}

// TestWhatIsLeftOfAStackIsRemovedToItsEnd interrupts the removal of a stack without a head before and after each write.
// The versions that it has given out are not given out again, also that of an update which has only begun.
func TestWhatIsLeftOfAStackIsRemovedToItsEnd(t *testing.T) {
	for interrupted := 0; ; interrupted++ {
		objects := &bucket.Memory{}
		s := newStack(t, objects)
		must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(1), Status: "succeeded"}))
		put(t, objects, devFolder+"updates/2/delta/00000001", []byte("x"))
		lose(t, objects, devFolder+"head.json")
		writes := 0
		through, err := statestore.New(storetest.NewFaulty(objects, func(call, _ string) storetest.Fault {
			if call == "put" || call == "delete" {
				writes++
			}
			if writes > interrupted {
				return storetest.Refused
			}
			return storetest.None
		}), statestore.Options{Master: storetest.Master})
		must(t, err)
		failed := through.RemoveStack(t.Context(), dev, true)
		if failed != nil {
			if err := s.RemoveStack(t.Context(), dev, true); err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
				t.Fatalf("after an interruption at write %d: %v", interrupted, err)
			}
		}
		must(t, s.CreateStack(t.Context(), dev, nil))
		if _, next, err := s.HeadAndNext(t.Context(), dev); err != nil || next != 3 {
			t.Errorf("after an interruption at write %d the next version is %d, %v", interrupted, next, err)
		}
		if failed == nil {
			if interrupted < 3 {
				t.Errorf("only %d writes could be interrupted", interrupted)
			}
			return
		}
	}
}

// TestALateRecordOfACreateIsNoneOfTheNextStack has an update of a stack that is gone record a mark, in a process that
// takes the name for the stack that it knew. The next stack of the name has the same seeds.
func TestALateRecordOfACreateIsNoneOfTheNextStack(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	late, err := statestore.New(objects, statestore.Options{Master: storetest.Master})
	must(t, err)
	seed, mark := []byte("seed"), creates.Mark{Place: "tags.mark", Text: "m"}
	must(t, late.Creates.NoteMark(t.Context(), dev, seed, mark))
	if noted, err := s.Creates.NotedMark(t.Context(), dev, seed); err != nil || noted != mark {
		t.Fatalf("it noted %+v, %v", noted, err)
	}
	must(t, s.RemoveStack(t.Context(), dev, true))
	must(t, s.CreateStack(t.Context(), dev, nil))
	must(t, late.Creates.NoteMark(t.Context(), dev, seed, mark))
	must(t, late.Creates.PutMade(t.Context(), dev, seed, "id"))
	if noted, err := s.Creates.NotedMark(t.Context(), dev, seed); err != nil || noted != (creates.Mark{}) {
		t.Errorf("the next stack has %+v, %v", noted, err)
	}
	if id, err := s.Creates.Made(t.Context(), dev, seed); err != nil || id != "" {
		t.Errorf("the next stack has made %q, %v", id, err)
	}
}

// TestAProcessThatKnowsAFormerStackServesTheNextOne has a process that has just read a stack host an update, and serve
// a lease, of the next stack of the name.
func TestAProcessThatKnowsAFormerStackServesTheNextOne(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	late, err := statestore.New(objects, statestore.Options{Master: storetest.Master})
	must(t, err)
	former, err := late.StackID(t.Context(), dev)
	must(t, err)
	must(t, s.RemoveStack(t.Context(), dev, true))
	must(t, s.CreateStack(t.Context(), dev, nil))
	h, err := s.Head(t.Context(), dev)
	must(t, err)
	request := deployments.UpdateRequest{Message: "m", Submitted: &deployments.Submission{StackID: h.ID}}
	for version, put := range map[string]func(context.Context, deployments.UpdateName, deployments.UpdateRequest) error{
		"1": late.Updates.PutRequest, "preview-1": late.Updates.BeginPreview,
	} {
		u := deployments.UpdateName{StackName: dev, Version: version}
		must(t, put(t.Context(), u, request))
		if r, err := s.Updates.Request(t.Context(), u); err != nil || r.Message != "m" {
			t.Errorf("the request of update %s is %+v, %v", version, r, err)
		}
	}
	there, err := late.IsStack(t.Context(), dev, h.ID)
	want(t, err, there, "the stack is taken for the former one")
	there, err = late.IsStack(t.Context(), dev, former)
	want(t, err, !there, "the former stack is there still")
}

func TestLateWritesOfARemovedStackDoNotTakeItsName(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	late := deployments.UpdateInfo{Update: deployments.UpdateName{StackName: dev, Version: "3"}, Status: "failed"}
	must(t, s.Updates.PutInfo(t.Context(), late))
	key := devFolder + "history/2147483644"
	entry, err := objects.Get(t.Context(), key)
	must(t, err)
	must(t, s.RemoveStack(t.Context(), dev, false))
	_, err = objects.Put(t.Context(), key, entry.Data, bucket.Condition{})
	must(t, err)
	if _, err := s.Head(t.Context(), dev); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("got %v", err)
	}
	must(t, s.CreateStack(t.Context(), dev, nil))
}

func TestANewestCheckpointThatIsMissingIsDamageAndAnOlderOneIsNot(t *testing.T) {
	objects := &bucket.Memory{}
	s, stock := newStack(t, objects), golden(t, "stock.json")
	x := statestore.Exchange{Stack: dev, Secrets: provider(t, stock)}
	for range 2 {
		_, err := s.Import(t.Context(), x, stock)
		must(t, err)
	}
	lose(t, objects, devFolder+"checkpoints/2.json.zst")
	fresh, err := statestore.New(objects, statestore.Options{Master: storetest.Master})
	must(t, err)
	for version, code := range map[int]deployments.Code{2: deployments.CodeFormat, 7: deployments.CodeNotFound} {
		_, err := fresh.Export(t.Context(), x, version, false)
		if deployments.CodeOf(err) != code || code == deployments.CodeFormat &&
			!strings.Contains(err.Error(), "deployctl stack restore") {
			t.Errorf("version %d: %v", version, err)
		}
	}
	for n := 1; n <= 2; n++ {
		must(t, fresh.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(n), Status: "succeeded"}))
	}
	history, err := fresh.Updates.History(t.Context(), dev, 0)
	must(t, err)
	if len(history) != 2 || history[0].Kept || !history[1].Kept {
		t.Errorf("the history is %+v", history)
	}
	if version, err := fresh.Restore(t.Context(), x, 1); err != nil || version != 3 {
		t.Errorf("restoring gave %d, %v", version, err)
	}
}

func TestAProcessThatLacksTheNewestKeyIsOutdatedAndSaysWhatToDo(t *testing.T) {
	objects := &bucket.Memory{}
	old := opened(t, objects, statestore.Options{})
	former, err := seal.NewMasterKeeper(storetest.Master)
	must(t, err)
	newest, err := seal.NewMasterKeeper(bytes.Repeat([]byte{7}, 32))
	must(t, err)
	for _, keepers := range [][]seal.Keeper{{newest, former}, {newest}} {
		_, err := opened(t, objects, statestore.Options{Keepers: keepers}).Keys.Rotate(t.Context())
		must(t, err)
	}
	text, err := opened(t, objects, statestore.Options{Keepers: []seal.Keeper{newest}}).Access.CreateToken(t.Context(),
		deployments.Token{Name: "ann", Grant: &deployments.Grant{Role: deployments.RoleAdmin, Organization: "*"}})
	must(t, err)
	if err := old.Keys.Outdated(); err != nil {
		t.Errorf("before it looks: %v", err)
	}
	_, err = old.Access.Authenticate(t.Context(), text)
	if deployments.CodeOf(err) != deployments.CodeFormat || !strings.Contains(err.Error(),
		"restart every serve and worker") ||
		strings.Contains(err.Error(), "token rm") {
		t.Errorf("got %v", err)
	}
	if err := old.Keys.Outdated(); err == nil || !strings.Contains(err.Error(), newest.ID()) {
		t.Errorf("it is outdated because %v", err)
	}
}

// answering counts the calls of a key management service.
type answering struct {
	storetest.Keeper
	unwrapped int
}

func (a *answering) Unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	a.unwrapped++
	return a.Keeper.Unwrap(ctx, wrapped)
}

func TestKeysThatHaveNotChangedAreNotOpenedAgain(t *testing.T) {
	objects, kms := &bucket.Memory{}, &answering{Keeper: storetest.Keeper{Key: []byte("kms")}}
	opened(t, objects, statestore.Options{Keepers: []seal.Keeper{kms}})
	s := opened(t, objects, statestore.Options{Keepers: []seal.Keeper{kms}})
	before := kms.unwrapped
	kms.Away = true
	_, err := s.Keys.List(t.Context(), nil)
	must(t, err)
	if kms.unwrapped != before || s.Keys.Outdated() != nil {
		t.Errorf("it was asked %d times more, and is outdated because %v", kms.unwrapped-before, s.Keys.Outdated())
	}
}

func TestNoKeysAreMadeForABucketThatIsInUse(t *testing.T) {
	objects := &bucket.Memory{}
	s := opened(t, objects, statestore.Options{})
	must(t, s.Access.GrantMember(t.Context(), "ann", deployments.Grant{Role: deployments.RoleAdmin, Organization: "acme"}))
	lose(t, objects, "keys/ring.json")
	if _, err := s.Keys.Rotate(t.Context()); err == nil {
		t.Error("keys were replaced that are missing")
	}
	if _, err := open(t, objects, statestore.Options{}); deployments.CodeOf(err) != deployments.CodeInvalid ||
		!strings.Contains(err.Error(), "put keys/ring.json back") {
		t.Errorf("got %v", err)
	}
}

func TestADamagedTokenSaysWhatToDo(t *testing.T) {
	objects := &bucket.Memory{}
	s := opened(t, objects, statestore.Options{})
	text, err := s.Access.CreateToken(t.Context(), deployments.Token{Name: "ann",
		Grant: &deployments.Grant{Role: deployments.RoleAdmin, Organization: "*"}})
	must(t, err)
	put(t, objects, "tokens/ann", []byte("x"))
	_, err = s.Access.Authenticate(t.Context(), text)
	for _, says := range []string{"tokens/ann is not a sealed value", "put back", "deployctl token rm ann"} {
		if deployments.CodeOf(err) != deployments.CodeFormat || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
}
