//go:build nextrevision

package workflows

// A build of another revision, which does not do what the histories of this one say: for tests of upgrades.
const (
	Revision  = 2
	since     = 2
	saveItems = 5
)
