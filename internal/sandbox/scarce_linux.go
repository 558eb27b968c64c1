package sandbox

import (
	"errors"
	"syscall"

	"github.com/deployctl/deployctl/deployments"
)

// silent is the error of a launcher that ended without a word: the system had no thread or memory for it.
func silent(err error) error {
	return deployments.Errorf(deployments.CodeUnavailable, "the worker cannot start a process in the sandbox: %w",
		err)
}

// scarce makes an error of a start one that may pass if the system has no room for another process or namespace: others
// of this user have taken it, and may give it back.
func scarce(err error) error {
	if errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.ENOSPC) {
		return deployments.Errorf(deployments.CodeUnavailable, "the worker cannot start another process: %w", err)
	}
	return err
}
