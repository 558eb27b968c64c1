package pulumiapi

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// schedulesPath is the path of a stack's schedules, of which those below are made and edited by kind.
const schedulesPath = stackPath + "/deployments/schedules"

// scheduleRoutes are about the schedules of a stack. What the CLI knows as the id of a schedule is its name.
func scheduleRoutes() []route {
	const like, one = api.Schedules_CreateSchedule_FullMethodName, "/{schedule}"
	all := []route{
		{method: http.MethodGet, path: schedulesPath, calls: calls("ListStackSchedules"),
			like: api.Schedules_ListSchedules_FullMethodName, handle: listSchedules},
		{method: http.MethodGet, path: schedulesPath + one, calls: calls("GetStackSchedule"),
			like: api.Schedules_GetSchedule_FullMethodName, handle: getSchedule},
		{method: http.MethodDelete, path: schedulesPath + one, calls: calls("DeleteStackSchedule"),
			like: api.Schedules_RemoveSchedule_FullMethodName, handle: removeSchedule},
	}
	for _, kind := range []struct {
		below, create, edit string
		read                func(*call) (deployments.Schedule, error)
	}{
		{"", "CreateStackSchedule", "UpdateStackSchedule", rawSchedule},
		{"/drift", "CreateStackDriftSchedule", "UpdateStackDriftSchedule", driftSchedule},
		{"/ttl", "CreateStackTTLSchedule", "UpdateStackTTLSchedule", ttlSchedule},
	} {
		path := stackPath + "/deployments" + kind.below + "/schedules"
		all = append(all,
			route{method: http.MethodPost, path: path, calls: calls(kind.create), like: like,
				handle: func(c *call) (any, error) { return createSchedule(c, kind.read) }},
			route{method: http.MethodPost, path: path + one, calls: calls(kind.edit), like: like,
				handle: func(c *call) (any, error) { return editSchedule(c, kind.read) }})
	}
	return all
}

// rawSchedule reads a schedule of one of the CLI's operations.
func rawSchedule(c *call) (deployments.Schedule, error) {
	var r apitype.CreateScheduledDeploymentRequest
	if err := c.parse(&r); err != nil {
		return deployments.Schedule{}, err
	}
	if r.Request == nil {
		return deployments.Schedule{}, deployments.Errorf(deployments.CodeInvalid, "the schedule has no operation")
	}
	kinds := map[apitype.PulumiOperation]deployments.ScheduleKind{
		apitype.Update: deployments.ScheduleUpdate, apitype.Preview: deployments.SchedulePreview,
		apitype.Refresh: deployments.ScheduleRefresh, apitype.Destroy: deployments.ScheduleDestroy,
	}
	kind, known := kinds[r.Request.Op]
	switch {
	case !known:
		return deployments.Schedule{}, deployments.Errorf(deployments.CodeInvalid,
			"%q cannot be scheduled: use update, preview, refresh or destroy", clean(string(r.Request.Op)))
	case r.Request.Source != nil, r.Request.Executor != nil,
		r.Request.Operation != nil && r.Request.Op != apitype.Destroy:
		return deployments.Schedule{}, deployments.Errorf(deployments.CodeInvalid, "a schedule runs on the program of "+
			"the stack's last update: leave out its source, executor and operation context")
	}
	return timed(deployments.Schedule{Kind: kind}, r.ScheduleCron, r.ScheduleOnce)
}

// driftSchedule reads a schedule of drift checks.
func driftSchedule(c *call) (deployments.Schedule, error) {
	var r apitype.CreateScheduledDriftDeploymentRequest
	if err := c.parse(&r); err != nil {
		return deployments.Schedule{}, err
	}
	return timed(deployments.Schedule{Kind: deployments.ScheduleDrift, Remediate: r.AutoRemediate}, r.ScheduleCron, "")
}

// ttlSchedule reads a stack's time to live.
func ttlSchedule(c *call) (deployments.Schedule, error) {
	var r apitype.CreateScheduledTTLDeploymentRequest
	if err := c.parse(&r); err != nil {
		return deployments.Schedule{}, err
	}
	return timed(deployments.Schedule{Kind: deployments.ScheduleDestroy, RemoveStack: r.DeleteAfterDestroy}, "",
		r.Timestamp)
}

// interval begins the cron expression of a schedule with an interval.
const interval = "@every "

// timed sets when a schedule runs.
func timed(s deployments.Schedule, cron, once string) (_ deployments.Schedule, err error) {
	if text, ok := strings.CutPrefix(strings.TrimSpace(cron), interval); ok {
		if s.Every, err = time.ParseDuration(text); err != nil {
			return s, deployments.Errorf(deployments.CodeInvalid, "%q is not an interval: %w", clean(text), err)
		}
	} else {
		s.Cron = cron
	}
	if once != "" {
		if s.At, err = time.Parse(time.RFC3339, once); err != nil {
			return s, deployments.Errorf(deployments.CodeInvalid, "%q is not a time: %w", clean(once), err)
		}
	}
	return s, nil
}

