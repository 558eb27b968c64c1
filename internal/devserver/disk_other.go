//go:build !linux && !darwin

package devserver

// room tells nothing here.
func room(string) (free, files uint64, told bool) { return 0, 0, false }
