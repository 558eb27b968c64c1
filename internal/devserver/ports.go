package devserver

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// Ports are the loopback ports of one home: chosen at its first start and kept, so that addresses survive restarts.
type Ports struct {
	Temporal int `json:"temporal"` // Temporal's gRPC frontend
	UI       int `json:"ui"`       // Temporal's Web UI
	S3       int `json:"s3"`
	API      int `json:"api"`   // deployctl's own gRPC API; reserved here, served by the caller
	Codec    int `json:"codec"` // the Web UI's codec endpoint; reserved here, served by the caller
}

// Ports are chosen from below the ranges that systems give to outgoing connections (Linux from 32768, macOS from 49152): one
// of those may hold a port at the moment the service wants it back.
const lowestPort, highestPort = 20000, 32000

// address is a loopback address. Nothing here ever listens on another.
func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// each calls f for every port with its owner's name, in a fixed order.
func (p *Ports) each(f func(name string, port *int) error) error {
	for _, x := range []struct {
		name string
		port *int
	}{
		{"the Temporal server", &p.Temporal}, {"the Web UI", &p.UI}, {"the S3 server", &p.S3},
		{"deployctl's API", &p.API}, {"the codec endpoint", &p.Codec},
	} {
		if err := f(x.name, x.port); err != nil {
			return err
		}
	}
	return nil
}

// ensurePorts reads the ports of h; wanted ones take their place, missing ones are chosen. The caller holds lockHome.
func ensurePorts(h home, wanted Ports) (Ports, error) {
	var kept Ports
	if _, err := readJSON(h.ports(), &kept); err != nil {
		return kept, err
	}
	ports := Ports{
		Temporal: cmp.Or(wanted.Temporal, kept.Temporal),
		UI:       cmp.Or(wanted.UI, kept.UI),
		S3:       cmp.Or(wanted.S3, kept.S3),
		API:      cmp.Or(wanted.API, kept.API),
		Codec:    cmp.Or(wanted.Codec, kept.Codec),
	}
	taken := map[int]bool{ports.Temporal: true, ports.UI: true, ports.S3: true, ports.API: true, ports.Codec: true}
	err := ports.each(func(_ string, port *int) (err error) {
		if *port == 0 {
			*port, err = freePort(taken)
		}
		return err
	})
	if err != nil || ports == kept {
		return ports, err
	}
	return ports, writeJSON(h.ports(), ports)
}

// freePort finds a port on which nobody listens and which is not in taken, and adds it there.
func freePort(taken map[int]bool) (int, error) {
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if !taken[port] && listenable(port) == nil {
			taken[port] = true
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d on 127.0.0.1", lowestPort, highestPort)
}

// listenable says why nobody can listen on a loopback port now, or nil.
func listenable(port int) error {
	l, err := net.Listen("tcp", address(port))
	if err != nil {
		return err
	}
	return l.Close()
}

// checkPorts fails when a port of h is taken, naming who has it and what to do.
func checkPorts(h home, ports Ports) error {
	return ports.each(func(name string, port *int) error {
		err := listenable(*port)
		if err == nil {
			return nil
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			return fmt.Errorf("listen for %s: %w", name, err)
		}
		return &PortTakenError{Port: *port, Use: name, Owner: portOwner(*port), file: h.ports()}
	})
}

// PortTakenError says that a port which a home has kept is in use by somebody else.
type PortTakenError struct {
	Port  int
	Use   string // what the port is for
	Owner string // who has it, or empty where that cannot be told
	file  string
}

func (e *PortTakenError) Error() string {
	owner := e.Owner
	if owner == "" {
		owner = "another process"
	}
	return fmt.Sprintf("port %d, which is kept for %s, is taken by %s: end that process, or delete %s to have new ports chosen",
		e.Port, e.Use, owner, e.file)
}
