// Package update has the commands that make updates and previews, and those that follow, end or answer one.
//
// An update has one way: newRequest reads the flags, confirmAndRun previews and asks, submit submits what was
// confirmed, and follow shows it until its end.
package update
