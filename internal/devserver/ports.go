package devserver

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strconv"
	"syscall"

	"github.com/deployctl/deployctl/internal/sys/doors"
)

// Ports are the loopback ports of one home: chosen at its first start and kept, so that addresses survive restarts.
type Ports struct {
	Temporal int `json:"temporal"` // Temporal's gRPC frontend
	UI       int `json:"ui"`       // Temporal's Web UI
	S3       int `json:"s3"`
	API      int `json:"api"`    // deployctl's own gRPC API; reserved here, served by the caller
	Pulumi   int `json:"pulumi"` // the Pulumi Service API, likewise, when its usual port is taken
}

// webUI is what the Web UI's port is for. It is opened at both addresses of localhost, because browsers take a name
// below that for either.
const webUI = "the Web UI"

// Ports are chosen from below the ranges that systems give to outgoing connections (Linux from 32768, macOS from
// 49152): one of those may hold a port at the moment the service wants it back.
const lowestPort, highestPort = 20000, 31000

// Ports that are chosen anew at every start come from a range of their own, so that they are never what another home
// keeps.
const lowestInner, highestInner = highestPort, 32700

// attempts are how many ports are tried before there is no free one.
const attempts = 1000

// address is a loopback address. Nothing here ever listens on another but on uiAddress.
func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// openPort opens a port to this user and root. Nothing else here opens a port: whoever else could connect would take
// what connections cost, if nothing more.
func openPort(port int) (net.Listener, error) { return doors.ListenSameUser(address(port)) }

// openInner opens a port that is chosen now. It is not tried first: a child that is being started meanwhile may have
// what tried it, and the port with it, until it executes its program.
func openInner() (l net.Listener, err error) {
	for range attempts {
		if l, err = openPort(lowestInner + rand.IntN(highestInner-lowestInner)); !errors.Is(err, syscall.EADDRINUSE) {
			return l, err
		}
	}
	return nil, fmt.Errorf("find a free port between %d and %d: %w", lowestInner, highestInner, err)
}

// openUI opens the port of the Web UI likewise.
func openUI(port int) (net.Listener, error) { return doors.ListenSameUser(uiAddress(port)) }

func uiAddress(port int) string { return net.JoinHostPort("localhost", strconv.Itoa(port)) }

// each calls f for every port with its owner's name, in a fixed order.
func (p *Ports) each(f func(name string, port *int) error) error {
	for _, x := range []struct {
		name string
		port *int
	}{
		{"the Temporal server", &p.Temporal}, {webUI, &p.UI}, {"the S3 server", &p.S3},
		{"deployctl's API", &p.API}, {"the Pulumi Service API", &p.Pulumi},
	} {
		if err := f(x.name, x.port); err != nil {
			return err
		}
	}
	return nil
}

// reserved are ports that this process has chosen and does not listen on yet. Each is held by a UDP socket, which no
// other chooser gets, and which ends with the process however that ends.
type reserved []net.PacketConn

// choose reserves a port between two on which nobody listens.
func (r *reserved) choose(lowest, highest int) (int, error) {
	for range attempts {
		port := lowest + rand.IntN(highest-lowest)
		socket, err := net.ListenPacket("udp", address(port))
		if err != nil {
			continue
		}
		if listenableUI(port) == nil {
			*r = append(*r, socket)
			return port, nil
		}
		_ = socket.Close()
	}
	return 0, fmt.Errorf("no free port between %d and %d on 127.0.0.1", lowest, highest)
}

func (r *reserved) release() {
	for _, socket := range *r {
		_ = socket.Close()
	}
	*r = nil
}

// keep holds a port that was chosen before, as far as it can be held: whoever has its UDP socket may not want the port.
func (r *reserved) keep(port int) {
	if socket, err := net.ListenPacket("udp", address(port)); err == nil {
		*r = append(*r, socket)
	}
}

// ensurePorts reads the ports of h; wanted ones take their place, missing ones are chosen. All are reserved in r. The
// caller holds lockHome.
func ensurePorts(h home, wanted Ports, r *reserved) (Ports, error) {
	var kept Ports
	if _, err := readJSON(h.ports(), &kept); err != nil {
		return kept, err
	}
	ports := Ports{
		Temporal: cmp.Or(wanted.Temporal, kept.Temporal),
		UI:       cmp.Or(wanted.UI, kept.UI),
		S3:       cmp.Or(wanted.S3, kept.S3),
		API:      cmp.Or(wanted.API, kept.API),
		Pulumi:   cmp.Or(wanted.Pulumi, kept.Pulumi),
	}
	_ = ports.each(func(_ string, port *int) error {
		if *port != 0 {
			r.keep(*port)
		}
		return nil
	})
	err := ports.each(func(_ string, port *int) (err error) {
		if *port == 0 {
			*port, err = r.choose(lowestPort, highestPort)
		}
		return err
	})
	if err != nil || ports == kept {
		return ports, err
	}
	return ports, writeJSON(h.ports(), ports)
}

// listenable says why nobody can listen on a loopback port now, or nil.
func listenable(port int) error { return tryListen(address(port)) }

// listenableUI says so for both addresses of localhost.
func listenableUI(port int) error { return tryListen(uiAddress(port)) }

func tryListen(address string) error {
	l, err := doors.Open(address)
	if err != nil {
		return err
	}
	return l.Close()
}

// checkPorts fails when a port of h is taken, naming who has it and what to do.
func checkPorts(h home, ports Ports) error {
	return ports.each(func(name string, port *int) error { return checkPort(h, name, *port) })
}

func checkPort(h home, name string, port int) error {
	try := listenable
	if name == webUI {
		try = listenableUI
	}
	err := try(port)
	if err == nil {
		return nil
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen for %s: %w", name, err)
	}
	return &PortTakenError{Port: port, Use: name, Owner: PortOwner(port), file: h.ports()}
}

// PortOwner names who listens on a loopback port, with the user if that is another one: "another process" where the
// system does not tell more.
func PortOwner(port int) string {
	owner := cmp.Or(portOwner(port), "another process")
	uids, _ := doors.Holders(port)
	if i := slices.IndexFunc(uids, func(uid int) bool { return uid != os.Getuid() }); i >= 0 {
		owner += " of " + doors.User(uids[i])
	}
	return owner
}

// PortTakenError says that a port which a home has kept is in use by somebody else.
type PortTakenError struct {
	Port  int
	Use   string // what the port is for
	Owner string // who has it, as PortOwner says
	file  string
}

func (e *PortTakenError) Error() string {
	return fmt.Sprintf("port %d, which is kept for %s, is taken by %s: end that process, or delete %s to have new "+
		"ports chosen",
		e.Port, e.Use, e.Owner, e.file)
}
