package servers

import "go.temporal.io/server/common/dynamicconfig"

// unlimited is a rate that one machine cannot reach.
const unlimited = 1_000_000

// Tuning is the server's dynamic configuration for one user on one machine. The defaults are made for shared clusters.
func Tuning() dynamicconfig.StaticClient {
	return dynamicconfig.StaticClient{
		// Each queue of the one shard is polled 20 times a second by default: 41 ms for an activity instead of 6.
		dynamicconfig.TransferProcessorMaxPollRPS.Key():   unlimited,
		dynamicconfig.TimerProcessorMaxPollRPS.Key():      unlimited,
		dynamicconfig.VisibilityProcessorMaxPollRPS.Key(): unlimited,
		dynamicconfig.OutboundProcessorMaxPollRPS.Key():   unlimited,

		// A cancelled activity hears of it at once, not at its next heartbeat.
		dynamicconfig.EnableCancelActivityWorkerCommand.Key(): true,
		dynamicconfig.WorkerCommandsEnabled.Key():             true,

		// Interactive updates before scheduled ones, and no organisation before another.
		dynamicconfig.MatchingEnableFairness.Key(): true,

		// Partitions spread a task queue over hosts; there is one host.
		dynamicconfig.MatchingNumTaskqueueReadPartitions.Key():  1,
		dynamicconfig.MatchingNumTaskqueueWritePartitions.Key(): 1,

		// Code must live within 10 Updates in flight and 2,000 in all, as other clusters have it; here they only cost
		// retries.
		dynamicconfig.WorkflowExecutionMaxInFlightUpdates.Key(): 500,
		dynamicconfig.WorkflowExecutionMaxTotalUpdates.Key():    20_000,

		// Nothing is sent to anybody: by default the server reports its version to its makers once a day.
		dynamicconfig.EnableServerVersionCheck.Key(): false,

		// Rates that protect tenants from each other.
		dynamicconfig.FrontendRPS.Key():                                         unlimited,
		dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():                  unlimited,
		dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key():        unlimited,
		dynamicconfig.FrontendMaxNamespaceVisibilityBurstRatioPerInstance.Key(): 1.0,
		dynamicconfig.FrontendPersistenceMaxQPS.Key():                           unlimited,
		dynamicconfig.MatchingRPS.Key():                                         unlimited,
		dynamicconfig.MatchingPersistenceMaxQPS.Key():                           unlimited,
		dynamicconfig.HistoryRPS.Key():                                          unlimited,
		dynamicconfig.HistoryPersistenceMaxQPS.Key():                            unlimited,
	}
}
