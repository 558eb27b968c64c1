package sandbox

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// maySwitch says why this process cannot run others under another user id.
func maySwitch() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	for name, capability := range map[string]uint{
		"CAP_SETUID": unix.CAP_SETUID, "CAP_SETGID": unix.CAP_SETGID, "CAP_CHOWN": unix.CAP_CHOWN,
		"CAP_KILL": unix.CAP_KILL,
	} {
		if data[0].Effective&(1<<capability) == 0 {
			return fmt.Errorf("it lacks %s", name)
		}
	}
	return nil
}

// do calls f on a thread whose accesses to files are those of the identity.
func (i *identity) do(f func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine if its rights cannot be given back
		groups, err := unix.Getgroups()
		if err == nil {
			err = assume(i.uid, i.gid, nil)
		}
		if err != nil {
			done <- err
			return
		}
		err = f()
		if assume(os.Geteuid(), os.Getegid(), groups) == nil {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
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
