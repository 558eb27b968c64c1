package app

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/deployctl/deployctl/deployments"
)

// embeddedSuffix ends the name of the program that has the servers of the embedded service.
const embeddedSuffix = "-embedded"

// embeddedProgram returns the path of the program that has the servers of the embedded service: this one, or
// NAME-embedded in its directory, so that a program starts the service of its own build.
func embeddedProgram() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	name, extension := self, ""
	if runtime.GOOS == "windows" {
		extension = ".exe"
		name = strings.TrimSuffix(self, extension)
	}
	if strings.HasSuffix(name, embeddedSuffix) {
		return self, nil
	}
	program := name + embeddedSuffix + extension
	if _, err := os.Stat(program); err != nil {
		return "", deployments.Errorf(deployments.CodeUnavailable, "the embedded service is the program %s, which is "+
			"not in %s: install it there (go install ./cmd/... of a clone makes both programs), or name a service with "+
			"--server", filepath.Base(program), filepath.Dir(program))
	}
	return program, nil
}

// becomeEmbedded runs this command in the program that has the servers, in the place of this process where the system
// can do that.
func becomeEmbedded(ctx context.Context) error {
	program, err := embeddedProgram()
	if err != nil {
		return err
	}
	if runtime.GOOS != "windows" {
		return syscall.Exec(program, os.Args, os.Environ())
	}
	cmd := exec.Command(program, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run() // a Ctrl-C reaches both, and this one waits
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	return errors.Join(err, ctx.Err())
}
