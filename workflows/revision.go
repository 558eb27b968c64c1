package workflows

import "strconv"

// The linker replaces these texts (-X) in a build of another revision, whose workflows do not replay the histories of
// this one. Only tests of upgrades have such a build.
var revision, oldest, perSave = "2", "1", "500"

var (
	// Revision is the number of the workflow code. It is raised with every release whose workflows differ; the
	// histories of each revision are kept and must replay for as long as such workflows may run.
	Revision = number(revision)
	// oldestCompatible is the first revision whose updates this one can continue; its behaviour is kept behind
	// workflow.GetVersion.
	oldestCompatible = number(oldest)
	// saveItems limits the number of deltas and of events in one save.
	saveItems = number(perSave)
)

// number reads a number that only a build can have set.
func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic("built with a revision that is no number: " + err.Error())
	}
	return n
}
