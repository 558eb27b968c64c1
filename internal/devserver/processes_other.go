//go:build !linux

package devserver

// portOwner names the process that listens on a port; only Linux tells.
func portOwner(int) string { return "" }

// hasOpen is always true here: only Linux tells which files a process has open.
func hasOpen(int, string) bool { return true }
