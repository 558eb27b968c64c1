package organizations_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// unsaid is a bucket that does not say which organizations have workers of their own.
type unsaid struct {
	*bucket.Memory
	why error
}

func (u *unsaid) Get(ctx context.Context, key string) (bucket.Object, error) {
	if strings.HasPrefix(key, "organizations/") {
		return bucket.Object{}, u.why
	}
	return u.Memory.Get(ctx, key)
}

func TestAnOrganizationHasItsOwnQueueFromTheMomentThatItIsDedicatedUntilItShares(t *testing.T) {
	objects := &bucket.Memory{}
	here, there := storetest.Opened(t, objects, statestore.Options{}), storetest.Opened(t, objects, statestore.Options{})
	queues := func(want string) {
		t.Helper()
		for name, s := range map[string]*statestore.Store{"here": here, "there": there} {
			if queue, err := s.Organizations.TaskQueue(t.Context(), "acme"); err != nil || queue != want {
				t.Errorf("%s the queue is %q, %v; want %q", name, queue, err, want)
			}
			queue, err := s.Organizations.TaskQueue(t.Context(), "globex")
			if err != nil || queue != s.Organizations.SharedTaskQueue() {
				t.Errorf("%s that of another organization is %q, %v", name, queue, err)
			}
		}
	}
	queues(here.Organizations.SharedTaskQueue())
	for range 2 {
		if err := here.Organizations.Dedicate(t.Context(), "acme"); err != nil {
			t.Fatal(err)
		}
		queues(here.Organizations.OrganizationTaskQueue("acme"))
	}
	list, err := there.Organizations.ListDedicated(t.Context())
	if err != nil || len(list) != 1 || list[0].Organization != "acme" || list[0].Since.IsZero() {
		t.Errorf("the list is %v, %v", list, err)
	}
	if _, err := here.Keys.Rotate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done, err := here.Keys.Reseal(t.Context(), nil); err != nil || len(done.Damaged) > 0 {
		t.Errorf("sealing anew comes to %v, %v", done, err)
	}
	if err := there.Organizations.Share(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	queues(here.Organizations.SharedTaskQueue())
	if err := there.Organizations.Share(t.Context(), "acme"); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("sharing twice: %v", err)
	}
}

func TestWhereAnOrganizationRunsIsNotGuessedWhenTheBucketDoesNotSay(t *testing.T) {
	refused := deployments.Errorf(deployments.CodeUnauthorized, "the credentials are not accepted")
	for _, why := range []error{refused, errors.New("it does not answer")} {
		s := storetest.Opened(t, &unsaid{&bucket.Memory{}, why}, statestore.Options{})
		if queue, err := s.Organizations.TaskQueue(t.Context(), "acme"); err == nil || queue != "" {
			t.Errorf("after %v the queue is %q, %v", why, queue, err)
		}
	}
	s := storetest.Opened(t, &bucket.Memory{}, statestore.Options{})
	for _, name := range []string{"", "../acme", "a/b"} {
		if queue, err := s.Organizations.TaskQueue(t.Context(), name); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("the queue of %q is %q, %v", name, queue, err)
		}
		if err := s.Organizations.Dedicate(t.Context(), name); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("dedicate %q: %v", name, err)
		}
	}
}
