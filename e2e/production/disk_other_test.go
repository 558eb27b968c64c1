//go:build !linux

package production

import "testing"

// mount gives none: there is no small disk for a test.
func (*service) mount(*testing.T) string { return "" }

// fill skips the test.
func (*service) fill(t *testing.T) (empty func()) {
	t.Helper()
	t.Skip("a disk that can be filled needs Linux")
	return nil
}
