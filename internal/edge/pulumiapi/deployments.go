package pulumiapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// deploymentsPath is the path of a stack's deployments.
const deploymentsPath = stackPath + "/deployments"

// deploymentRoutes are about deployments: operations with programs from git repositories.
func deploymentRoutes() []route {
	const (
		run    = api.Deployments_Submit_FullMethodName
		look   = api.Deployments_Watch_FullMethodName
		cancel = api.Deployments_Cancel_FullMethodName
		list   = api.Stacks_GetStack_FullMethodName
		change = api.Deployments_Submit_FullMethodName
		show   = api.Stacks_Encrypt_FullMethodName // reads, and needs the same role
	)
	const settings, one = deploymentsPath + "/settings", deploymentsPath + "/{deployment}"
	return []route{
		{method: http.MethodPost, path: deploymentsPath, calls: calls("CreateDeployment"), like: run,
			handle: createDeployment},
		{method: http.MethodGet, path: deploymentsPath, calls: calls("ListStackDeployments"), like: list,
			handle: listDeployments},
		{method: http.MethodGet, path: one, calls: calls("GetDeployment"), like: list, handle: getDeployment},
		{method: http.MethodGet, path: one + "/{part}", calls: calls("GetDeploymentByVersion", "GetDeploymentLogs",
			"GetDeploymentUpdates"), like: look, handle: partOfDeployment},
		{method: http.MethodPost, path: one + "/{part}", calls: calls("CancelStackDeployment"), like: cancel,
			handle: cancelDeployment}, // other parts are of schedules
		{method: http.MethodGet, path: settings, calls: calls("GetStackDeploymentSettings"), like: show,
			handle: deploymentSettings},
		{method: http.MethodPost, path: settings, calls: calls("PatchStackDeploymentSettings"), like: change,
			onlyWrites: true, handle: patchDeploymentSettings},
		{method: http.MethodDelete, path: settings, calls: calls("DestroyStackDeploymentSettings"), like: change,
			onlyWrites: true, handle: removeDeploymentSettings},
		{method: http.MethodPost, path: deploymentsPath + "/push", by: byAnyone, handle: takePush},
		{method: http.MethodPost, path: deploymentsPath + "/pause", like: change, onlyWrites: true,
			handle: func(c *call) (any, error) { return c.pauseDeployments(true) }},
		{method: http.MethodPost, path: deploymentsPath + "/resume", like: change, onlyWrites: true,
			handle: func(c *call) (any, error) { return c.pauseDeployments(false) }},
	}
}

// createDeployment asks for a deployment.
func createDeployment(c *call) (any, error) {
	var r struct {
		Op              apitype.PulumiOperation   `json:"operation"`
		InheritSettings bool                      `json:"inheritSettings"`
		Executor        *apitype.ExecutorContext  `json:"executorContext"`
		Source          *apitype.SourceContext    `json:"sourceContext"`
		Operation       *apitype.OperationContext `json:"operationContext"`
		AgentPoolID     *string                   `json:"agentPoolID"`
	}
	if err := c.parse(&r); err != nil {
		return nil, err
	}
	request := deployments.DeploymentRequest{
		Stack: c.stack, Operation: r.Op, Inherits: r.InheritSettings, RequestedBy: c.caller.Name(),
		Initiator: deployments.InitiatorCLI, Authority: c.caller.Delegated(),
	}
	request.Settings.Executor, request.Settings.SourceContext = r.Executor, r.Source
	request.Settings.Operation, request.Settings.AgentPoolID = r.Operation, r.AgentPoolID
	if r.Op == "" && r.Operation != nil {
		request.Operation = r.Operation.Operation
	}
	d, err := c.edge.Service.CreateDeployment(c.Context(), request)
	if err != nil {
		return nil, err
	}
	c.entry.Subject = "deployment=" + strconv.Itoa(d.Name.Number) + " operation=" + string(d.Operation)
	return struct {
		apitype.CreateDeploymentResponse
		Version int `json:"version"`
	}{apitype.CreateDeploymentResponse{ID: d.Name.ID()}, d.Name.Number}, nil
}

// deployment returns the name of the deployment in the path.
func (c *call) deployment() (deployments.DeploymentName, error) {
	return deployments.DeploymentOf(c.stack, clean(c.PathValue("deployment")))
}

// mostListed is how many deployments one answer lists.
const mostListed = 100

func listDeployments(c *call) (any, error) {
	asked, err := c.asked(10, mostListed)
	if err != nil {
		return nil, err
	}
	page := deployments.DeploymentPage{Page: asked, Ascending: c.query().Get("asc") == "true"}
	found, total, err := c.edge.Service.ListDeployments(c.Context(), c.stack, page)
	if err != nil {
		return nil, err
	}
	answer := apitype.ListDeploymentResponseV2{Deployments: []apitype.ListDeploymentSnapshot{}, Total: int64(total),
		ItemsPerPage: int64(page.Size)}
	for _, d := range found {
		one, err := c.describeDeployment(d)
		if err != nil {
			return nil, err
		}
		answer.Deployments = append(answer.Deployments, one)
	}
	return answer, nil
}

func getDeployment(c *call) (any, error) {
	n, err := c.deployment()
	if err != nil {
		return nil, err
	}
	return c.showDeployment(n)
}

func (c *call) showDeployment(n deployments.DeploymentName) (any, error) {
	d, err := c.edge.Service.Deployment(c.Context(), n)
	if err != nil {
		return nil, err
	}
	one, err := c.describeDeployment(d)
	return struct {
		apitype.ListDeploymentSnapshot
		InheritSettings bool `json:"inheritSettings,omitempty"`
	}{one, d.Inherits}, err
}

