package updates_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

var dev = deployments.StackName{Organization: "organization", Project: "web", Stack: "dev"}

// entryReads counts the entries of histories that are read.
type entryReads struct {
	bucket.Memory
	n atomic.Int32
}

func (r *entryReads) Get(ctx context.Context, key string) (bucket.Object, error) {
	if strings.Contains(key, "/history/") {
		r.n.Add(1)
	}
	return r.Memory.Get(ctx, key)
}

func TestASearchOfTheHistoryReadsLittleMoreThanItNeeds(t *testing.T) {
	objects := &entryReads{}
	s := storetest.Opened(t, objects, statestore.Options{})
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	const updates = 300
	var all []string
	for n := updates; n > 0; n-- {
		all = append(all, fmt.Sprint(n))
		u := deployments.UpdateName{StackName: dev, Version: fmt.Sprint(n)}
		if err := s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: u}); err != nil {
			t.Fatal(err)
		}
	}
	for _, wanted := range []int{1, 5, 100, updates + 1} {
		objects.n.Store(0)
		var got []string
		for info, err := range s.Updates.UpdatesOf(t.Context(), dev) {
			if err != nil {
				t.Fatal(err)
			}
			if got = append(got, info.Update.Version); len(got) == wanted {
				break
			}
		}
		if want := all[:min(wanted, updates)]; !slices.Equal(got, want) {
			t.Errorf("of %d it returns %v", wanted, got)
		}
		if read := int(objects.n.Load()); read > 3*wanted {
			t.Errorf("for %d updates it reads %d", wanted, read)
		}
	}
	objects.n.Store(0)
	page, err := s.Updates.HistoryPage(t.Context(), dev, deployments.Page{Number: 1 << 20, Size: 1000})
	if read := objects.n.Load(); err != nil || len(page) > 0 || read > 0 {
		t.Errorf("a page after the last has %d updates and reads %d, %v", len(page), read, err)
	}
	none := deployments.StackName{Organization: "o", Project: "p", Stack: "s"}
	for _, err := range s.Updates.UpdatesOf(t.Context(), none) {
		if deployments.CodeOf(err) != deployments.CodeNotFound {
			t.Errorf("of a stack that is not there it returns %v", err)
		}
	}
}
