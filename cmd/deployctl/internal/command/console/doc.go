// Package console is what the groups of commands share: the environment of a command (Env), one run of it (Session),
// the flags that several groups have, the stack and the resources that a user means, questions, tables, and exit codes.
//
// What one group alone needs belongs to that group. Nothing here knows a command, and the groups that use one another
// do so directly: update removes a stack as package stack does.
package console
