package postgres

import "github.com/deployctl/deployctl/provider"

// ModuleThrough is Module with its calls to the server passing through a function.
func ModuleThrough(through func(what string, do func() error) error) provider.Module {
	return module(through)
}

// Verifies says whether a verifier is one of a password.
func Verifies(stored, password string) bool { return verifies(stored, password) }
