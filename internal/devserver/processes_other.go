//go:build !linux

package devserver

import "net"

// portOwner names the process that listens on a port; only Linux tells.
func portOwner(int) string { return "" }

// hasLocked is always true here: only Linux tells who holds a lock.
func hasLocked(int, string) bool { return true }

// strange is never true here: only Linux tells whose a connection is.
func strange(net.Conn) bool { return false }
