package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// switching are the capabilities with which a process that is not root's runs others under another user id: to start
// them, give them directories, end them, move and remove what they have made (two), and, for the last two, see whose a
// connection is: the list of the files of another user's process, and then each file.
var switching = []struct {
	name   string
	number uint
}{
	{"CAP_SETUID", unix.CAP_SETUID}, {"CAP_SETGID", unix.CAP_SETGID}, {"CAP_CHOWN", unix.CAP_CHOWN},
	{"CAP_KILL", unix.CAP_KILL}, {"CAP_DAC_OVERRIDE", unix.CAP_DAC_OVERRIDE}, {"CAP_FOWNER", unix.CAP_FOWNER},
	{"CAP_DAC_READ_SEARCH", unix.CAP_DAC_READ_SEARCH},
	{"CAP_SYS_PTRACE", unix.CAP_SYS_PTRACE},
}

// maySwitch says why this process cannot run others under another user id.
func maySwitch() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for _, c := range switching {
		if data[0].Effective&(1<<c.number) == 0 {
			return fmt.Errorf("it lacks %s", c.name)
		}
	}
	return nil
}

// do calls f on a thread whose accesses to files are those of the identity, without any capability: the kernel takes
// those over files from root alone, and none that opens the files of a process.
func (i *identity) do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine if its rights cannot be given back
		groups, err := unix.Getgroups()
		var kept [2]unix.CapUserData
		if err == nil {
			err = unix.Capget(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &kept[0])
		}
		if err == nil {
			err = assume(i.uid, i.gid, nil)
		}
		if err == nil {
			err = withEffective(kept, false)
		}
		if err != nil {
			done <- err
			return
		}
		err = f()
		if withEffective(kept, true) == nil && assume(os.Geteuid(), os.Getegid(), groups) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// withEffective gives this thread its capabilities with those that are in effect, or with none in effect.
func withEffective(capabilities [2]unix.CapUserData, effective bool) error {
	if !effective {
		capabilities[0].Effective, capabilities[1].Effective = 0, 0
	}
	return unix.Capset(&unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, &capabilities[0])
}

// assume sets this thread's groups and its ids for accesses to files. With those of another user than root, the kernel
// takes root's rights over files away.
func assume(uid, gid int, groups []int) error {
	if err := unix.Setgroups(groups); err != nil {
		return err
	}
	if err := unix.Setfsgid(gid); err != nil {
		return err
	}
	if err := unix.Setfsuid(uid); err != nil {
		return err
	}
	if now, _ := unix.SetfsuidRetUid(-1); now != uid {
		return errors.New("the system does not let this process access files as another user")
	}
	return nil
}

// changeable is an error if programs could change what lies at one of some paths, or put something there, because of
// the rights of a file or directory on the way to it.
func (i *identities) changeable(paths []string) error {
	var all []error
	for _, path := range paths {
		links, _ := resolve(path)
		at := i.opening(existing(path), true)
		for _, link := range links {
			at = cmp.Or(at, i.opening(filepath.Dir(link.path), false))
		}
		if at != "" {
			all = append(all, fmt.Errorf("programs can change %s, which this process reads, because they may write to %s: "+
				"take that right from everybody but root and this user", path, at))
		}
	}
	return errors.Join(all...)
}

// opening returns a file or directory, or the one above it, by which programs could change what is found there; empty:
// there is none. It has no links on the way. In a directory that is not the end of a path, only what is there matters.
func (i *identities) opening(at string, end bool) string {
	for ; ; at, end = filepath.Dir(at), false {
		var info unix.Stat_t
		if unix.Lstat(at, &info) != nil {
			return ""
		}
		kept := info.Mode&unix.S_ISVTX != 0 && !end // nobody removes what others have put there
		if i.mayChange(&info) && !kept {
			return at
		}
		if at == filepath.Dir(at) {
			return ""
		}
	}
}

// mayChange tells whether programs could change a file, or put something into a directory.
func (i *identities) mayChange(info *unix.Stat_t) bool {
	return i.have(info.Uid) || i.haveGroup(info.Gid) && info.Mode&0o020 != 0 || info.Mode&0o002 != 0
}

// above returns the nearest directory at or above a path, also by the links on the way to it, into which programs could
// put something; "" if there is none.
func (i *identities) above(path string) string {
	links, real := resolve(path)
	ends := []string{real}
	for _, link := range links {
		ends = append(ends, filepath.Dir(link.path))
	}
	for _, at := range ends {
		for ; ; at = filepath.Dir(at) {
			var info unix.Stat_t
			if unix.Stat(at, &info) == nil && i.mayChange(&info) {
				return at
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return ""
}

// have tells whether a user id is one of programs.
func (i *identities) have(uid uint32) bool {
	if i.one != nil {
		return int(uid) == i.one.uid
	}
	return i.first <= int(uid) && int(uid) <= i.last
}

// haveGroup tells whether a group id is one of programs.
func (i *identities) haveGroup(gid uint32) bool {
	if i.one != nil {
		return int(gid) == i.one.gid
	}
	return i.have(gid)
}
