// Package launcher is what this binary does under another name: it takes orders over a socket, becomes one process of a
// sandbox, and then the command that runs there. It also takes the environment of a service's process out of reach; see
// Secluded.
//
// Both happen while the packages of the binary are being initialized. Those that this one imports come before it, and
// with each that is imported late (path/filepath, os/exec, os/user) some hundred others do, so that starting a process
// takes twice as long: import nothing but what is imported already.
package launcher

import "syscall"

// Name is the name under which this binary is the launcher.
const Name = "deployctl-launcher"

// Outer is the argument of a launcher that starts another one in namespaces of its own, and ends. The worker does not
// do that itself: a process that is to have a user namespace is forked with a copy of the memory of who starts it, and
// the launcher's is small.
const Outer = "outer"

// Orders are what the launcher is told over a socket, its descriptor 3, before it is told the command: neither its
// arguments nor its environment are the command's.
type Orders struct {
	Limits Limits
	// Confine: the launcher is in namespaces of its own, in which the command is to have a View.
	Confine bool
	View    View
	// UID and GID are those that the command is to have in the user namespace: the ones that it has outside.
	UID, GID int
	// Parent is the process with whose end the launcher, and the command, is to end by DeathSignal; 0: none.
	Parent      int
	DeathSignal syscall.Signal
}

// View is what a command sees of the file system: all of it, and nothing that it could change, except at some places.
// A place comes before those below it. Its path has no links.
type View []Place

// Place is a file or directory of a View.
type Place struct {
	Path   string
	Access Access
	// From is what is found there instead; empty: what lies there.
	From string
}

// Access is what a command can do at a place.
type Access int

// The accesses. What is Hidden looks empty, and nothing can be put there. Layered is a directory that the command can
// change for itself alone: it finds its changes again, nobody else does, and they are kept in From until somebody
// removes it.
const (
	Hidden Access = iota
	Readable
	Writable
	Layered
)

// Limits bound each process of a sandbox; Processes bounds all that its user, or its user namespace, has. Zero is no
// limit.
type Limits struct {
	Memory    uint64 // bytes of private memory
	Processes uint64 // and threads
	Files     uint64 // open at a time
	FileSize  uint64 // bytes of one file that is written
	CPU       uint64 // seconds of processor time
}

// Begun is what an outer launcher answers: the process that it has started, which is a child of the worker's, too.
type Begun struct {
	PID int
	Failure
}

// Command is what the launcher becomes.
type Command struct {
	Path string // empty: nothing is started, it is a probe
	Args []string
	Env  []string
	Dir  string
}

// Failure is what the launcher says when it could not become the command.
type Failure struct {
	Step  string // empty: the command itself could not be executed
	Errno syscall.Errno
}
