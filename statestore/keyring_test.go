package statestore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
	"github.com/deployctl/deployctl/statestore/storetest"
)

const ringObject = "keys/ring.json"

// open opens a bucket as a process does at its start.
func open(t *testing.T, objects bucket.Objects, o statestore.Options) (*statestore.Store, error) {
	t.Helper()
	if o.Master == nil && o.Keepers == nil {
		o.Master = storetest.Master
	}
	s, err := statestore.New(objects, o)
	if err != nil {
		t.Fatal(err)
	}
	return s, s.Check(t.Context())
}

func opened(t *testing.T, objects bucket.Objects, o statestore.Options) *statestore.Store {
	t.Helper()
	s, err := open(t, objects, o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func up(n int) deployments.UpdateName {
	return deployments.UpdateName{StackName: dev, Version: fmt.Sprint(n)}
}

func put(t *testing.T, objects bucket.Objects, key string, data []byte) {
	t.Helper()
	if _, err := objects.Put(t.Context(), key, data, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
}

func get(t *testing.T, objects bucket.Objects, key string) []byte {
	t.Helper()
	o, err := objects.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	return o.Data
}

func TestAProcessWithAnotherKeyDoesNotStart(t *testing.T) {
	objects := &bucket.Memory{}
	opened(t, objects, statestore.Options{})
	_, err := open(t, objects, statestore.Options{Master: bytes.Repeat([]byte{9}, 32)})
	if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), "has another key (key ") ||
		!strings.Contains(err.Error(), "start it with that one") {
		t.Errorf("got %v", err)
	}
	opened(t, objects, statestore.Options{}) // the right one, again
}

func TestOfProcessesThatFoundAnEmptyBucketAtOnceAllHaveTheSameKeys(t *testing.T) {
	objects := &bucket.Memory{}
	fake := func() seal.Keeper { return &local{key: []byte("k")} }
	stores := make([]*statestore.Store, 8)
	var wg sync.WaitGroup
	for i := range stores {
		wg.Go(func() {
			s, err := statestore.New(objects, statestore.Options{Keepers: []seal.Keeper{fake()}})
			if err == nil {
				err = s.Check(context.Background())
			}
			if err != nil {
				t.Error(err)
			}
			stores[i] = s
		})
	}
	wg.Wait()
	for _, s := range stores[1:] {
		if !bytes.Equal(s.Keyring().Keys().Root, stores[0].Keyring().Keys().Root) {
			t.Fatal("there are two roots")
		}
	}
}

// local is a key management service that keeps its key at home.
type local struct {
	key  []byte
	away bool
}

func (l *local) ID() string { return "local " + string(l.key) }

func (l *local) Wrap(_ context.Context, plain []byte) ([]byte, error) {
	return append(bytes.Clone(l.key), plain...), nil
}

func (l *local) Unwrap(_ context.Context, wrapped []byte) ([]byte, error) {
	plain, ok := bytes.CutPrefix(wrapped, l.key)
	if l.away || !ok {
		return nil, errors.New("access denied")
	}
	return plain, nil
}

func TestTheKeyMayMoveFromAFileToAKeyManagementService(t *testing.T) {
	objects := &bucket.Memory{}
	s := opened(t, objects, statestore.Options{})
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(1), Message: "before"}); err != nil {
		t.Fatal(err)
	}
	master, err := seal.NewMasterKeeper(storetest.Master)
	if err != nil {
		t.Fatal(err)
	}
	kms := &local{key: []byte("kms")}
	if _, err := opened(t, objects, statestore.Options{Keepers: []seal.Keeper{kms, master}}).RotateKeys(
		t.Context()); err != nil {
		t.Fatal(err)
	}
	alone := opened(t, objects, statestore.Options{Keepers: []seal.Keeper{kms}})
	if _, err := alone.RotateKeys(t.Context()); err != nil { // from now on the master key opens nothing
		t.Fatal(err)
	}
	if info, err := alone.Updates.Info(t.Context(), up(1)); err != nil || info.Message != "before" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := open(t, objects, statestore.Options{}); deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Errorf("with the master key: %v", err)
	}
	kms.away = true
	if _, err := open(t, objects, statestore.Options{Keepers: []seal.Keeper{kms}}); err == nil ||
		!strings.Contains(err.Error(), "access denied") {
		t.Errorf("without access: %v", err)
	}
}

func TestKeysAreRotatedWhileOthersWrite(t *testing.T) {
	objects := &bucket.Memory{}
	now := time.Now()
	clock := func() time.Time { return now }
	admin, other := opened(t, objects, statestore.Options{Now: clock}), opened(t, objects, statestore.Options{})
	if err := admin.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wrote := 0
	wg.Go(func() {
		for n := 1; ; n++ {
			select {
			case <-stop:
				return
			default:
			}
			if err := other.Updates.PutInfo(context.Background(), deployments.UpdateInfo{Update: up(n),
				Message: fmt.Sprint("of ", n)}); err != nil {
				t.Error(err)
			}
			wrote = n
		}
	})
	first := admin.Keyring().Keys().Current().ID().String()
	for range 3 {
		if _, err := admin.RotateKeys(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Reseal(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	close(stop)
	wg.Wait()
	for _, s := range []*statestore.Store{admin, other, opened(t, objects, statestore.Options{})} {
		for n := 1; n <= wrote; n++ {
			if info, err := s.Updates.Info(t.Context(), up(n)); err != nil || info.Message != fmt.Sprint("of ", n) {
				t.Fatalf("of %d: %+v, %v", n, info, err)
			}
		}
	}
	if err := admin.DropKey(t.Context(), first, nil); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("dropped at once: %v", err)
	}
	now = now.Add(time.Hour)
	if _, err := admin.Reseal(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := admin.DropKey(t.Context(), first, nil); err != nil {
		t.Error(err)
	}
	var told []int
	keys, err := admin.Keys(t.Context(), func(done, of int) { told = append(told, done, of) })
	if n := len(told) / 2; n < wrote || n > 0 && (told[0] != 1 || told[1] != n || told[2*n-2] != n) {
		t.Errorf("of %d objects it tells %v", wrote, told)
	}
	if err != nil || len(keys) != 3 || keys[2].Objects != wrote || keys[0].Objects != 0 {
		t.Errorf("%+v, %v", keys, err)
	}
	if err := admin.DropKey(t.Context(), keys[2].ID, nil); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("the current one is dropped: %v", err)
	}
}

func TestAKeyThatObjectsNeedIsNotDropped(t *testing.T) {
	objects := &bucket.Memory{}
	now := time.Now()
	s := opened(t, objects, statestore.Options{Now: func() time.Time { return now }})
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	if err := s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(1)}); err != nil {
		t.Fatal(err)
	}
	first := s.Keyring().Keys().Current().ID().String()
	if _, err := s.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if err := s.DropKey(t.Context(), first, nil); deployments.CodeOf(err) != deployments.CodeConflict ||
		!strings.Contains(err.Error(), "1 object") {
		t.Errorf("got %v", err)
	}
}

