//go:build !linux

package porttest

import (
	"io"
	"net"
)

// reserve only finds a port that is free now: other kernels let nobody listen on a port that is bound.
func reserve() (address string, reservation io.Closer, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	return listener.Addr().String(), io.NopCloser(nil), listener.Close()
}
