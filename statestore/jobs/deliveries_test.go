package jobs_test

import (
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/deployctl/deployctl/statestore/storetest"
)

const week = 7 * 24 * time.Hour

// take takes a delivery, which must end with a code.
func take(t *testing.T, s *statestore.Store, d jobs.Delivery, want deployments.Code) {
	t.Helper()
	if err := s.Jobs.TakeDelivery(t.Context(), dev, d); deployments.CodeOf(err) != want {
		t.Errorf("%+v: %v, want %q", d, err, want)
	}
}

func TestADeliveryIsTakenOnce(t *testing.T) {
	for _, d := range []jobs.Delivery{{Digest: "ab12"}, {Digest: "ab12", Lasts: week}} {
		s := newStack(t, &bucket.Memory{})
		take(t, s, d, "")
		take(t, s, d, deployments.CodeExists)
		if err := s.Jobs.ForgetDelivery(t.Context(), dev, d); err != nil {
			t.Fatal(err)
		}
		take(t, s, d, "")
	}
}

func TestADeliveryThatWasTakenByAnEarlierReleaseIsNotTakenAgain(t *testing.T) {
	s := newStack(t, &bucket.Memory{})
	take(t, s, jobs.Delivery{Digest: "ab12"}, "")
	take(t, s, jobs.Delivery{Digest: "ab12", Lasts: week}, deployments.CodeExists)
}

func TestDeliveriesAreForgottenOnceNobodyTakesThemAnyMore(t *testing.T) {
	objects := &bucket.Memory{}
	now := newStack(t, objects)
	recent, old := jobs.Delivery{Digest: "recent", Lasts: week}, jobs.Delivery{Digest: "ageless"}
	take(t, now, recent, "")
	take(t, now, old, "")
	left := func(age time.Duration) int {
		later, err := statestore.New(objects, statestore.Options{Master: storetest.Master,
			Now: func() time.Time { return time.Now().Add(age) }})
		if err != nil {
			t.Fatal(err)
		}
		take(t, later, jobs.Delivery{Digest: age.String(), Lasts: week}, "")
		take(t, later, old, deployments.CodeExists)
		l, err := objects.List(t.Context(), bucket.Query{
			Prefix: "stacks/organization/web/dev/deployments/deliveries/recent/recent"})
		if err != nil {
			t.Fatal(err)
		}
		return len(l.Keys)
	}
	if left(week) != 1 {
		t.Error("a delivery that may be taken by another clock is forgotten")
	}
	if left(week+25*time.Hour) != 0 {
		t.Error("a delivery is remembered for ever")
	}
}
