package deployments

// NamesSince is the revision of the workflows that first gave activities and signals their present names. A workflow
// that an earlier revision began goes on with the names of that time: a replay compares them.
const NamesSince = 2

// former are the names of activities and signals before NamesSince.
var former = map[string]string{
	ActivityReadHead: "Head", ActivityClaimStack: "Claim", ActivityReadHeaders: "Headers",
	ActivityCommitUpdate: "Settled", ActivityTerminateRun: "Stop", ActivityRecoverUpdate: "Recover",
	ActivityAddToHistory: "Enter", ActivitySpillPart: "PutAside", ActivityLoadSpilledPart: "TakeUp",
	ActivityAwaitWorkflow: "Ended", ActivitySubmitUpdate: "Submit", ActivityAwaitUpdate: "Follow",
	ActivityReportDrift: "Compile",

	ActivityRunProgram: "Program", ActivityPlanResources: "Plan", ActivityPlanCascade: "Cascade",
	ActivityCompareProviders: "Compare", ActivityRunHook: "Hook", ActivityRefreshResources: "Refresh",
	ActivityAskFormerWorker: "Inquire", ActivityEndSession: "Release", ActivityPingWorker: "Ping",

	ActivityRemoveDestroyedStack: "RemoveDestroyed", ActivityDeliverEvent: "Deliver",

	SignalFinished: "settled", SignalLost: "lost", SignalReached: "reached",
}

// present are the present names, by the former ones.
var present = func() map[string]string {
	names := map[string]string{}
	for now, then := range former {
		names[then] = now
	}
	return names
}()

// FormerName returns the name that an activity or a signal had before NamesSince.
func FormerName(name string) string {
	if then, ok := former[name]; ok {
		return then
	}
	return name
}

// PresentName returns the name of an activity, or of a signal, that may be called by its former one, as in a history.
func PresentName(name string) string {
	if now, ok := present[name]; ok {
		return now
	}
	return name
}
