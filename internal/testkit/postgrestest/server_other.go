//go:build !unix

package postgrestest

import "errors"

// Server is a server on a loopback port.
type Server struct{ Address, Log string }

// ErrNone is that there is no server to start.
var ErrNone = errors.New("a PostgreSQL server is started on Unix alone")

// Durable are no settings.
var Durable []string

// Start starts none.
func Start() (*Server, error) { return nil, ErrNone }

// StartWith starts none.
func StartWith(...string) (*Server, error) { return nil, ErrNone }

// Launch starts none.
func (*Server) Launch() error { return ErrNone }

// Crash does nothing.
func (*Server) Crash() error { return ErrNone }

// Stop does nothing.
func (*Server) Stop() {}
