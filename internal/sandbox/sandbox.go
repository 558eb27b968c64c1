// Package sandbox keeps what a worker runs for others (programs, plugins, installations, commands) apart from the
// worker and from what it runs for other organizations.
//
// A Policy is how one worker does that; a Box is what the processes of one update are started in. On Linux a process of
// a Box starts as this binary under another name: the launcher, which applies limits and hides files, and then becomes
// the command; Spare ones are started before it is known what command. Two modes stand behind it. Under RunAs every
// organization has a user id of its own. Under Namespace processes keep the worker's user id, but live in a user
// namespace without any privilege, from which no process outside can be read or traced, and in a mount namespace
// without the service's own files. See docs/sandbox.md.
//
// Below it:
//
//   - launcher: what this binary is before it becomes a process of a box
//   - process: starts and ends the processes of plugins, in boxes
//   - process/guard: ends them if the worker is killed (ADR 0041)
//   - remote: fetches remote assets and archives
package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"sync/atomic"
)

// Mode is a way to keep processes apart.
type Mode string

// The modes. Auto is RunAs if Options.RunAs says whom, else Namespace if the system has it, else Off.
const (
	Auto      Mode = "auto"
	RunAs     Mode = "run-as"
	Namespace Mode = "namespace"
	Off       Mode = "off"
)

// Options are the settings of a worker's sandbox.
type Options struct {
	Mode Mode
	// RunAs is a user, by name or id, or a range FIRST-LAST of user ids of which every organization gets one.
	RunAs string
	// Record is the file that remembers which organization has which id of a range.
	Record string
	// Hide are files and directories that no process of a Box sees in mode Namespace. Those that do not exist are
	// ignored: no process can make them. Of a file the whole directory is hidden, unless programs need it.
	Hide []string
	// Reads are files and directories, there or not, that this process reads, now or at its next start. What programs
	// could do there decides over this process.
	Reads []string
	// Shared are directories that all processes may change, such as caches.
	Shared []string
	Limits Limits
	// OneUser says that all programs are those of this process's user, who lets them read all of HOME, the credentials of
	// clouds included, and whose states may name files in /tmp.
	OneUser bool
	// Several says that programs of more than one organization run here.
	Several bool
}

// Policy is how a worker keeps what it runs apart. The zero value, and nil, start processes as they are.
type Policy struct {
	mode    Mode
	hide    []string
	needed  []string // see needs
	around  seen     // what every box sees in mode Namespace, but for what is hidden by hide
	temps   []string // directories in whose place a box has one of its own
	limits  Limits
	ids     *identities
	oneUser bool
	last    atomic.Pointer[covering] // see covered
}

// New finds out what the system allows. A nil error with warnings means that processes are not kept apart as well as
// they could be; an error, that what was asked for by name is not possible, that Auto finds nothing that keeps several
// organizations apart, or that programs could change what this process reads.
func New(o Options) (p *Policy, warnings []string, err error) {
	p = &Policy{mode: o.Mode, limits: o.Limits, oneUser: o.OneUser}
	for _, path := range o.Hide {
		if path, err := filepath.Abs(path); err == nil {
			p.hide = append(p.hide, path)
		}
		if real, err := filepath.EvalSymlinks(path); err == nil { // the link may be replaced
			p.hide = append(p.hide, real)
		}
	}
	if p.mode == Auto {
		p.mode = Namespace
		if o.RunAs != "" {
			p.mode = RunAs
		}
	}
	switch p.mode {
	case Off:
		return p, []string{"the sandbox is off: programs and plugins can read the keys of this service"}, nil
	case RunAs:
		if p.ids, err = newIdentities(o.RunAs, o.Record, "/etc"); err == nil {
			err = p.ids.changeable(o.Reads)
		}
		return p, nil, err
	case Namespace:
	default:
		return nil, nil, fmt.Errorf("sandbox.mode is auto, run-as, namespace or off, not %q", o.Mode)
	}
	homes := userHomes()
	p.needed, p.temps = neededPlaces(o, homes), temporaries()
	if p.around, err = commonPlaces(o, homes, p.temps); err != nil {
		return nil, nil, err
	}
	lacks, works := p.lacks()
	switch {
	case o.Mode == Auto && o.Several && lacks != "":
		return nil, nil, fmt.Errorf("this worker runs the programs of more than one organization, and sandbox.mode auto "+
			"finds nothing that keeps them apart, because %s: set sandbox.run-as, serve one organization (--organization), or "+
			"set sandbox.mode to namespace or off to do without; see docs/sandbox.md", lacks)
	case works && lacks != "":
		return p, append(p.exposures(), lacks), nil
	case works:
		return p, p.exposures(), nil
	case o.Mode == Namespace:
		return nil, nil, fmt.Errorf("sandbox.mode is namespace, which is not possible, because %s", lacks)
	}
	p.mode = Off
	return p, []string{fmt.Sprintf("programs and plugins are not kept apart from this service and can read its keys, "+
		"because %s; see docs/sandbox.md", lacks)}, nil
}

// lacks says what this system lacks for mode Namespace, and whether that works all the same.
func (p *Policy) lacks() (what string, works bool) {
	if err := p.probe(); err != nil {
		return fmt.Sprintf("this system does not allow namespaces in which files are protected: %v", err), false
	}
	if !scoped() {
		return "before Linux 6.12, programs can end processes of this user, also this one, and use daemons of this user " +
			"that have an abstract socket", true
	}
	return "", true
}

// Mode is how processes are kept apart: RunAs, Namespace or Off.
func (p *Policy) Mode() Mode {
	if p == nil || p.mode == "" {
		return Off
	}
	return p.mode
}

// ofOneUser tells whether all processes are those of this process's user.
func (p *Policy) ofOneUser() bool { return p != nil && p.oneUser }

// The parts of a room: what belongs to an organization's processes, and what they only read.
const (
	Bundles = "bundles"
	Modules = "modules"
	temps   = "tmp"
	homes   = "home"
	// Plugins has the plugins that the worker has downloaded for the organization.
	Plugins = "plugins"
)

// parts are the parts of a room that its processes may change.
var parts = []string{Bundles, Modules, temps, homes}

// RoomName is the name of an organization's directory on a worker. It tells nothing and fits in every file system.
func RoomName(organization string) string {
	sum := sha256.Sum256([]byte(organization))
	return hex.EncodeToString(sum[:8])
}
