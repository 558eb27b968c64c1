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
		deployments.ActivityHead: again, deployments.ActivityClaim: again, deployments.ActivityHeaders: again,
		deployments.ActivitySave:   again,
		deployments.ActivityCommit: again, deployments.ActivityStop: again, deployments.ActivityRecover: again,
		deployments.ActivityEnter: again, deployments.ActivityBeginLease: again, deployments.ActivityEndLease: again,
		deployments.ActivitySpill: again, deployments.ActivityLoadSpilled: again, deployments.ActivityEnded: again,
		deployments.ActivitySubmit: again, deployments.ActivityAwaitUpdate: again, deployments.ActivityDriftReport: again,
		deployments.ActivityAwaitTurn: again, deployments.ActivityPrepareDeployment: again,
		deployments.ActivitySubmitDeployment: again, deployments.ActivityFollowDeployment: again,
		deployments.ActivityEndDeployment: again, deployments.ActivityRemoveStack: again,
		deployments.ActivityRemoveDestroyed: again, deployments.ActivityDeliver: again,

		deployments.ActivityProgram: elsewhere, deployments.ActivityPlan: elsewhere,
		deployments.ActivityCascade: elsewhere,
		deployments.ActivityCompare: elsewhere, deployments.ActivitySettle: elsewhere,
		deployments.ActivityInquire: elsewhere,
		deployments.ActivityRelease: elsewhere,
		deployments.ActivityPing:    elsewhere, deployments.ActivityRefresh: elsewhere, deployments.ActivityHook: elsewhere,
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
