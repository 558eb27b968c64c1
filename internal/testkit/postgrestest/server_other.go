//go:build !unix

package postgrestest

import "errors"

// Server is a server on a loopback port.
type Server struct{ Address, Log string }

// ErrNone is that there is no server to start.
var ErrNone = errors.New("a PostgreSQL server is started on Unix alone")

// Start starts none.
func Start() (*Server, error) { return nil, ErrNone }

// Stop does nothing.
func (*Server) Stop() {}
