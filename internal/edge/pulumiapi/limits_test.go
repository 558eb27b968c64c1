package pulumiapi

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/jobs"
)

// TestALimitOfDeploymentsIsSaidWithWhatToDo reaches the limits of what only the stock CLI asks for.
func TestALimitOfDeploymentsIsSaidWithWhatToDo(t *testing.T) {
	const path, most = "/api/stacks/acme/shop/dev/deployments", 100
	b := newBench(t)
	refused := func(status int, says, path, body string) {
		t.Helper()
		if said := b.want(status, http.MethodPost, path, "token deployer", body); !strings.Contains(said, says) {
			t.Errorf("%s is refused with %s, not with %q", path, said, says)
		}
	}
	refused(http.StatusBadRequest, "put them into a script", path+"/settings",
		`{"operationContext":{"preRunCommands":[`+strings.Repeat(`"x",`, 50)+`"x"]}}`)
	refused(http.StatusBadRequest, "at most 262144 are possible", path+"/settings",
		`{"operationContext":{"environmentVariables":{"A":"`+strings.Repeat("a", 256<<10)+`"}}}`)
	records := func(n int, status deployments.DeploymentStatus, begun time.Time) {
		t.Helper()
		for range n {
			if _, err := b.store.Jobs.AddDeployment(t.Context(), jobs.Deployment{Begun: begun,
				Deployment: deployments.Deployment{Name: deployments.DeploymentName{StackName: dev}, Status: status},
			}); err != nil {
				t.Fatal(err)
			}
		}
	}
	records(1, deployments.DeploymentRunning, time.Now())
	records(most, deployments.DeploymentSkipped, time.Time{})
	records(most-1, deployments.DeploymentAccepted, time.Time{})
	refused(http.StatusConflict, "100 deployments of acme/shop/dev wait already: cancel some, or resume them", path,
		`{"operation":"update","sourceContext":{"git":{"repoUrl":"https://example.com/x.git","branch":"main"}}}`)
}
