package service

import (
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
)

func TestAScheduleFindsTheUpThatItRepeatsWithoutReadingTheWholeHistory(t *testing.T) {
	objects := &counting{}
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	must(t, store.CreateStack(t.Context(), dev, nil))
	s := New(sleeping{}, store, Readers{})
	const updates, wanted = 500, 450
	for n := 1; n <= updates; n++ {
		info := deployments.UpdateInfo{Update: version(n), Kind: engine.KindUp, Status: deployments.StatusFailed,
			Ended: time.Now()}
		if n == wanted || n == 1 {
			info.Status = deployments.StatusSucceeded
			r := asking("r")
			r.Parallel = n
			must(t, s.Updates.PutRequest(t.Context(), info.Update, r))
		}
		must(t, s.Updates.PutInfo(t.Context(), info))
	}
	objects.requests.Store(0)
	r, err := s.templateWith(t.Context(), dev, true)
	if must(t, err); r.Parallel != wanted {
		t.Errorf("it repeats update %d", r.Parallel)
	}
	if n := objects.requests.Load(); n > 3*(updates-wanted) {
		t.Errorf("it has made %d requests", n)
	}
}
