//go:build !linux

package devserver

// portOwner names the process that listens on a port; only Linux tells.
func portOwner(int) string { return "" }

// hasLocked is always true here: only Linux tells who holds a lock.
func hasLocked(int, string) bool { return true }
