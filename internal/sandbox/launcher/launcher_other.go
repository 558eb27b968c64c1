//go:build !linux

package launcher

// Secluded is false here: see the other one.
func Secluded() bool { return false }
