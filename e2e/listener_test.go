//go:build linux

package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"golang.org/x/sys/unix"
)

// listen has a stranger listen at every address, with and without TLS, for HTTP and gRPC. It prints where it could, and
// then all that it is sent.
func (todo task) listen() {
	certificate := ownCertificate()
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Protocols: protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // as much as comes
		fmt.Printf("got %s %s %s %v %q\n", r.Host, r.Method, r.URL, r.Header, body)
		_, _ = io.WriteString(w, "{}")
	})}
	for _, address := range todo.Listen {
		l, err := net.Listen("tcp", address)
		if err != nil {
			fmt.Println("refused", address, err)
			continue
		}
		fmt.Println("listens", address)
		go func() { _ = server.Serve(either{l, certificate}) }()
	}
	fmt.Println("ready")
	_, _ = io.Copy(io.Discard, os.Stdin) // until the test is over
}

// either is a listener for connections with TLS and without.
type either struct {
	net.Listener
	certificate tls.Certificate
}

func (e either) Accept() (net.Conn, error) {
	conn, err := e.Listener.Accept()
	if err != nil {
		return nil, err
	}
	first := bufio.NewReader(conn)
	begins, _ := first.Peek(1)
	whole := peeked{conn, first}
	const handshake = 22
	if len(begins) > 0 && begins[0] == handshake {
		return tls.Server(whole, &tls.Config{Certificates: []tls.Certificate{e.certificate},
			NextProtos: []string{"h2", "http/1.1"}}), nil
	}
	return whole, nil
}

type peeked struct {
	net.Conn
	read *bufio.Reader
}

func (p peeked) Read(b []byte) (int, error) { return p.read.Read(b) }

// listener is another user's process that listens.
type listener struct {
	listens []string // where it could
	said    output
	in      io.Closer
	cmd     *exec.Cmd
}

const strangersUID = 12345

// listenAs has another user listen at addresses until the listener's end.
func listenAs(t *testing.T, addresses ...string) *listener {
	t.Helper()
	text, err := json.Marshal(task{Listen: addresses})
	must(t, err)
	self, err := os.Open("/proc/self/exe")
	must(t, err)
	defer func() { _ = self.Close() }()
	l := &listener{cmd: exec.Command("/proc/self/fd/3")} // where the binary is, others may not go
	l.cmd.ExtraFiles = []*os.File{self}
	l.cmd.Env, l.cmd.Dir, l.cmd.Stderr = []string{strangerTask + "=" + string(text)}, "/", os.Stderr
	l.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: strangersUID, Gid: strangersUID}}
	out, err := l.cmd.StdoutPipe()
	must(t, err)
	l.in, err = l.cmd.StdinPipe()
	must(t, errors.Join(err, l.cmd.Start()))
	t.Cleanup(l.end)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadString('\n')
		must(t, err)
		if at, ok := strings.CutPrefix(strings.TrimSpace(line), "listens "); ok {
			l.listens = append(l.listens, at)
		}
		if line == "ready\n" {
			break
		}
	}
	go func() { _, _ = io.Copy(&l.said, lines) }() // ends with the process
	return l
}

// end ends the process, after which nobody listens.
func (l *listener) end() {
	_ = l.in.Close()
	_ = l.cmd.Wait() // it may have been waited for
}

// heard fails the test if a listener was sent a text.
func (l *listener) heard(t *testing.T, what, text string) {
	t.Helper()
	if strings.Contains(l.said.String(), text) {
		t.Errorf("another user got %s", what)
	}
}

// stock calls the Pulumi Service API as the stock CLI does, and returns the status of the answer; 0 if there is none.
func stock(t *testing.T, address, token string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(waittest.Context(t), http.MethodGet, "http://"+address+"/api/user", nil)
	must(t, err)
	r.Header.Set("Authorization", "token "+token)
	answer, err := (&http.Client{Transport: &http.Transport{}}).Do(r)
	if err != nil {
		return 0
	}
	_ = answer.Body.Close()
	return answer.StatusCode
}

// whoami asks the API of a service who a token's holder is. With a certificate, the service must have it.
func whoami(t *testing.T, address, certificate, token string) error {
	t.Helper()
	c, err := client.Dial(client.Options{Address: address, CAFile: certificate, Token: token, Patience: 1})
	must(t, err)
	defer func() { _ = c.Close() }()
	_, err = c.ListTokens(waittest.Context(t))
	return err
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	must(t, err)
	return strings.TrimSpace(string(text))
}

