// Package diskspace tells how much room a disk has left.
package diskspace

// Space is the room of a file system.
type Space struct {
	Total, Free uint64 // bytes; what is free is what this user may still write
	FreeFiles   uint64 // how many more files it can hold
}
