package display

import (
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// operation describes how a step is shown.
type operation struct {
	sign  string
	color color
	// present, past and plan: "creating", "created", "create".
	present, past, plan string
}

// operations is the table of steps. A step that is not in it is shown by its name.
var operations = map[apitype.OpType]operation{
	apitype.OpSame:   {" ", none, "checking", "unchanged", "keep"},
	apitype.OpCreate: {"+", green, "creating", "created", "create"},
	apitype.OpUpdate: {"~", yellow, "updating", "updated", "update"},
	apitype.OpDelete: {"-", red, "deleting", "deleted", "delete"},
	projection.OpRetain: {"-", yellow, "removing from the state only", "removed" + fromStateOnly,
		"remove" + fromStateOnly},
	apitype.OpReplace:              {"±", magenta, "replacing", "replaced", "replace"},
	apitype.OpCreateReplacement:    {"±", magenta, "creating replacement", "created replacement", "replace"},
	apitype.OpDeleteReplaced:       {"±", magenta, "deleting original", "deleted original", "delete original"},
	apitype.OpRead:                 {"<", cyan, "reading", "read", "read"},
	apitype.OpReadReplacement:      {"<", cyan, "reading replacement", "read replacement", "read"},
	apitype.OpRefresh:              {"~", cyan, "refreshing", "refreshed", "refresh"},
	projection.OpGone:              {"-", yellow, "refreshing", "gone", "gone"},
	projection.OpDrifted:           {"~", yellow, "refreshing", "changed outside", "changed outside"},
	apitype.OpReadDiscard:          {"-", red, "discarding", "discarded", "discard"},
	apitype.OpDiscardReplaced:      {"-", red, "discarding original", "discarded original", "discard"},
	apitype.OpRemovePendingReplace: {"-", red, "finishing replacement", "finished replacement", "finish replacement"},
	apitype.OpImport:               {"=", cyan, "importing", "imported", "import"},
	apitype.OpImportReplacement:    {"=", magenta, "importing replacement", "imported replacement", "import"},
}

const fromStateOnly = " from the state only (retainOnDelete)"

// operationOfRow returns how a row's step is shown. For a replacement the texts also say what happens to the original.
func operationOfRow(r *projection.Row, op apitype.OpType) operation {
	o := operationOf(op)
	replaced := r.Metadata.Old != nil && r.Metadata.Old.RetainOnDelete
	switch {
	case op == apitype.OpDeleteReplaced && replaced:
		o.present, o.past, o.plan = "removing original"+fromStateOnly, "removed original"+fromStateOnly,
			"remove original"+fromStateOnly
	case op != apitype.OpReplace && op != apitype.OpCreateReplacement:
	case replaced:
		o.plan += ": the original stays (retainOnDelete)"
	case r.DeletesFirst:
		o.plan += ": delete, then create"
	}
	return o
}

func operationOf(op apitype.OpType) operation {
	if known, ok := operations[op]; ok {
		return known
	}
	name := string(op)
	return operation{"*", none, name, name, name}
}

// summaryOrder is the order of changes in the summary.
var summaryOrder = []apitype.OpType{
	apitype.OpCreate, apitype.OpUpdate, apitype.OpReplace, apitype.OpDelete, projection.OpRetain, projection.OpDrifted,
	projection.OpGone,
	apitype.OpImport, apitype.OpRead, apitype.OpRefresh, apitype.OpSame,
}
