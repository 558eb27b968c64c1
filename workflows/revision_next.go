//go:build nextrevision

package workflows

// A build of another revision, whose workflows do not replay the histories of this one, for tests of upgrades.
const (
	Revision         = 2
	oldestCompatible = 2
	saveItems        = 5
)
