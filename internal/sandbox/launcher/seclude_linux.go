package launcher

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// services are the commands whose processes hold the service's secrets.
var services = []string{"dev", "serve", "worker"}

// environmentVariable tells a service's process where its environment is.
const environmentVariable = "DEPLOYCTL_ENVIRONMENT_FD"

// environmentName is the name of the memory that holds it.
const environmentName = "deployctl-environment"

// secluded is whether this process's environment was taken out of reach.
var secluded bool

// Secluded tells whether this is a service's process whose environment, with the secrets in it, cannot be read from
// outside: it is not what the kernel shows of the process, and the memory of the process is closed to all but root.
func Secluded() bool { return secluded }

// seclude makes a service's process one whose secrets nobody else can read. What the kernel shows as a process's
// environment is what it was started with, so the process hands its environment to itself in memory and starts again
// without. The process writes no core dumps, and its memory, files and environment are closed to other processes of the
// same user.
func seclude() {
	if len(os.Args) < 2 || !slices.Contains(services, os.Args[1]) {
		return
	}
	// Where the system refuses one of these, the process is as well kept as it was before.
	_ = syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{})
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if handed := os.Getenv(environmentVariable); handed != "" {
		secluded = takeEnvironment(handed) == nil
		_ = os.Unsetenv(environmentVariable)
		return
	}
	_ = startAgain()
}

// startAgain executes this binary with its environment in memory. It returns only if it cannot.
func startAgain() error {
	fd, err := unix.MemfdCreate(environmentName, 0)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(fd) }()
	environ := os.Environ()
	memory := []byte(strings.Join(environ, "\x00"))
	for len(memory) > 0 {
		n, err := unix.Write(fd, memory)
		if err != nil {
			return err
		}
		memory = memory[n:]
	}
	kept := []string{environmentVariable + "=" + strconv.Itoa(fd)}
	for _, variable := range environ {
		if strings.HasPrefix(variable, "GO") || strings.HasPrefix(variable, "LD_") { // read before this code can run
			kept = append(kept, variable)
		}
	}
	if path, err := os.Readlink("/proc/self/exe"); err == nil {
		_ = syscall.Exec(path, os.Args, kept) // which keeps the name that a list of processes shows
	}
	return syscall.Exec("/proc/self/exe", os.Args, kept) // the file was replaced or removed
}

// takeEnvironment makes what startAgain left the environment of this process.
func takeEnvironment(handed string) error {
	fd, err := strconv.Atoi(handed)
	if err != nil {
		return err
	}
	name, err := os.Readlink("/proc/self/fd/" + handed)
	if err != nil {
		return err
	}
	if !strings.HasPrefix(name, "/memfd:"+environmentName) {
		return os.ErrInvalid
	}
	if _, err := unix.Seek(fd, 0, 0); err != nil {
		return err
	}
	memory := os.NewFile(uintptr(fd), environmentName) //nolint:gosec // a descriptor
	defer func() { _ = memory.Close() }()
	text, err := readAll(memory)
	if err != nil {
		return err
	}
	for _, variable := range strings.Split(text, "\x00") {
		if name, value, ok := strings.Cut(variable, "="); ok && name != "" {
			if err := os.Setenv(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

func readAll(f *os.File) (string, error) {
	var b strings.Builder
	_, err := f.WriteTo(&b)
	return b.String(), err
}
