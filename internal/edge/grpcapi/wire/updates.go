package wire

import (
	"encoding/json"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// FromRequest writes a request.
func FromRequest(r deployments.UpdateRequest) *api.SubmitRequest {
	config := make(map[string]*api.ConfigValue, len(r.Config))
	for key, v := range r.Config {
		config[key] = &api.ConfigValue{Value: v.Value, Secret: v.Secret, Object: v.Object}
	}
	var packs []*api.PolicyPack
	for _, p := range r.PolicyPacks {
		packs = append(packs, &api.PolicyPack{Dir: p.Dir, Config: p.Config})
	}
	return &api.SubmitRequest{
		Stack: FromStack(r.Stack), RequestId: r.RequestID, Kind: string(r.Kind), DryRun: r.DryRun,
		OnBusy: string(r.OnBusy),
		Bundle: r.Bundle, BaseVersion: FromVersion(r.BaseVersion),
		Config: config, Environment: r.Environment, Secrets: FromSecrets(r.Secrets),
		Refresh: r.Refresh, Targets: r.Targets, TargetDependents: r.TargetDependents, Replace: r.Replace,
		Excludes: r.Excludes, ExcludeDependents: r.ExcludeDependents,
		ExcludeProtected: r.ExcludeProtected, IgnoreProtect: r.IgnoreProtect,
		RunProgram: r.RunProgram, ClearPendingCreates: r.ClearPendingCreates,
		ContinueOnError: r.ContinueOnError, Parallel: int32(r.Parallel), WaitOnUnknown: r.WaitOnUnknown,
		Message: r.Message, Initiator: r.Initiator, Scheduled: r.Scheduled, PolicyPacks: packs,
		Imports: fromImports(r.Imports), Variables: r.Variables, Plan: fromPlan(r.Plan),
		Settle: fromSettling(r.Settle), TrySettle: r.TrySettle, Adopt: r.Adopt, Force: r.Force,
		Survey: r.Survey,
	}
}

// ToRequest reads a request.
func ToRequest(m *api.SubmitRequest) deployments.UpdateRequest {
	var packs []deployments.PolicyPack
	for _, p := range m.GetPolicyPacks() {
		packs = append(packs, deployments.PolicyPack{Dir: p.GetDir(), Config: p.GetConfig()})
	}
	return deployments.UpdateRequest{
		Stack: ToStack(m.GetStack()), RequestID: m.GetRequestId(), Kind: engine.Kind(m.GetKind()), DryRun: m.GetDryRun(),
		OnBusy: deployments.OnBusy(m.GetOnBusy()), Bundle: m.GetBundle(), BaseVersion: ToVersion(m.BaseVersion),
		Config: toConfig(m), Environment: m.GetEnvironment(), Secrets: ToSecrets(m.GetSecrets()),
		Refresh: m.GetRefresh(), Targets: m.GetTargets(), TargetDependents: m.GetTargetDependents(),
		Replace: m.GetReplace(), Excludes: m.GetExcludes(), ExcludeDependents: m.GetExcludeDependents(),
		ExcludeProtected: m.GetExcludeProtected(), IgnoreProtect: m.GetIgnoreProtect(),
		RunProgram: m.GetRunProgram(), ClearPendingCreates: m.GetClearPendingCreates(),
		ContinueOnError: m.GetContinueOnError(), Parallel: int(m.GetParallel()), WaitOnUnknown: m.GetWaitOnUnknown(),
		Message: m.GetMessage(), Initiator: m.GetInitiator(), Scheduled: m.GetScheduled(), PolicyPacks: packs,
		Imports: toImports(m.GetImports()), Variables: m.GetVariables(), Plan: toPlan(m.GetPlan()),
		Settle: toSettling(m.GetSettle()), TrySettle: m.GetTrySettle(), Adopt: m.GetAdopt(),
		Force: m.GetForce(), Survey: m.GetSurvey(),
	}
}

// FromVersion writes the version that a request is about; nil means any.
func FromVersion(v *int) *int64 {
	if v == nil {
		return nil
	}
	wide := int64(*v)
	return &wide
}

// ToVersion reads the version that a request is about.
func ToVersion(wide *int64) *int {
	if wide == nil {
		return nil
	}
	v := int(*wide)
	return &v
}

// FromAccepted writes the answer to a request.
func FromAccepted(a deployments.Accepted) *api.SubmitResponse {
	return &api.SubmitResponse{Update: FromUpdate(a.Update), Position: int32(a.Position),
		Behind: fromInfoPointer(a.Behind)}
}

// ToAccepted reads the answer to a request.
func ToAccepted(m *api.SubmitResponse) deployments.Accepted {
	return deployments.Accepted{Update: ToUpdate(m.GetUpdate()), Position: int(m.GetPosition()),
		Behind: toInfoPointer(m.GetBehind())}
}

// FromInfo writes what is known of an update.
func FromInfo(u deployments.UpdateInfo) *api.UpdateInfo {
	return &api.UpdateInfo{
		Update: FromUpdate(u.Update), Kind: string(u.Kind), DryRun: u.DryRun, Status: u.Status, Message: u.Message,
		Initiator: u.Initiator, Started: fromTime(u.Started), Ended: fromTime(u.Ended),
		Changes: fromCounts(u.Changes), Resources: int64(u.Resources), Error: u.Error, Kept: u.Kept, Next: u.Next,
		Waiting: u.Waiting, Committed: u.Committed, Cancelling: u.Cancelling, Lease: fromLease(u.Lease),
		Code: string(u.Code), Unbegun: u.Unbegun, Trace: u.Trace, Profile: fromProfileVersion(u.Profile),
	}
}

// ToInfo reads what is known of an update.
func ToInfo(m *api.UpdateInfo) deployments.UpdateInfo {
	return deployments.UpdateInfo{
		Update: ToUpdate(m.GetUpdate()), Kind: engine.Kind(m.GetKind()), DryRun: m.GetDryRun(), Status: m.GetStatus(),
		Message: m.GetMessage(), Initiator: m.GetInitiator(), Started: toTime(m.GetStarted()),
		Ended:   toTime(m.GetEnded()),
		Changes: toCounts(m.GetChanges()), Resources: int(m.GetResources()), Error: m.GetError(), Kept: m.GetKept(),
		Next: m.GetNext(), Waiting: m.GetWaiting(), Committed: m.GetCommitted(),
		Code: deployments.Code(m.GetCode()), Cancelling: m.GetCancelling(), Lease: toLease(m.GetLease()),
		Unbegun: m.GetUnbegun(), Trace: m.GetTrace(), Profile: toProfileVersion(m.GetProfile()),
	}
}

func fromLease(l *deployments.ClientLease) *api.ClientLease {
	if l == nil {
		return nil
	}
	return &api.ClientLease{Heard: fromTime(l.Heard), Ends: fromTime(l.Ends)}
}

func toLease(m *api.ClientLease) *deployments.ClientLease {
	if m == nil {
		return nil
	}
	return &deployments.ClientLease{Heard: toTime(m.GetHeard()), Ends: toTime(m.GetEnds())}
}

func fromInfoPointer(u *deployments.UpdateInfo) *api.UpdateInfo {
	if u == nil {
		return nil
	}
	return FromInfo(*u)
}

func toInfoPointer(m *api.UpdateInfo) *deployments.UpdateInfo {
	if m == nil {
		return nil
	}
	info := ToInfo(m)
	return &info
}

// FromWatchEvent writes an item of an event log.
func FromWatchEvent(e deployments.WatchEvent) (*api.WatchResponse, error) {
	switch {
	case e.Event != nil:
		text, err := eventJSON(e.Event)
		return &api.WatchResponse{Item: &api.WatchResponse_EngineEvent{EngineEvent: text}, Stream: e.Stream}, err
	case e.Progress != nil:
		return &api.WatchResponse{Item: &api.WatchResponse_Progress{Progress: fromProgress(*e.Progress)}}, nil
	default:
		return &api.WatchResponse{Item: &api.WatchResponse_End{End: fromInfoPointer(e.End)}}, nil
	}
}

// ToWatchEvent reads an item of an event log. An item of a kind that this client does not know reads as empty.
func ToWatchEvent(m *api.WatchResponse) (deployments.WatchEvent, error) {
	switch item := m.GetItem().(type) {
	case *api.WatchResponse_EngineEvent:
		event := &apitype.EngineEvent{}
		if err := json.Unmarshal(item.EngineEvent, event); err != nil {
			return deployments.WatchEvent{}, deployments.Errorf(deployments.CodeFormat,
				"the service sent an event that this version of deployctl cannot read: %w", err)
		}
		return deployments.WatchEvent{Event: event, Stream: m.GetStream()}, nil
	case *api.WatchResponse_Progress:
		return deployments.WatchEvent{Progress: toProgress(item.Progress)}, nil
	case *api.WatchResponse_End:
		return deployments.WatchEvent{End: toInfoPointer(item.End)}, nil
	}
	return deployments.WatchEvent{}, nil
}

// maxSentence bounds why an attempt failed, and what a drifted property is: a message has many of them.
const maxSentence = 16 << 10

func fromProgress(p deployments.Progress) *api.Progress {
	return &api.Progress{
		Position: int32(p.Position), Behind: fromInfoPointer(p.Behind), Done: fromCounts(p.Done), Waiting: p.Waiting,
		Phase: fromPhase(p.Phase), Cancelling: p.Cancelling,
		Running: each(p.Running, func(s deployments.RunningStep) *api.RunningStep {
			return &api.RunningStep{
				Urn: s.URN, Step: s.Step, Attempt: int32(s.Attempt), Started: fromTime(s.Started),
				LastError: cutText(s.LastError, maxSentence), NextRetry: fromTime(s.NextRetry), Op: int64(s.Op),
				Ahead: s.Ahead,
			}
		}),
	}
}

func toProgress(m *api.Progress) *deployments.Progress {
	return &deployments.Progress{
		Position: int(m.GetPosition()), Behind: toInfoPointer(m.GetBehind()), Done: toCounts(m.GetDone()),
		Waiting: m.GetWaiting(),
		Phase:   toPhase(m.GetPhase()), Cancelling: m.GetCancelling(),
		Running: each(m.GetRunning(), func(s *api.RunningStep) deployments.RunningStep {
			return deployments.RunningStep{
				URN: s.GetUrn(), Step: s.GetStep(), Attempt: int(s.GetAttempt()), Started: toTime(s.GetStarted()),
				LastError: s.GetLastError(), NextRetry: toTime(s.GetNextRetry()), Op: int(s.GetOp()),
				Ahead: s.GetAhead(),
			}
		}),
	}
}

func fromPhase(p *deployments.Phase) *api.Phase {
	if p == nil {
		return nil
	}
	return &api.Phase{Text: p.Text, Since: fromTime(p.Since)}
}

func toPhase(m *api.Phase) *deployments.Phase {
	if m == nil {
		return nil
	}
	return &deployments.Phase{Text: m.GetText(), Since: toTime(m.GetSince())}
}

func toConfig(m *api.SubmitRequest) map[string]deployments.ConfigValue {
	if len(m.GetConfig()) == 0 {
		return nil
	}
	config := make(map[string]deployments.ConfigValue, len(m.GetConfig()))
	for key, v := range m.GetConfig() {
		config[key] = deployments.ConfigValue{Value: v.GetValue(), Secret: v.GetSecret(), Object: v.GetObject()}
	}
	return config
}
