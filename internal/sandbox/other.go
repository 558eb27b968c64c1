//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
)

func maySwitch() error { return errors.New("only Linux has that") }

func realPath(f *os.File) (string, error) { return filepath.EvalSymlinks(f.Name()) }

const nonblocking = 0

func openWithoutMagic(string) (*os.File, error) { return nil, errors.ErrUnsupported }

// left finds nothing here.
type left map[string]*os.File

func (l left) remember(int) {}

func (l left) end() error { return nil }

func ofTheKernel(*os.File) bool { return false }

func (i *identity) do(f func() error) error { return f() }

func (i *identities) changeable([]string) error { return nil }

func (i *identities) above(string) string { return "" }

var scoped = func() bool { return false }

func sockets(func(string) bool) []string { return nil }

func (p *Policy) probe() error { return errors.New("only Linux has them") }

// Launch is a command that is about to be started; see Prepare.
type Launch struct{ box *Box }

// Apart is false here: there are no spare processes.
func (b *Box) Apart() bool { return false }

// Spare is not called here.
func (b *Box) Spare(*exec.Cmd) (*Launch, error) { return nil, errors.ErrUnsupported }

// Early is false here, too.
func (p *Policy) Early() bool { return false }

// Spare is not called here.
func (p *Policy) Spare(*exec.Cmd) (*Launch, error) { return nil, errors.ErrUnsupported }

// Join is not called here.
func (l *Launch) Join(*Box, *exec.Cmd) error { return errors.ErrUnsupported }

// Become is not called here.
func (l *Launch) Become(*exec.Cmd) error { return errors.ErrUnsupported }

// Discard is not called here.
func (l *Launch) Discard() error { return errors.ErrUnsupported }

// Prepare makes a command that was not started yet one of the box.
func (b *Box) Prepare(*exec.Cmd) (*Launch, error) { return &Launch{b}, nil }

// Start starts the process, by a function that starts the command.
func (l *Launch) Start(cmd *exec.Cmd, start func() error) error { return l.box.start(cmd, start) }
