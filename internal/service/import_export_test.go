package service

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

var dev = deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}

// newService is a service with a stack, whose Temporal is away.
func newService(t *testing.T) *Service {
	t.Helper()
	store, err := statestore.New(storetest.NewContended(&bucket.Memory{}, "/live/head.json"),
		statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	must(t, store.CreateStack(t.Context(), dev, nil))
	away, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1",
		Logger: log.NewStructuredLogger(slog.New(slog.DiscardHandler))})
	must(t, err)
	t.Cleanup(away.Close)
	return New(away, store, Readers{})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// watched is the end of an update, of which nothing else is there to be seen.
func watched(t *testing.T, s *Service, version string) *deployments.UpdateInfo {
	t.Helper()
	var seen []deployments.WatchEvent
	must(t, s.Watch(t.Context(), deployments.UpdateName{StackName: dev, Version: version},
		func(e deployments.WatchEvent) error {
			seen = append(seen, e)
			return nil
		}))
	if len(seen) != 1 || seen[0].End == nil {
		t.Fatalf("version %s shows %+v", version, seen)
	}
	return seen[0].End
}

// queue is a Temporal client whose stacks give out versions.
type queue struct {
	client.Client
	client.WorkflowUpdateHandle
	asked   []string
	version int
}

func (q *queue) UpdateWithStartWorkflow(
	_ context.Context, o client.UpdateWithStartWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	if o.UpdateOptions.WorkflowID != deployments.StackWorkflowID(dev) {
		return nil, fmt.Errorf("what is asked is sealed for %q", o.UpdateOptions.WorkflowID)
	}
	q.asked = append(q.asked, o.UpdateOptions.UpdateName)
	return q, nil
}

func (q *queue) Get(_ context.Context, answer any) error {
	q.version += 2
	*answer.(*int) = q.version
	return nil
}

func TestWhatIsImportedAndRestoredStandsInTheHistoryAndCanBeShown(t *testing.T) {
	s := newService(t)
	away := s.temporal
	q := &queue{Client: away}
	s.temporal = q
	deployment := apitype.UntypedDeployment{Version: 3, Deployment: []byte(
		`{"manifest":{"time":"0001-01-01T00:00:00Z","magic":"","version":""}}`)}
	for range 2 {
		_, err := s.Import(t.Context(), deployments.ImportRequest{Stack: dev, Deployment: deployment, Initiator: "ann"})
		must(t, err)
	}
	version, err := s.Restore(t.Context(), deployments.RestoreRequest{Stack: dev, Version: 2, Initiator: "bob"})
	must(t, err)
	list, err := s.Updates.History(t.Context(), dev, 0)
	must(t, err)
	var told []string
	for _, info := range list {
		told = append(told, fmt.Sprint(info.Update.Version, " ", info.Kind, " ", info.Status, " ", info.Message, " ",
			info.Initiator, " ", info.Kept))
	}
	want := []string{"6 restore succeeded version 2 again bob true", "4 import succeeded  ann true",
		"2 import succeeded  ann true"}
	if version != 6 || !slices.Equal(told, want) {
		t.Errorf("as version %d; the history is %q", version, told)
	}
	if asked := []string{deployments.UpdateReserve, deployments.UpdateReserve,
		deployments.UpdateReserve}; !slices.Equal(q.asked, asked) {
		t.Errorf("the stack was asked to %q", q.asked)
	}
	s.temporal = away
	if end := watched(t, s, "6"); end.Kind != deployments.KindRestore {
		t.Errorf("it is shown as %+v", end)
	}
}

func TestARenamingStandsInTheHistoryOnce(t *testing.T) {
	s := newService(t)
	deployment := apitype.UntypedDeployment{Version: 3, Deployment: []byte(
		`{"manifest":{"time":"0001-01-01T00:00:00Z","magic":"","version":""}}`)}
	_, err := s.store.Store.Import(t.Context(), statestore.Exchange{Stack: dev}, deployment)
	must(t, err)
	live := deployments.StackName{Organization: "organization", Project: "shop", Stack: "live"}
	must(t, s.store.Store.RenameStack(t.Context(), dev, live))
	for _, by := range []string{"ann", "bob"} { // who repeats a renaming made no version
		must(t, s.recordRename(t.Context(), deployments.RenameRequest{From: dev, To: live, Initiator: by}))
	}
	list, err := s.Updates.History(t.Context(), live, 0)
	must(t, err)
	if len(list) != 1 || list[0].Update.Version != "2" || list[0].Kind != deployments.KindRename ||
		list[0].Initiator != "ann" ||
		list[0].Message != "renamed from organization/shop/dev" || !list[0].Kept {
		t.Errorf("the history is %+v", list)
	}
}

func TestAnUpdateWhoseLogIsNotKeptShowsItsEnd(t *testing.T) {
	s := newService(t)
	must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{
		Update: deployments.UpdateName{StackName: dev, Version: "7"}, Status: "failed",
		Ended: time.Now().Add(-2 * collectedAfter),
	}))
	if end := watched(t, s, "7"); end.Status != "failed" {
		t.Errorf("it is shown as %+v", end)
	}
}
