package activities

import (
	"errors"
	"testing"

	"github.com/deployctl/deployctl/internal/host/failure"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

func TestOnlyAWorkerOfItsOrganizationHostsAnUpdateOfOneThatHasItsOwn(t *testing.T) {
	mine, others := testStack.Organization, []string{"others"}
	own := deployments.OrganizationTaskQueue(deployments.SharedTaskQueue, mine)
	for _, c := range []struct {
		name      string
		dedicated bool
		serves    []string
		queue     string // the task queue on which it is to be claimed instead
	}{
		{"a shared worker, and nobody has workers of their own", false, nil, ""},
		{"a shared worker", true, nil, own},
		{"a worker of the organization", true, []string{"others", mine}, ""},
		{"a worker of another organization", true, others, own},
		{"a worker of another organization, and this one has none", false, others, deployments.SharedTaskQueue},
		{"a worker of the organization, which shares again", false, []string{mine}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHouse(t)
			h.acts.sessions.Organizations = c.serves
			if c.dedicated {
				if err := h.store.Organizations.Dedicate(t.Context(), mine); err != nil {
					t.Fatal(err)
				}
			}
			claimed := h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
			if claimed.Queue != c.queue || (c.queue == "") != (claimed.Worker != "") {
				t.Errorf("it is claimed by %q, and to be claimed on %q; want %q", claimed.Worker, claimed.Queue,
					c.queue)
			}
			_, err := h.store.Updates.Request(t.Context(), h.update)
			if err != nil && c.queue == "" { // others may store it, too
				t.Errorf("the request is not stored: %v", err)
			}
			if head, err := h.store.Head(t.Context(), testStack); err != nil || (head.Active != nil) != (c.queue == "") {
				t.Errorf("its stack is %+v, %v", head, err)
			}
			if hosted := h.acts.sessions.Find(h.update) != nil; hosted != (c.queue == "") {
				t.Errorf("there is a session: %v", hosted)
			}
		})
	}
}

func TestASessionThatWasLostIsNotMadeAgainOnAWorkerOfOthers(t *testing.T) {
	h := newHouse(t)
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy})
	h.acts.sessions.End(t.Context(), h.update)
	if _, err := h.acts.sessions.Hosted(t.Context(), h.update, h.base); err != nil {
		t.Fatalf("as long as nobody has workers of their own: %v", err)
	}
	h.acts.sessions.End(t.Context(), h.update)
	if err := h.store.Organizations.Dedicate(t.Context(), testStack.Organization); err != nil {
		t.Fatal(err)
	}
	if s, err := h.acts.sessions.Hosted(t.Context(), h.update, h.base); err == nil || s != nil {
		t.Error("it is made again")
	}
}

func TestARunOfAScheduleWaitsForAWorkerOfItsStack(t *testing.T) {
	waiting := failure.Of(deployments.Errorf(deployments.CodeNoWorker, "no worker takes it up"))
	var application *temporal.ApplicationError
	if !errors.As(waiting, &application) || application.NonRetryable() {
		t.Errorf("a submission that no worker takes up is not made again: %v", waiting)
	}
}
