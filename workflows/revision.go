//go:build !nextrevision

package workflows

// Revision is the number of the workflow code. It is raised with every release whose workflows differ; the histories of
// each revision are kept and must replay for as long as such workflows may run.
const Revision = 1

// oldestCompatible is the first revision whose updates this one can continue; its behaviour is kept behind
// workflow.GetVersion.
const oldestCompatible = 1

// saveItems limits the number of deltas and of events in one save.
const saveItems = 500
