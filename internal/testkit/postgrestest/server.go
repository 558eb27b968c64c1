//go:build unix

package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/jackc/pgx/v5"
)

// Server is a server on a loopback port. The role postgres needs no password; others do.
type Server struct {
	Address string
	Log     string // the file with what it was asked

	dir, initdb, postgres string
	settings              []string
	reservation           io.Closer
	process               *exec.Cmd
	as                    *syscall.Credential
}

// ErrNone is that there is no server to start, and says what to install.
var ErrNone = errors.New("no PostgreSQL server: install Debian's package postgresql")

// quick are settings for a server that need not survive a power cut, and whose log is read.
var quick = []string{"fsync=off", "full_page_writes=off", "log_statement=all"}

// Durable are settings of a server that keeps what it has acknowledged, as Debian's does.
var Durable = []string{"fsync=on", "full_page_writes=on", "log_statement=none"}

// Start starts a server with nothing in it, for tests that read its log.
func Start() (*Server, error) { return StartWith() }

// StartWith starts a server with nothing in it and settings of the form NAME=VALUE. Its directory is not below that of
// a test, where its user could not reach it.
func StartWith(settings ...string) (*Server, error) {
	s := &Server{settings: slices.Concat(quick, settings)}
	var err error
	for program, path := range map[string]*string{"initdb": &s.initdb, "postgres": &s.postgres} {
		if *path, err = find(program); err != nil {
			return nil, err
		}
	}
	if s.dir, err = os.MkdirTemp("", "postgresql"); err != nil {
		return nil, err
	}
	if s.Address, s.reservation, err = porttest.Reserve(); err == nil {
		err = s.prepare()
	}
	if err == nil {
		err = s.Launch()
	}
	if err != nil {
		s.Stop()
		return nil, err
	}
	return s, nil
}

func find(program string) (string, error) {
	if path, err := exec.LookPath(program); err == nil {
		return path, nil
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + program) // where Debian has it
	if len(found) == 0 {
		return "", ErrNone
	}
	return found[len(found)-1], nil
}

const access = `local all all trust
host all postgres 127.0.0.1/32 trust
host all all 127.0.0.1/32 scram-sha-256
`

// prepare makes the server's data.
func (s *Server) prepare() error {
	if os.Geteuid() == 0 { // the server refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return fmt.Errorf("%w, and its user postgres, as which the server could run", ErrNone)
		}
		uid, _ := strconv.Atoi(u.Uid) // it is a number
		gid, _ := strconv.Atoi(u.Gid)
		s.as = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)} //nolint:gosec // they are not negative
		if err := os.Chown(s.dir, uid, gid); err != nil {
			return err
		}
	}
	data := filepath.Join(s.dir, "data")
	if out, err := s.command(s.initdb, "-D", data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C",
		"--no-sync").CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	s.Log = filepath.Join(s.dir, "log")
	return os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(access), 0o600)
}

// Launch starts the server again that Crash has ended. It returns when it answers.
func (s *Server) Launch() error {
	_, port, _ := net.SplitHostPort(s.Address) // it has a port
	log, err := os.OpenFile(s.Log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	args := []string{"-D", filepath.Join(s.dir, "data"), "-p", port}
	for _, setting := range append([]string{"listen_addresses=127.0.0.1", "unix_socket_directories=" + s.dir},
		s.settings...) {
		args = append(args, "-c", setting)
	}
	s.process = s.command(s.postgres, args...)
	s.process.Stdout, s.process.Stderr = log, log
	if err := s.process.Start(); err != nil {
		s.process = nil
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Patience)
	defer cancel()
	return waittest.Poll(ctx, "PostgreSQL answers", func() bool {
		conn, err := pgx.Connect(ctx, fmt.Sprintf("postgres://postgres@%s/postgres?sslmode=disable", s.Address))
		if err != nil {
			return false
		}
		return conn.Close(ctx) == nil
	})
}

func (s *Server) command(program string, args ...string) *exec.Cmd {
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.SysProcAttr = s.dir, &syscall.SysProcAttr{Credential: s.as}
	return cmd
}

// Crash ends the server at once, as "pg_ctl stop -m immediate" does: it recovers when it is started again.
func (s *Server) Crash() error {
	if err := s.process.Process.Signal(syscall.SIGQUIT); err != nil {
		return err
	}
	_ = s.process.Wait() // it ends with an error
	s.process = nil
	return nil
}

// Stop ends the server and its connections, and removes what it had.
func (s *Server) Stop() {
	if s.process != nil {
		_ = s.process.Process.Signal(syscall.SIGINT)
		_ = s.process.Wait()
	}
	if s.reservation != nil {
		_ = s.reservation.Close()
	}
	_ = os.RemoveAll(s.dir)
}
