package recovery

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/temporal"

	"github.com/deployctl/deployctl/deployments"
)

// activityNames are the values of all constants deployments.Activity….
func activityNames(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob("../deployments/*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range files {
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok && strings.HasPrefix(v.Names[0].Name, "Activity") {
				name, err := strconv.Unquote(v.Values[0].(*ast.BasicLit).Value)
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, name)
			}
			return true
		})
	}
	return names
}

func TestSharedActivitiesAreRetriedWhenTheirWorkerIsGone(t *testing.T) {
	const again, elsewhere, asked = deployments.ErrorNotDone, deployments.ErrorNotStarted,
		deployments.ErrorUnknownOutcome
	want := map[string]string{
		deployments.ActivityReadHead: again, deployments.ActivityClaimStack: again,
		deployments.ActivityReadHeaders: again, deployments.ActivitySave: again,
		deployments.ActivityCommitUpdate: again, deployments.ActivityTerminateRun: again,
		deployments.ActivityRecoverUpdate: again, deployments.ActivityAddToHistory: again,
		deployments.ActivityBeginLease: again, deployments.ActivityEndLease: again,
		deployments.ActivitySpillPart: again, deployments.ActivityLoadSpilledPart: again,
		deployments.ActivityAwaitWorkflow: again, deployments.ActivitySubmitUpdate: again,
		deployments.ActivityAwaitUpdate: again, deployments.ActivityReportDrift: again,
		deployments.ActivityAwaitTurn: again, deployments.ActivityPrepareDeployment: again,
		deployments.ActivitySubmitDeployment: again, deployments.ActivityFollowDeployment: again,
		deployments.ActivityEndDeployment: again, deployments.ActivityRemoveStack: again,
		deployments.ActivityRemoveDestroyedStack: again, deployments.ActivityDeliverEvent: again,

		deployments.ActivityRunProgram: elsewhere, deployments.ActivityPlanResources: elsewhere,
		deployments.ActivityPlanCascade: elsewhere, deployments.ActivityCompareProviders: elsewhere,
		deployments.ActivitySettle: elsewhere, deployments.ActivityAskFormerWorker: elsewhere,
		deployments.ActivityEndSession: elsewhere, deployments.ActivityPingWorker: elsewhere,
		deployments.ActivityRefreshResources: elsewhere, deployments.ActivityRunHook: elsewhere,
		deployments.ActivityAnalyzeStack: elsewhere,

		deployments.ActivityStep: asked,
	}
	names := activityNames(t)
	if len(names) < len(want) {
		t.Fatalf("only %d activities were found", len(names))
	}
	for _, name := range names {
		var lost *temporal.ApplicationError
		if !errors.As(lostError(&workflowpb.PendingActivityInfo{ActivityType: &commonpb.ActivityType{Name: name}}),
			&lost) {
			t.Fatalf("%s is not lost", name)
		}
		if lost.Type() != want[name] || lost.NonRetryable() == (want[name] == again) {
			t.Errorf("%s is lost as %s, not retried: %v; want %q", name, lost.Type(), lost.NonRetryable(), want[name])
		}
	}
}
