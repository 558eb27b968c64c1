// Package gitsource gets projects from git repositories. What talks to a git server and reads what is in its repository
// is a process of its own, which a worker starts in the sandbox of the organization: Fetch and Pack start it, Main is
// it. It is this binary under the name Name.
//
// The process gets its orders, credentials among them, on its standard input: they are in no argument, no environment
// and no file. It has no git and no ssh executable beside it, so there are no hooks, no configuration of a user and no
// other protocols. Submodules are not fetched.
package gitsource
