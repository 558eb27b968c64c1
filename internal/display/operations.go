package display

import "github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

// operation says how a step is shown.
type operation struct {
	sign  string
	color color
	// present, past and plan: "creating", "created", "create".
	present, past, plan string
	// rank orders the steps of one resource: the highest is the one that its row shows.
	rank int
}

// What a refresh finds, as operations of rows.
const (
	opGone    apitype.OpType = "gone"    // the resource is not there any more
	opDrifted apitype.OpType = "drifted" // it is other than the state says
)

// opRetain is the deletion of a resource with retainOnDelete: it leaves the state, and nothing else happens to it.
const opRetain apitype.OpType = "retain"

// operations is the table of steps. Steps that are not in it are shown by their name.
var operations = map[apitype.OpType]operation{
	apitype.OpSame:   {" ", none, "checking", "unchanged", "keep", 0},
	apitype.OpCreate: {"+", green, "creating", "created", "create", 3},
	apitype.OpUpdate: {"~", yellow, "updating", "updated", "update", 3},
	apitype.OpDelete: {"-", red, "deleting", "deleted", "delete", 3},
	opRetain: {"-", yellow, "removing from the state only", "removed" + fromStateOnly, "remove" +
		fromStateOnly, 3},
	apitype.OpReplace:           {"±", magenta, "replacing", "replaced", "replace", 6},
	apitype.OpCreateReplacement: {"±", magenta, "creating replacement", "created replacement", "replace", 5},
	apitype.OpDeleteReplaced:    {"±", magenta, "deleting original", "deleted original", "delete original", 4},
	apitype.OpRead:              {"<", cyan, "reading", "read", "read", 2},
	apitype.OpReadReplacement:   {"<", cyan, "reading replacement", "read replacement", "read", 5},
	apitype.OpRefresh:           {"~", cyan, "refreshing", "refreshed", "refresh", 1},
	opGone:                      {"-", yellow, "refreshing", "gone", "gone", 2},
	opDrifted:                   {"~", yellow, "refreshing", "changed outside", "changed outside", 2},
	apitype.OpReadDiscard:       {"-", red, "discarding", "discarded", "discard", 2},
	apitype.OpDiscardReplaced:   {"-", red, "discarding original", "discarded original", "discard", 2},
	apitype.OpRemovePendingReplace: {"-", red, "finishing replacement", "finished replacement", "finish replacement",
		2},
	apitype.OpImport:            {"=", cyan, "importing", "imported", "import", 3},
	apitype.OpImportReplacement: {"=", magenta, "importing replacement", "imported replacement", "import", 5},
}

const fromStateOnly = " from the state only (retainOnDelete)"

// shownOp is the operation that a step is shown as.
func shownOp(m apitype.StepEventMetadata) apitype.OpType {
	if m.Op == apitype.OpDelete && m.Old != nil && m.Old.RetainOnDelete {
		return opRetain
	}
	return m.Op
}

// operation says how the step that a row is about is shown: of a replacement, also what becomes of the original.
func (r *Row) operation(op apitype.OpType) operation {
	o := operationOf(op)
	replaced := r.metadata.Old != nil && r.metadata.Old.RetainOnDelete
	switch {
	case op == apitype.OpDeleteReplaced && replaced:
		o.present, o.past, o.plan = "removing original"+fromStateOnly, "removed original"+fromStateOnly,
			"remove original"+fromStateOnly
	case op != apitype.OpReplace && op != apitype.OpCreateReplacement:
	case replaced:
		o.plan += ": the original stays (retainOnDelete)"
	case r.deletesFirst:
		o.plan += ": delete, then create"
	}
	return o
}

// halves are the steps that a replacement consists of.
var halves = map[apitype.OpType]bool{
	apitype.OpCreateReplacement: true, apitype.OpReadReplacement: true, apitype.OpDeleteReplaced: true,
}

func operationOf(op apitype.OpType) operation {
	if known, ok := operations[op]; ok {
		return known
	}
	name := string(op)
	return operation{"*", none, name, name, name, 2}
}

// summaryOrder is how changes are listed at the end.
var summaryOrder = []apitype.OpType{
	apitype.OpCreate, apitype.OpUpdate, apitype.OpReplace, apitype.OpDelete, opRetain, opDrifted, opGone,
	apitype.OpImport, apitype.OpRead, apitype.OpRefresh, apitype.OpSame,
}
