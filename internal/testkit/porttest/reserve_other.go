//go:build !linux

package porttest

import (
	"fmt"
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

// reserveLow only finds a port that is free now, too.
func reserveLow() (address string, reservation io.Closer, err error) {
	for port := highestLow; port >= lowestLow; port-- {
		listener, failed := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port))
		if err = failed; err == nil {
			return listener.Addr().String(), io.NopCloser(nil), listener.Close()
		}
	}
	return "", nil, err
}
