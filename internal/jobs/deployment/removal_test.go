package deployment

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/testsuite"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/deployctl/deployctl/statestore/storetest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

var dev = deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}

// destroyed is a stack that a deployment of ann's has destroyed and is to remove.
type destroyed struct {
	*testing.T
	store *statestore.Store
	env   *testsuite.TestActivityEnvironment
	name  deployments.DeploymentName
}

func newDestroyed(t *testing.T) *destroyed {
	t.Helper()
	store, err := statestore.New(storetest.NewContended(&bucket.Memory{}),
		statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	d := &destroyed{T: t, store: store, name: deployments.DeploymentName{StackName: dev, Number: 1}}
	must(t, store.CreateStack(t.Context(), dev, nil))
	token, err := store.Access.CreateToken(t.Context(), deployments.Token{Name: "ann", Grant: &deployments.Grant{
		Role: deployments.RoleDeployer, Organization: "acme"}})
	must(t, err)
	ann, err := store.Access.Authenticate(t.Context(), token)
	must(t, err)
	head, err := store.Head(t.Context(), dev)
	must(t, err)
	_, err = store.Jobs.AddDeployment(t.Context(), jobs.Deployment{
		Authority: ann.Delegated(), Removes: head.ID,
		Deployment: deployments.Deployment{Name: d.name, Operation: apitype.Destroy, Created: time.Now(),
			Status: deployments.DeploymentSucceeded}})
	must(t, err)
	suite := &testsuite.WorkflowTestSuite{}
	suite.SetLogger(sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	d.env = suite.NewTestActivityEnvironment()
	d.env.SetTestTimeout(waittest.Patience)
	d.env.RegisterActivity(New(Activities{Store: store, Service: service.New(nil, store, service.Readers{})}))
	return d
}

// remove removes the stack, or tries it; that may be repeated.
func (d *destroyed) remove() {
	d.Helper()
	for range 2 {
		if _, err := d.env.ExecuteActivity("RemoveDestroyedStack", d.name); err != nil {
			d.Fatal(err)
		}
	}
}

// isRefused checks that the deployment says, where users look, why the stack is still there.
func (d *destroyed) isRefused(why string) {
	d.Helper()
	shown, err := d.store.Jobs.Deployment(d.Context(), d.name)
	must(d.T, err)
	if shown.Status != deployments.DeploymentFailed || !strings.Contains(shown.Error, why) || len(shown.Steps) != 1 ||
		shown.Steps[0].Name != headerRemoval || shown.Steps[0].Status != deployments.DeploymentFailed {
		d.Errorf("it is %+v, and should fail with %q", shown.Deployment, why)
	}
	lines, _, err := d.store.Jobs.DeploymentLog(d.Context(), d.name, "")
	must(d.T, err)
	if len(lines) != 3 || lines[0].Header != headerRemoval || !strings.Contains(lines[1].Line, why) ||
		!strings.Contains(lines[2].Line, "pulumi stack rm") {
		d.Errorf("its log is %+v", lines)
	}
}

func TestAStackThatWasCreatedUnderTheNameStays(t *testing.T) {
	d := newDestroyed(t)
	_, err := d.store.Jobs.ChangeDeployment(t.Context(), d.name, func(stored *jobs.Deployment) error {
		stored.Removes = "another"
		return nil
	})
	must(t, err)
	d.remove()
	shown, err := d.store.Jobs.Deployment(t.Context(), d.name)
	must(t, err)
	if shown.Status != deployments.DeploymentSucceeded {
		t.Errorf("it is %+v", shown.Deployment)
	}
}

func TestADeploymentSaysThatItsStackIsInUseAgain(t *testing.T) {
	d := newDestroyed(t)
	_, err := d.store.Claim(t.Context(), statestore.Claimant{Writer: "w", Update: deployments.UpdateName{StackName: dev,
		Version: "1"}})
	must(t, err)
	d.remove()
	d.isRefused("has the stack since")
}

func TestADeploymentSaysThatItsStackHasResources(t *testing.T) {
	d := newDestroyed(t)
	_, err := d.store.Import(t.Context(), statestore.Exchange{Stack: dev}, apitype.UntypedDeployment{Version: 3,
		Deployment: []byte(`{"resources":[{"urn":"urn:pulumi:dev::shop::my:index:Team::team","type":"my:index:Team"}]}`)})
	must(t, err)
	d.remove()
	d.isRefused("still has 1 resource")
}

func TestADeploymentSaysThatItsUserMayNotDeployAnyMore(t *testing.T) {
	d := newDestroyed(t)
	must(t, d.store.Access.RemoveToken(t.Context(), "ann"))
	d.remove()
	d.isRefused("may not deploy any more")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
