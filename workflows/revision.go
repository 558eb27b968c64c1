//go:build !nextrevision

package workflows

// Revision numbers what the workflows do. It is raised with every release whose workflows differ; the histories of each
// revision are kept and must replay for as long as such workflows may run.
const Revision = 1

// since is the first revision whose updates this one can go on with: its ways are kept behind workflow.GetVersion.
const since = 1

// saveItems bounds one save.
const saveItems = 500
