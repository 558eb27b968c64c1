package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"

	"github.com/deployctl/deployctl/deployments"
)

// hasServers says that this program has the servers of the embedded service. Main sets it.
var hasServers bool

// embeddedSuffix ends the name of the program that has the servers of the embedded service.
const embeddedSuffix = "-embedded"

// embeddedProgram returns the path of the program that has the servers of the embedded service: this one, or
// NAME-embedded in its directory, so that a program starts the service of its own build. A link to this program is
// followed first: what lies beside the link may be anybody's.
func embeddedProgram() (string, error) {
	self, err := os.Executable()
	if err != nil || hasServers {
		return self, err
	}
	if self, err = filepath.EvalSymlinks(self); err != nil {
		return "", err
	}
	program := companion(self)
	_, err = os.Stat(program)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", deployments.Errorf(deployments.CodeInvalid, "the embedded service is the program %s, which is not "+
			"in %s: install it there (make build in a clone makes both), or use the service of another machine "+
			"(--server, DEPLOYCTL_SERVER)", filepath.Base(program), filepath.Dir(program))
	case err != nil:
		return "", deployments.Errorf(deployments.CodeInvalid, "cannot start the embedded service: %w", err)
	}
	return program, nil
}

// companion returns the path of the program with the servers that belongs to a program.
func companion(program string) string {
	extension := ""
	if runtime.GOOS == "windows" {
		extension = filepath.Ext(program)
	}
	return strings.TrimSuffix(program, extension) + embeddedSuffix + extension
}

// becomeEmbedded runs this command in the program that has the servers, in the place of this process where the system
// can do that. An interrupt before that ends the command.
func becomeEmbedded(ctx context.Context) error {
	program, err := embeddedProgram()
	if err != nil || ctx.Err() != nil {
		return err
	}
	if runtime.GOOS != "windows" {
		return fmt.Errorf("start %s: %w", program, syscall.Exec(program, os.Args, os.Environ()))
	}
	cmd := exec.Command(program, os.Args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = cmd.Run() // a Ctrl-C reaches both, and this one waits
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		os.Exit(exit.ExitCode())
	}
	return err
}
