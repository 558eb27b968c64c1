package grpcapi

import (
	"crypto/tls"
	"net"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/doors"
)

// Listen opens the address as Open does. Tokens and secrets travel over it, so without TLS it must be on loopback
// (CodeInvalid).
func Listen(address string, tlsConfig *tls.Config) (net.Listener, error) {
	if tlsConfig == nil && !IsLoopback(address) {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			"%s is not on loopback, so the service must use TLS: give a certificate (--tls-cert) and its key "+
				"(--tls-key), or listen on 127.0.0.1", address)
	}
	listener, err := Open(address)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeUnavailable, "cannot listen on %s: %w", address, err)
	}
	return listener, nil
}

// Open listens on HOST:PORT. The name localhost is opened at both of its addresses, or not at all: clients call
// whichever they try first, and nobody else shall listen there.
func Open(address string) (net.Listener, error) { return doors.Open(address) }

// IsLoopback says whether HOST:PORT can be reached from this machine only. A name is loopback only if it is localhost.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		host = address
	}
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}
