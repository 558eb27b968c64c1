package servers_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/deployctl/deployctl/cmd/deployctl/deployctl-embedded/servers"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// The test binary is also the service and its S3 server: role says which one a process is, and testHome where.
const (
	role     = "DEVSERVER_TEST_ROLE"
	testHome = "DEVSERVER_TEST_HOME"
)

func TestMain(m *testing.M) {
	var err error
	switch os.Getenv(role) {
	case "":
		os.Exit(m.Run())
	case "s3":
		err = serveS3(os.Getenv(testHome))
	case "service":
		err = serve(os.Getenv(testHome))
	case "listener":
		err = listen(os.Getenv(testHome))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// serve runs a service until it is asked to end, and prints a line once it runs.
func serve(home string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	s, err := devserver.Start(ctx, options(home))
	if err != nil {
		return err
	}
	if err := s.Announce(""); err != nil {
		return err
	}
	fmt.Println("running")
	<-ctx.Done()
	return s.Close(context.Background())
}

// serveS3 serves the objects until it is asked to end, or its parent's pipe says so. It leaves its process id for the
// test.
func serveS3(home string) error {
	if err := os.WriteFile(pidFile(home), []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	return devserver.ServeS3(ctx, home, servers.All{})
}

// pidFile is where the S3 server of a home leaves its process id.
func pidFile(home string) string { return home + ".pid" }

// listen holds a port until its standard input ends, and prints a line once it does.
func listen(address string) error {
	if _, err := net.Listen("tcp", address); err != nil {
		return err
	}
	fmt.Println("listening")
	_, _ = bufio.NewReader(os.Stdin).ReadByte()
	return nil
}

// options start a service whose S3 server is this binary.
func options(home string) devserver.Options {
	return devserver.Options{
		Home:    home,
		Servers: servers.All{},
		S3Command: func(home string) []string {
			return []string{"/usr/bin/env", role + "=s3", testHome + "=" + home, os.Args[0]}
		},
	}
}

// process is a child of the test in one of the roles.
type process struct {
	*exec.Cmd
	stdin io.Closer
	ended chan struct{}
}

func spawn(t *testing.T, as, home string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), role+"="+as, testHome+"="+home)
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := os.CreateTemp(t.TempDir(), "stdout")
	must(t, err)
	cmd.Stdout, cmd.Stderr = stdout, stdout // a server that talks to the terminal is found by says
	must(t, cmd.Start())
	p := &process{Cmd: cmd, stdin: stdin, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.ended)
	}()
	t.Cleanup(func() {
		_ = stdin.Close()
		p.kill()
	})
	return p
}

// kill is kill -9; it returns when the process is gone.
func (p *process) kill() {
	_ = p.Process.Kill()
	<-p.ended
}

// said is all that the process has printed.
func (p *process) said() string {
	text, _ := os.ReadFile(p.Stdout.(*os.File).Name())
	return string(text)
}

// says waits until the process has printed the line, and nothing else.
func (p *process) says(t *testing.T, line string) {
	t.Helper()
	waittest.Until(t, "the process says "+line, func() bool {
		select {
		case <-p.ended:
			t.Fatalf("the process ended and said %q, not %q", p.said(), line)
		default:
		}
		return p.said() == line+"\n"
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// start runs a service in this process until the test ends.
func start(t *testing.T, home string) *devserver.Server {
	t.Helper()
	s, err := devserver.Start(t.Context(), options(home))
	must(t, err)
	t.Cleanup(func() { must(t, s.Close(context.Background())) })
	return s
}

// keptPorts are those that a home has for its servers. They are zero until they are chosen.
func keptPorts(t *testing.T, home string) (ports devserver.Ports) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(home, "data", "ports.json"))
	if errors.Is(err, fs.ErrNotExist) {
		return ports
	}
	must(t, errors.Join(err, json.Unmarshal(text, &ports)))
	return ports
}

// address is a loopback address.
func address(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// exists reports whether there is something at path; an error other than absence counts as there.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// s3Client is a client of a service's S3 server.
func s3Client(endpoint string, keys devserver.Keys) *s3.Client {
	return s3.New(s3.Options{BaseEndpoint: aws.String(endpoint), Region: devserver.Region, UsePathStyle: true,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: keys.S3AccessKey, SecretAccessKey: keys.S3SecretKey}, nil
		})})
}

// newHome is a home whose name has every character that a file: URI gives a meaning to.
func newHome(t *testing.T) string { return filepath.Join(t.TempDir(), "a home?#%20&é") }
