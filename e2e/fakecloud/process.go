package fakecloud

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// Process is a cloud that runs as a process of its own, with a client of it. It ends when this process does, however
// that ends: it watches its standard input.
type Process struct {
	*Client
	cmd   *exec.Cmd
	stdin io.Closer
}

// Launch starts the binary built from cmd/fakecloud with the given arguments and returns once it listens.
func Launch(binary string, args ...string) (*Process, error) {
	cmd := exec.Command(binary, append([]string{"-until-stdin-closes"}, args...)...)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		_ = cmd.Process.Kill()
		return nil, fmt.Errorf("%s did not start: %w", binary, errors.Join(err, cmd.Wait()))
	}
	return &Process{NewClient(strings.TrimSpace(line)), cmd, stdin}, nil
}

// Stop ends the process and waits for it. With a journal, another Launch on the same address goes on from there.
func (p *Process) Stop() error {
	return errors.Join(p.stdin.Close(), p.cmd.Wait())
}

// Kill ends the process at once, as a power cut would.
func (p *Process) Kill() error {
	if err := p.cmd.Process.Kill(); err != nil {
		return err
	}
	var killed *exec.ExitError
	if err := p.cmd.Wait(); !errors.As(err, &killed) {
		return err
	}
	return nil
}
