package cluster

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
)

// reserved are addresses that nobody else gets, also while no part listens on them.
type reserved []io.Closer

// address reserves one.
func (r *reserved) address() (string, error) {
	address, reservation, err := porttest.Reserve()
	if err == nil {
		*r = append(*r, reservation)
	}
	return address, err
}

// two reserves two.
func (r *reserved) two() (one, another string, err error) {
	one, err = r.address()
	if err != nil {
		return "", "", err
	}
	another, err = r.address()
	return one, another, err
}

// Close gives them up.
func (r *reserved) Close() error {
	var err error
	for _, reservation := range *r {
		err = errors.Join(err, reservation.Close())
	}
	*r = nil
	return err
}

// portsFile is where the embedded service with a directory looks for its ports.
func portsFile(state string) string { return filepath.Join(state, "data", "ports.json") }

// KeepPorts gives the embedded service with that directory, which has never started, ports that nobody else gets
// until the reservation is closed: of many services that start and are killed at once, one would now and then choose
// a port that another has just left.
func KeepPorts(state string) (reservation io.Closer, err error) {
	r, ports := &reserved{}, map[string]int{}
	for _, name := range []string{"temporal", "ui", "s3", "api", "pulumi"} {
		address, err := r.address()
		if err != nil {
			return nil, errors.Join(err, r.Close())
		}
		_, port, _ := net.SplitHostPort(address) // it has a port
		ports[name], _ = strconv.Atoi(port)
	}
	text, err := json.Marshal(ports)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(portsFile(state)), 0o700)
	}
	if err == nil {
		err = os.WriteFile(portsFile(state), text, 0o600)
	}
	if err != nil {
		return nil, errors.Join(err, r.Close())
	}
	return r, nil
}

// keepPorts is KeepPorts for the home of an environment, unless that has ports.
func keepPorts(env []string) (r reserved, err error) {
	state := ""
	for _, variable := range env {
		if dir, is := strings.CutPrefix(variable, "XDG_STATE_HOME="); is {
			state = filepath.Join(dir, "deployctl")
		}
	}
	if state == "" {
		return nil, errors.New("the environment of a cluster needs XDG_STATE_HOME")
	}
	if _, err := os.Stat(portsFile(state)); !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	reservation, err := KeepPorts(state)
	return reserved{reservation}, err
}
