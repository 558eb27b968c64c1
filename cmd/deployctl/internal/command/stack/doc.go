// Package stack has the commands for stacks as wholes: which there are, which one is selected, their versions, outputs
// and tags.
package stack
