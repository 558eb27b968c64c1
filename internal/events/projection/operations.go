package projection

import "github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

// What a refresh finds, as operations of rows.
const (
	OpGone    apitype.OpType = "gone"    // the resource is not there any more
	OpDrifted apitype.OpType = "drifted" // it is other than the state says
)

// OpRetain is the deletion of a resource with retainOnDelete: it leaves the state, and nothing else happens to it.
const OpRetain apitype.OpType = "retain"

// rank orders the steps of one resource: its row shows the one with the highest rank. All others have unknownRank.
var rank = map[apitype.OpType]int{
	apitype.OpSame:    0,
	apitype.OpRefresh: 1,
	apitype.OpRead:    2, OpGone: 2, OpDrifted: 2, apitype.OpReadDiscard: 2, apitype.OpDiscardReplaced: 2,
	apitype.OpRemovePendingReplace: 2,
	apitype.OpCreate:               3, apitype.OpUpdate: 3, apitype.OpDelete: 3, OpRetain: 3, apitype.OpImport: 3,
	apitype.OpDeleteReplaced:    4,
	apitype.OpCreateReplacement: 5, apitype.OpReadReplacement: 5, apitype.OpImportReplacement: 5,
	apitype.OpReplace: 6,
}

const unknownRank = 2

func rankOf(op apitype.OpType) int {
	if n, ok := rank[op]; ok {
		return n
	}
	return unknownRank
}

// shownOp returns the operation that a step is shown as: OpRetain for a delete that removes only the state.
func shownOp(m apitype.StepEventMetadata) apitype.OpType {
	if m.Op == apitype.OpDelete && m.Old != nil && m.Old.RetainOnDelete {
		return OpRetain
	}
	return m.Op
}

// ReplacementSteps are the steps that a replacement consists of.
var ReplacementSteps = map[apitype.OpType]bool{
	apitype.OpCreateReplacement: true, apitype.OpReadReplacement: true, apitype.OpDeleteReplaced: true,
}