// describeDeployment translates the description of a deployment, with its updates.
func (c *call) describeDeployment(d deployments.Deployment) (apitype.ListDeploymentSnapshot, error) {
	one := apitype.ListDeploymentSnapshot{
		ID: d.Name.ID(), Created: d.Created.Format(time.RFC3339), Modified: d.Modified.Format(time.RFC3339),
		Status: string(d.Status), Version: int64(d.Name.Number), ProjectName: d.Name.Project, StackName: d.Name.Stack,
		RequestedBy:     apitype.UserInfo{Name: d.By(), GitHubLogin: d.RequestedBy},
		PulumiOperation: d.Operation, Initiator: d.Initiator, Updates: []apitype.DeploymentNestedUpdate{},
	}
	job := apitype.DeploymentJob{Status: string(d.Status), Started: d.Created, LastUpdated: d.Modified,
		Steps: []apitype.DeploymentStepRun{}}
	for _, s := range d.Steps {
		job.Steps = append(job.Steps, apitype.DeploymentStepRun{Name: s.Name, Status: string(s.Status),
			Started: s.Started, LastUpdated: s.Changed})
	}
	one.Jobs = []apitype.DeploymentJob{job}
	for _, version := range d.Updates {
		u := deployments.UpdateName{StackName: d.Name.StackName, Version: version}
		info, err := c.edge.Service.Info(c.Context(), u)
		if err != nil && !notFound(err) {
			return one, err
		}
		nested := apitype.DeploymentNestedUpdate{ID: version, UpdateID: version, Version: int64(u.Number()),
			Result: string(statusOf(info)), Kind: string(kindOf(info)), Message: info.Message,
			Environment: map[string]string{}}
		if !info.Started.IsZero() {
			nested.StartTime = info.Started.Unix()
		}
		if !info.Ended.IsZero() {
			nested.EndTime = info.Ended.Unix()
		}
		one.Updates = append(one.Updates, nested)
	}
	return one, nil
}

// partOfDeployment returns the log or the updates of a deployment, or a deployment by its number: the paths of these
// differ in another part than a pattern could tell.
func partOfDeployment(c *call) (any, error) {
	part := c.PathValue("part")
	if c.PathValue("deployment") == "version" {
		n, err := deployments.DeploymentOf(c.stack, clean(part))
		if err != nil {
			return nil, err
		}
		return c.showDeployment(n)
	}
	n, err := c.deployment()
	if err != nil {
		return nil, err
	}
	switch part {
	case "logs":
		return c.deploymentLogs(n)
	case "updates":
		return c.deploymentUpdates(n)
	}
	return nil, notServed(c.Request)
}

// deploymentLogs returns the next lines of a log. A deployment has one job, so its number selects nothing; lines are
// not numbered by step.
func (c *call) deploymentLogs(n deployments.DeploymentName) (any, error) {
	logs, err := c.edge.Service.DeploymentLogs(c.Context(), n, c.query().Get("continuationToken"))
	if err != nil {
		return nil, err
	}
	return apitype.DeploymentLogs{Lines: logs.Lines, NextToken: logs.Next}, nil
}

func (c *call) deploymentUpdates(n deployments.DeploymentName) (any, error) {
	d, err := c.edge.Service.Deployment(c.Context(), n)
	if err != nil {
		return nil, err
	}
	head, err := c.edge.Service.Head(c.Context(), c.stack)
	if err != nil {
		return nil, err
	}
	updates := []apitype.GetDeploymentUpdatesUpdateInfo{}
	for _, version := range d.Updates {
		u := deployments.UpdateName{StackName: c.stack, Version: version}
		updates = append(updates, apitype.GetDeploymentUpdatesUpdateInfo{UpdateID: version, Version: u.Number(),
			LatestVersion: head.Version})
	}
	return updates, nil
}

func cancelDeployment(c *call) (any, error) {
	if c.PathValue("part") != "cancel" {
		return nil, notServed(c.Request)
	}
	n, err := c.deployment()
	if err != nil {
		return nil, err
	}
	c.entry.Subject = "deployment=" + strconv.Itoa(n.Number)
	return nil, c.edge.Service.CancelDeployment(c.Context(), n)
}

// deploymentSettings returns the settings of a stack: texts that only the service can read stand for the secrets.
func deploymentSettings(c *call) (any, error) {
	if _, err := c.edge.Service.Head(c.Context(), c.stack); err != nil {
		return nil, err
	}
	return c.edge.Service.DeploymentSettings(c.Context(), c.stack)
}

func patchDeploymentSettings(c *call) (any, error) {
	patch, err := c.body()
	if err != nil {
		return nil, err
	}
	c.entry.Subject = "deployment settings"
	return nil, c.edge.Service.PatchDeploymentSettings(c.Context(), c.stack, patch, c.caller.Delegated())
}

func removeDeploymentSettings(c *call) (any, error) {
	c.entry.Subject = "deployment settings removed"
	return nil, c.edge.Service.RemoveDeploymentSettings(c.Context(), c.stack)
}

// pauseDeployments keeps the deployments of a stack from their turn, or lets them go on.
func (c *call) pauseDeployments(paused bool) (any, error) {
	c.entry.Subject = "deployments paused=" + strconv.FormatBool(paused)
	patch, err := json.Marshal(map[string]bool{"paused": paused})
	if err != nil {
		return nil, err
	}
	return nil, c.edge.Service.PatchDeploymentSettings(c.Context(), c.stack, patch, c.caller.Delegated())
}