// others are the addresses on which another user could wait for clients of an address on localhost.
func others(address string) []string {
	_, port, _ := net.SplitHostPort(address)
	return []string{"127.0.0.1:" + port, "[::1]:" + port, "0.0.0.0:" + port, "[::]:" + port}
}

// TestAnotherUserWhoListensInThePlaceOfTheServiceGetsNothing has another user listen beside the service, after it, and
// before it starts again, wherever a client of the service calls.
func TestAnotherUserWhoListensInThePlaceOfTheServiceGetsNothing(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can play another user")
	}
	_, port, _ := net.SplitHostPort(porttest.Address(t))
	h := newHome(t)
	h.env = append(h.env, "DEPLOYCTL_PULUMI_LISTEN=localhost:"+port)
	p := h.in(t.TempDir())
	p.must(t, "dev", "--background")
	s := h.status(t)
	local, shown := read(t, s.TokenFile), read(t, s.PulumiTokenFile)
	if shown == local {
		t.Fatal("the stock CLI has the token of deployctl")
	}

	beside := listenAs(t, others(s.PulumiAddress)...)
	if len(beside.listens) > 0 {
		t.Errorf("beside the service another user listens on %v", beside.listens)
	}
	if got := stock(t, s.PulumiAddress, shown); got != http.StatusOK {
		t.Errorf("the stock CLI is answered %d", got)
	}
	if got := stock(t, s.PulumiAddress, local); got != http.StatusForbidden {
		t.Errorf("with the token of deployctl it is answered %d", got)
	}
	must(t, whoami(t, s.APIAddress, s.Certificate, shown))
	if said := p.must(t, "token", "ls"); !strings.Contains(said, "local.pulumi") {
		t.Errorf("the token of the stock CLI is not among\n%s", said)
	}
	beside.end()

	p.must(t, "dev", "stop")
	var all []string
	for _, address := range []string{s.PulumiAddress, s.APIAddress, s.TemporalAddress,
		porttest.Resolved(strings.TrimPrefix(s.UIURL, "http://")), strings.TrimPrefix(s.S3Endpoint, "http://")} {
		all = append(all, others(address)[:2]...)
	}
	after := listenAs(t, all...)
	if !slices.Equal(after.listens, all) {
		t.Fatalf("after the service another user listens on %v alone", after.listens)
	}
	if got := stock(t, s.PulumiAddress, shown); got != http.StatusOK {
		t.Errorf("the other user answers %d", got)
	}
	for certificate, why := range map[string]string{s.Certificate: "certificate", "": "user id 12345"} {
		if err := whoami(t, s.APIAddress, certificate, local); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("with the certificate %q: %v", certificate, err)
		}
	}
	for _, env := range [][]string{nil, {"DEPLOYCTL_SERVER=" + s.APIAddress, "DEPLOYCTL_TOKEN=" + local}} {
		if r := h.in(p.dir, env...).run(t, "token", "ls"); r.code == 0 ||
			!strings.Contains(r.stderr.String(), "user id 12345") {
			t.Errorf("deployctl with %d settings ends with %d and says %s", len(env), r.code, r.stderr.String())
		}
	}
	after.heard(t, "the token of deployctl", local)
	if !strings.Contains(after.said.String(), shown) {
		t.Error("the stock CLI has shown its token to nobody, so the test shows nothing")
	}
	after.end()

	before := listenAs(t, others(s.PulumiAddress)[1])
	if r := p.run(t, "dev", "--background"); r.code == 0 || !strings.Contains(r.stderr.String(), "user id 12345") {
		t.Errorf("with an address of another user's it ends with %d and says %s", r.code, r.stderr.String())
	}
	before.end()

	p.must(t, "dev", "--background")
	s = h.status(t)
	if got := stock(t, s.PulumiAddress, shown); got != http.StatusUnauthorized {
		t.Errorf("a token that another user has got is answered %d", got)
	}
	if err := whoami(t, s.APIAddress, s.Certificate, shown); deployments.CodeOf(err) != deployments.CodeUnauthorized {
		t.Errorf("a token that another user has got is answered %v", err)
	}
	if got := stock(t, s.PulumiAddress, read(t, s.PulumiTokenFile)); got != http.StatusOK {
		t.Errorf("the new one is answered %d", got)
	}
	p.must(t, "token", "rm", "local.pulumi")
	if got := stock(t, s.PulumiAddress, read(t, s.PulumiTokenFile)); got != http.StatusUnauthorized {
		t.Errorf("a token that was removed is answered %d", got)
	}
}

