package keys_test

import (
	"bytes"
	"context"
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

var open, opened, put, get = storetest.Open, storetest.Opened, storetest.Put, storetest.Get

const ringObject = "keys/ring.json"

var dev = deployments.StackName{Organization: "organization", Project: "web", Stack: "dev"}

func up(n int) deployments.UpdateName {
	return deployments.UpdateName{StackName: dev, Version: fmt.Sprint(n)}
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
	fake := func() seal.Keeper { return &storetest.Keeper{Key: []byte("k")} }
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
		if !bytes.Equal(s.Keys.Ring().Keys().Root, stores[0].Keys.Ring().Keys().Root) {
			t.Fatal("there are two roots")
		}
	}
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
	kms := &storetest.Keeper{Key: []byte("kms")}
	if _, err := opened(t, objects, statestore.Options{Keepers: []seal.Keeper{kms, master}}).Keys.Rotate(
		t.Context()); err != nil {
		t.Fatal(err)
	}
	alone := opened(t, objects, statestore.Options{Keepers: []seal.Keeper{kms}})
	if _, err := alone.Keys.Rotate(t.Context()); err != nil { // from now on the master key opens nothing
		t.Fatal(err)
	}
	if info, err := alone.Updates.Info(t.Context(), up(1)); err != nil || info.Message != "before" {
		t.Errorf("%+v, %v", info, err)
	}
	if _, err := open(t, objects, statestore.Options{}); deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Errorf("with the master key: %v", err)
	}
	kms.Away = true
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
	first := admin.Keys.Ring().Keys().Current().ID().String()
	for range 3 {
		if _, err := admin.Keys.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := admin.Keys.Reseal(t.Context(), nil); err != nil {
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
	if err := admin.Keys.Drop(t.Context(), first, nil); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("dropped at once: %v", err)
	}
	now = now.Add(time.Hour)
	if _, err := admin.Keys.Reseal(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if err := admin.Keys.Drop(t.Context(), first, nil); err != nil {
		t.Error(err)
	}
	var told []int
	keys, err := admin.Keys.List(t.Context(), func(done, of int) { told = append(told, done, of) })
	if n := len(told) / 2; n < wrote || n > 0 && (told[0] != 1 || told[1] != n || told[2*n-2] != n) {
		t.Errorf("of %d objects it tells %v", wrote, told)
	}
	if err != nil || len(keys) != 3 || keys[2].Objects != wrote || keys[0].Objects != 0 {
		t.Errorf("%+v, %v", keys, err)
	}
	if err := admin.Keys.Drop(t.Context(), keys[2].ID, nil); deployments.CodeOf(err) != deployments.CodeConflict {
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
	first := s.Keys.Ring().Keys().Current().ID().String()
	if _, err := s.Keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	if err := s.Keys.Drop(t.Context(), first, nil); deployments.CodeOf(err) != deployments.CodeConflict ||
		!strings.Contains(err.Error(), "1 object") {
		t.Errorf("got %v", err)
	}
}

func TestAnOlderCopyOfTheKeysIsNotTakenByARunningProcess(t *testing.T) {
	objects := &bucket.Memory{}
	s := opened(t, objects, statestore.Options{})
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	old := get(t, objects, ringObject)
	if _, err := s.Keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(1)}); err != nil {
		t.Fatal(err)
	}
	put(t, objects, ringObject, old)
	if _, err := s.Keys.List(t.Context(), nil); deployments.CodeOf(err) != deployments.CodeFormat ||
		!strings.Contains(err.Error(), "older copy") {
		t.Errorf("got %v", err)
	}
	if _, err := s.Updates.Info(t.Context(), up(1)); err != nil {
		t.Error(err)
	}
}