// createSchedule creates a schedule and names it by its kind, because the CLI gives it no name.
func createSchedule(c *call, read func(*call) (deployments.Schedule, error)) (any, error) {
	s, err := read(c)
	if err != nil {
		return nil, err
	}
	s.Initiator, s.Authority = c.caller.Name(), c.caller.Delegated()
	base := string(s.Kind)
	for n := 1; ; n++ {
		s.Name = deployments.ScheduleName{StackName: c.stack, Name: base}
		if n > 1 {
			s.Name.Name += "-" + strconv.Itoa(n)
		}
		c.entry.Subject = "name=" + s.Name.Name + " kind=" + string(s.Kind)
		err := c.edge.Service.CreateSchedule(c.Context(), s)
		if err == nil {
			return c.schedule(s.Name)
		}
		if deployments.CodeOf(err) != deployments.CodeExists || n == deployments.MaxSchedules {
			return nil, err
		}
	}
}

// editSchedule replaces what a schedule does and when; its other options stay.
func editSchedule(c *call, read func(*call) (deployments.Schedule, error)) (any, error) {
	before, err := c.edge.Service.Schedule(c.Context(), c.scheduleName())
	if err != nil {
		return nil, err
	}
	s, err := read(c)
	if err != nil {
		return nil, err
	}
	if s.Kind == before.Kind {
		s.Options = before.Options
	}
	s.Name, s.Initiator, s.Authority = before.Name, c.caller.Name(), c.caller.Delegated()
	c.entry.Subject = "name=" + s.Name.Name + " kind=" + string(s.Kind)
	if err := c.edge.Service.ReplaceSchedule(c.Context(), s); err != nil {
		return nil, err
	}
	return c.schedule(s.Name)
}

func (c *call) scheduleName() deployments.ScheduleName {
	return deployments.ScheduleName{StackName: c.stack, Name: c.PathValue("schedule")}
}

func listSchedules(c *call) (any, error) {
	list, err := c.edge.Service.Schedules(c.Context(), c.stack)
	if err != nil {
		return nil, err
	}
	answer := apitype.ListScheduledActionsResponse{Schedules: []apitype.ScheduledAction{}}
	for _, s := range list {
		action, err := fromSchedule(s)
		if err != nil {
			return nil, err
		}
		answer.Schedules = append(answer.Schedules, action)
	}
	return answer, nil
}

func getSchedule(c *call) (any, error) { return c.schedule(c.scheduleName()) }

func (c *call) schedule(n deployments.ScheduleName) (any, error) {
	s, err := c.edge.Service.Schedule(c.Context(), n)
	if err != nil {
		return nil, err
	}
	return fromSchedule(s)
}

func removeSchedule(c *call) (any, error) {
	n := c.scheduleName()
	c.entry.Subject = "name=" + n.Name
	return nil, c.edge.Service.RemoveSchedule(c.Context(), n)
}

// fromSchedule describes a schedule as a scheduled deployment, by which the CLI tells the kinds apart.
func fromSchedule(s deployments.Schedule) (apitype.ScheduledAction, error) {
	action := apitype.ScheduledAction{
		ID: s.Name.Name, OrgID: s.Name.Organization, Kind: apitype.ScheduledActionKindDeployment,
		ScheduleCron: s.Cron, ScheduleOnce: stamp(s.At), NextExecution: stamp(s.Next), Paused: s.Paused,
		Created: stamp(s.Created), Modified: stamp(s.Created),
	}
	if s.Every > 0 {
		action.ScheduleCron = interval + s.Every.String()
	}
	if s.Last != nil {
		last := stamp(s.Last.Started)
		action.LastExecuted = &last
	}
	request := apitype.CreateDeploymentRequest{Op: apitype.PulumiOperation(s.Kind), InheritSettings: true}
	switch {
	case s.Kind == deployments.ScheduleDrift:
		request.Op = apitype.DetectDrift
		request.Operation = &apitype.OperationContext{Operation: request.Op, Options: &apitype.OperationContextOptions{
			RemediateIfDriftDetected: s.Remediate}}
	case s.Kind == deployments.ScheduleDestroy && !s.At.IsZero():
		request.Operation = &apitype.OperationContext{Operation: request.Op, Options: &apitype.OperationContextOptions{
			DeleteAfterDestroy: s.RemoveStack}}
	}
	var err error
	action.Definition, err = json.Marshal(apitype.ScheduledDeploymentDefinition{ProgramID: s.Name.StackName.String(),
		Request: &request})
	return action, err
}

// stamp writes a time as the CLI shows it; "" for none.
func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