// inNetwork, in the environment of this test's binary, says that it has a network of its own.
const inNetwork = "DEPLOYCTL_E2E_NETWORK"

// ownNetwork plays a test in a network of its own, where nobody else has a port, and reports whether this is there.
func ownNetwork(t *testing.T) bool {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root can play another user, and make a network")
	}
	if os.Getenv(inNetwork) != "" {
		up(t)
		return true
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^"+t.Name()+"$", "-test.v")
	cmd.Env = append(os.Environ(), inNetwork+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	return false
}

// up starts the loopback interface.
func up(t *testing.T) {
	t.Helper()
	socket, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	must(t, err)
	defer func() { _ = unix.Close(socket) }()
	request, err := unix.NewIfreq("lo")
	must(t, err)
	request.SetUint16(unix.IFF_UP)
	must(t, unix.IoctlIfreq(socket, unix.SIOCSIFFLAGS, request))
}

// TestTheUsualAddressOfTheStockCLIIsTheServicesOrIsNotServed has other users and programs take it between two starts.
func TestTheUsualAddressOfTheStockCLIIsTheServicesOrIsNotServed(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	if !ownNetwork(t) {
		return
	}
	h := newHome(t)
	p := h.in(t.TempDir())
	restart := func() status {
		p.must(t, "dev", "stop")
		p.must(t, "dev", "--background")
		return h.status(t)
	}
	p.must(t, "dev", "--background")
	if s := h.status(t); s.PulumiAddress != "localhost:8080" || s.ConsoleAddress != "localhost:3000" ||
		s.PulumiProblem != "" {
		t.Fatalf("it is at %q and %q: %s", s.PulumiAddress, s.ConsoleAddress, s.PulumiProblem)
	}
	for _, taken := range []string{"[::1]:8080", "127.0.0.1:3000"} {
		p.must(t, "dev", "stop")
		other := listenAs(t, taken)
		p.must(t, "dev", "--background")
		s := h.status(t)
		if s.PulumiAddress != "" || !strings.Contains(s.PulumiProblem, "user id 12345") ||
			!strings.Contains(s.PulumiProblem, "DEPLOYCTL_PULUMI_LISTEN") {
			t.Errorf("with %s taken it is at %q: %s", taken, s.PulumiAddress, s.PulumiProblem)
		}
		if said := p.must(t, "dev", "status"); !strings.Contains(said, s.PulumiProblem) ||
			strings.Contains(said, "pulumi login") {
			t.Errorf("with %s taken it says %s", taken, said)
		}
		if _, err := os.Stat(filepath.Join(h.state(), "pulumi-token")); err == nil {
			t.Errorf("with %s taken there is a token for the stock CLI", taken)
		}
		p.must(t, "stack", "ls", "--all") // all else works
		other.end()
	}
	own, err := net.Listen("tcp", "127.0.0.1:3000")
	must(t, err)
	if s := restart(); s.PulumiAddress != "localhost:8080" || s.ConsoleAddress != "" {
		t.Errorf("with a program of the user's own as the console it is at %q and %q: %s", s.PulumiAddress,
			s.ConsoleAddress, s.PulumiProblem)
	}
	must(t, own.Close())
	if own, err = net.Listen("tcp", "127.0.0.1:8080"); err == nil {
		t.Error("somebody else can listen on its port")
		_ = own.Close()
	}
	p.must(t, "dev", "stop")
	own, err = net.Listen("tcp", "127.0.0.1:8080")
	must(t, err)
	p.must(t, "dev", "--background")
	if s := h.status(t); !strings.HasPrefix(s.PulumiAddress, "127.0.0.1:") || s.PulumiAddress == "127.0.0.1:8080" ||
		!strings.Contains(s.PulumiProblem, s.PulumiAddress) {
		t.Errorf("with a program of the user's own at its port it is at %q: %s", s.PulumiAddress, s.PulumiProblem)
	}
	must(t, own.Close())

	first := newHome(t)
	other := listenAs(t, "[::1]:8080")
	first.in(t.TempDir()).must(t, "dev", "--background")
	if s := first.status(t); !strings.HasPrefix(s.PulumiAddress, "127.0.0.1:") ||
		!strings.Contains(s.PulumiProblem, "user id 12345") {
		t.Errorf("at the first start, with another user at its port, it is at %q: %s", s.PulumiAddress, s.PulumiProblem)
	}
	other.end()
}
