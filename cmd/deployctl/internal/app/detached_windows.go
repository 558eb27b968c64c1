package app

import "syscall"

// detachedProcess is DETACHED_PROCESS of the Windows API.
const detachedProcess = 0x00000008

// detached returns attributes with which a child survives the end of its parent's console.
func detached() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: detachedProcess | syscall.CREATE_NEW_PROCESS_GROUP}
}
