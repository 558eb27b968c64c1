package statestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// TestAHeadIsMigratedForward plays two changes of the format: the first renames a field, the second splits one.
func TestAHeadIsMigratedForward(t *testing.T) {
	was := migrations
	t.Cleanup(func() { migrations, Format = was, was.format() })
	migrations = formats{
		func(fields map[string]json.RawMessage) error {
			fields["version"] = fields["serial"]
			delete(fields, "serial")
			return nil
		},
		func(fields map[string]json.RawMessage) error {
			var owner string
			if err := json.Unmarshal(fields["owner"], &owner); err != nil {
				return errors.New("it has no owner")
			}
			version, request, _ := strings.Cut(owner, "/")
			active, err := json.Marshal(Active{Version: version, RequestID: request})
			fields["active"] = active
			delete(fields, "owner")
			return err
		},
	}
	Format = migrations.format()
	objects := &bucket.Memory{}
	store, err := New(objects, Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	name := deployments.StackName{Organization: "o", Project: "p", Stack: "s"}
	for _, c := range []struct {
		name, stored string
		says         string // or it is read
	}{
		{"the first format", `{"format": 1, "id": "x", "serial": 3, "owner": "4/r", "next": 5, "fence": 2}`, ""},
		{"the second format", `{"format": 2, "id": "x", "version": 3, "owner": "4/r", "next": 5, "fence": 2}`, ""},
		{"the third format", `{"format": 3, "id": "x", "version": 3, "active": {"version": "4", "requestID": "r"}, "next": 5, "fence": 2}`, ""},
		{"a format from the future", `{"format": 4, "id": "x"}`, "written by a newer deployctl (format 4; this one " +
			"reads up to 3)"},
		{"a head that cannot be migrated", `{"format": 2, "id": "x"}`, "head.json is damaged: it has no owner"},
		{"no format", `{"id": "x"}`, "it has no format number"},
		{"a negative format", `{"format": -1, "id": "x"}`, "it has no format number"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := objects.Put(t.Context(), stackobjects.Key(name, "head.json"), []byte(c.stored),
				bucket.Condition{}); err != nil {
				t.Fatal(err)
			}
			h, err := store.Head(t.Context(), name)
			if c.says != "" {
				if deployments.CodeOf(err) != deployments.CodeFormat || !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
				}
				return
			}
			if err != nil || h.Format != 3 || h.ID != "x" || h.Version != 3 || h.Next != 5 || h.Fence != 2 ||
				h.Active == nil || h.Active.RequestID != "r" {
				t.Fatalf("got %+v, %v", h, err)
			}
			// The next write is of the newest format, and what is not known any more is gone.
			if _, err := store.changeHead(t.Context(), name, func(h *Head) (bool, error) {
				h.Fence++
				return true,
					nil
			}); err != nil {
				t.Fatal(err)
			}
			written, err := objects.Get(t.Context(), stackobjects.Key(name, "head.json"))
			if err != nil || !strings.Contains(string(written.Data), `"format": 3`) ||
				strings.Contains(string(written.Data), "serial") {
				t.Errorf("it is written as %s, %v", written.Data, err)
			}
		})
	}
}

func TestAHeadHasTheAnswersToTheLatestRequests(t *testing.T) {
	name := deployments.StackName{Organization: "o", Project: "p", Stack: "s"}
	h := Head{}
	h.Requests = []RequestVersion{{ID: "a", Version: 3}}
	got := h.Contract(name).Answered
	if len(got) != 1 || got[0].RequestID != "a" || got[0].Accepted.Update.String() != "o/p/s/3" {
		t.Errorf("%+v", got)
	}
}

func TestAHeadRemembersRequestsAsLongAsTheyCouldBeRepeated(t *testing.T) {
	var h Head
	at := time.Now()
	for n := range 4 * keptRequests { // one in each ten seconds
		at = at.Add(10 * time.Second)
		h.addRequest(fmt.Sprint(n), n+1, at)
	}
	window := int(deployments.RequestWindow / (10 * time.Second))
	if n := len(h.Requests); n < window || n > 2*window {
		t.Errorf("%d requests are remembered, and %d could be repeated", n, window)
	}
	h.addRequest("a day later", 1000, at.Add(24*time.Hour))
	if len(h.Requests) != keptRequests || h.versionOf("a day later") != 1000 {
		t.Errorf("a day later %d requests are remembered", len(h.Requests))
	}
}

func TestAnUpdateOfAnEarlierBuildMayLackSavesWithoutDeltas(t *testing.T) {
	s, err := New(&bucket.Memory{}, Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	name := deployments.StackName{Organization: "o", Project: "p", Stack: "s"}
	u := deployments.UpdateName{StackName: name, Version: "1"}
	claim := func(writer string) {
		t.Helper()
		if _, err := s.Claim(t.Context(), Claimant{Update: u, Writer: writer}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.CreateStack(t.Context(), u.StackName, nil); err != nil {
		t.Fatal(err)
	}
	claim("a")
	for _, n := range []int{2, 5} {
		deltas := []engine.Delta{{Seq: n, Kind: engine.DeltaEnd, Op: n}}
		if err := s.Updates.SaveDeltas(t.Context(), u, n, deltas); err != nil {
			t.Fatal(err)
		}
	}
	saved := func() (int, []engine.Delta, error) {
		last, err := s.Updates.LastSave(t.Context(), u)
		deltas, missed := s.Updates.LoadDeltas(t.Context(), u, 0, 5)
		return last, deltas, errors.Join(err, missed)
	}
	if _, _, err := saved(); deployments.CodeOf(err) != deployments.CodeFormat {
		t.Errorf("what is missing is not missed: %v", err)
	}
	if _, err := s.changeHead(t.Context(), u.StackName, func(h *Head) (bool, error) {
		h.Active.EverySave = false
		return true, nil
	}); err != nil {
		t.Fatal(err)
	}
	claim("b")
	if last, deltas, err := saved(); err != nil || last != 5 || len(deltas) != 2 {
		t.Errorf("of an update that an earlier build has begun %d saves are read, %v, %v", last, deltas, err)
	}
}