func TestABucketOfTheTimeBeforeItHadKeysIsAdoptedOnceAndOnRequest(t *testing.T) {
	objects := &bucket.Memory{}
	before := newStack(t, objects) // not checked: as an older deployctl
	if err := before.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(1)}); err != nil {
		t.Fatal(err)
	}
	const head = "stacks/organization/web/dev/head.json"
	old := withoutMAC(t, get(t, objects, head))
	put(t, objects, head, old)
	if _, err := open(t, objects, statestore.Options{}); deployments.CodeOf(err) != deployments.CodeInvalid ||
		!strings.Contains(err.Error(), "deployctl key adopt") {
		t.Errorf("taken over in silence: %v", err)
	}
	if _, err := open(t, objects, statestore.Options{Adopt: true, Master: bytes.Repeat([]byte{9},
		32)}); deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Errorf("adopted with another key: %v", err)
	}
	s := opened(t, objects, statestore.Options{Adopt: true})
	if _, err := s.Updates.Info(t.Context(), up(1)); err != nil {
		t.Error(err)
	}
	if _, err := opened(t, objects, statestore.Options{}).Head(t.Context(), dev); err != nil {
		t.Error(err)
	}
	put(t, objects, head, old)
	if _, err := opened(t, objects, statestore.Options{Adopt: true}).Head(t.Context(),
		dev); deployments.CodeOf(err) != deployments.CodeFormat {
		t.Errorf("a head without MAC is taken later, too: %v", err)
	}
}

func withoutMAC(t *testing.T, head []byte) []byte {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(head, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "mac")
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAnOlderCopyOfTheKeysIsNotTakenByARunningProcess(t *testing.T) {
	objects := &bucket.Memory{}
	s := opened(t, objects, statestore.Options{})
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	old := get(t, objects, ringObject)
	if _, err := s.RotateKeys(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(1)}); err != nil {
		t.Fatal(err)
	}
	put(t, objects, ringObject, old)
	if _, err := s.Keys(t.Context(), nil); deployments.CodeOf(err) != deployments.CodeFormat ||
		!strings.Contains(err.Error(), "older copy") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Updates.Info(t.Context(), up(1)); err != nil {
		t.Error(err)
	}
}

func TestEveryChangedByteOfAHeadOrACheckpointIsNoticed(t *testing.T) {
	objects := &bucket.Memory{}
	s := opened(t, objects, statestore.Options{})
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), statestore.Exchange{Stack: dev},
		deployment([]string{rootState, thingState}, nil)); err != nil {
		t.Fatal(err)
	}
	for key, read := range map[string]func(*statestore.Store) (any, error){
		"stacks/organization/web/dev/head.json": func(s *statestore.Store) (any,
			error) {
			return s.Head(t.Context(), dev)
		},
		"stacks/organization/web/dev/checkpoints/1.json.zst": func(s *statestore.Store) (any, error) {
			c, err := s.Checkpoint(t.Context(), dev, 1, deployments.SecretsProvider{})
			if err != nil {
				return nil, err
			}
			return c.States(), nil
		},
	} {
		good := get(t, objects, key)
		want, err := read(opened(t, objects, statestore.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range good {
			changed := bytes.Clone(good)
			changed[i] ^= 1
			put(t, objects, key, changed)
			got, err := read(opened(t, objects, statestore.Options{}))
			if err == nil && fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
				t.Errorf("byte %d of %s may be %q: %+v", i, key, changed[i], got)
			}
			if err != nil && deployments.CodeOf(err) != deployments.CodeFormat {
				t.Errorf("byte %d of %s: %v", i, key, err)
			}
		}
		put(t, objects, key, good)
	}
}

func TestTheHeadOfAnotherStackIsNoticed(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	prod := deployments.StackName{Organization: "organization", Project: "web", Stack: "prod"}
	if err := s.CreateStack(t.Context(), prod, nil); err != nil {
		t.Fatal(err)
	}
	put(t, objects, "stacks/organization/web/dev/head.json", get(t, objects, "stacks/organization/web/prod/head.json"))
	if _, err := s.Head(t.Context(), dev); deployments.CodeOf(err) != deployments.CodeFormat ||
		!strings.Contains(err.Error(), "key adopt") {
		t.Errorf("got %v", err)
	}
	if err := s.AdoptStack(t.Context(), dev); err != nil {
		t.Error(err)
	}
	if _, err := s.Head(t.Context(), dev); err != nil {
		t.Error(err)
	}
}
