// Package state has the commands for the resources in a stack's state: they list, draw, explain and edit them.
package state
