//go:build unix

package attack

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// strangerVariable, in the environment of this test's binary, makes it another user of the machine.
const strangerVariable = "DEPLOYCTL_ATTACK_STRANGER"

// errand is what another user does at an address: to connect, say something and either leave by a reset, or stay.
type errand struct {
	Address, Says string
	Times         int
	Stays         bool
	Tells         bool // the port of each connection that was reset, when it is free
}

func init() {
	if text := os.Getenv(strangerVariable); text != "" {
		var e errand
		if err := json.Unmarshal([]byte(text), &e); err != nil {
			panic(err)
		}
		e.run()
		os.Exit(0)
	}
}

func (e errand) run() {
	var staying sync.WaitGroup
	for range e.Times {
		conn, err := net.Dial("tcp", e.Address)
		if err != nil {
			continue
		}
		_, _ = io.WriteString(conn, e.Says) // it may have been hung up on
		if e.Stays {
			staying.Go(func() {
				_ = conn.SetReadDeadline(time.Now().Add(waittest.Patience))
				if n, err := io.Copy(io.Discard, conn); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
					fmt.Println("KEPT")
				}
				_ = conn.Close()
			})
			continue
		}
		_ = conn.(*net.TCPConn).SetLinger(0)
		_ = conn.Close()
		if e.Tells {
			fmt.Println(conn.LocalAddr().(*net.TCPAddr).Port)
		}
	}
	staying.Wait()
}

// stranger runs an errand as another user, and gives each line of what it tells to heard.
func stranger(t *testing.T, e errand, heard func(string)) {
	t.Helper()
	text, err := json.Marshal(e)
	harness.Must(t, err)
	self, err := os.Open("/proc/self/exe")
	harness.Must(t, err)
	defer func() { _ = self.Close() }()
	cmd := exec.Command("/proc/self/fd/3") // where the binary is, others may not go
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env, cmd.Dir, cmd.Stderr = []string{strangerVariable + "=" + string(text)}, "/", os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}}
	out, err := cmd.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan(); {
		heard(lines.Text())
	}
	harness.Must(t, cmd.Wait())
}

// several skips a test where nobody can play another user, or the system does not tell users apart.
func several(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" || os.Geteuid() != 0 {
		t.Skip("only root on Linux can play another user")
	}
}

// takenAddress has another user send a request and leave its port, from which the user connects next, while many such
// connections wait: the request is to open the user's link.
func takenAddress(t *testing.T, f *field) {
	several(t)
	link := uiLink.FindString(f.victim.Must(t, "dev", "status"))
	target, err := url.Parse(link)
	harness.Must(t, err)
	at, err := net.ResolveTCPAddr("tcp", porttest.Resolved(target.Host))
	harness.Must(t, err)
	request := fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", target.RequestURI(), target.Host)
	taken := 0
	stranger(t, errand{Address: at.String(), Says: request, Times: size(2_000, 50_000), Tells: true}, func(port string) {
		n, err := strconv.Atoi(port)
		harness.Must(t, err)
		conn, err := net.DialTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: n}, at)
		if err != nil {
			return // it is not free
		}
		taken++
		_ = conn.SetLinger(0)
		t.Cleanup(func() { _ = conn.Close() })
	})
	t.Logf("%d addresses were taken over", taken)
	answer, err := porttest.Browser(nil).Get(link)
	harness.Must(t, err)
	_ = answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("the link was used: %s", answer.Status)
	}
}

// manifold is how much longer than the resets took their victim may wait: a lookup of each would take hundreds of times
// as long.
const manifold = 20

// resets has another user connect and leave at once, many times, and waits for the next connection.
func resets(t *testing.T, f *field) {
	several(t)
	s := f.status(t)
	for what, address := range map[string]string{"the API": s.APIAddress, "Temporal": s.TemporalAddress} {
		begun := time.Now()
		stranger(t, errand{Address: address, Times: size(4_000, 50_000)}, func(string) {})
		took := time.Since(begun)
		begun = time.Now()
		conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // an attacker
		harness.Must(t, err)
		_ = conn.Close()
		waited := time.Since(begun)
		t.Logf("%s: resets took %v, the next connection %v", what, took, waited)
		if *soaktest.Full && waited > manifold*took { // make test only waits for it
			t.Errorf("%s holds up the next connection for %v after resets that took %v", what, waited, took)
		}
	}
}

// heldConnections has another user keep more connections than S3 takes, and as many at Temporal, each with the
// beginning of a request.
func heldConnections(t *testing.T, f *field) {
	several(t)
	for _, address := range []string{strings.TrimPrefix(f.S3(t).Endpoint, "http://"), f.status(t).TemporalAddress} {
		stranger(t, errand{Address: address, Says: "GET /x HTTP/1.1\r\nHost: x\r\n", Times: 4_200, Stays: true},
			func(line string) { t.Errorf("at %s: %s", address, line) })
	}
}

// leftScript is of a page that had the Web UI's address while the service did not run, and left in the browser what
// browsers keep for an address: cookies, and scripts that answer in the server's place.
func leftScript(t *testing.T, f *field) {
	b := f.browser(t)
	before, err := url.Parse(b.ui)
	harness.Must(t, err)
	tool := f.Deployctl(f.Dir)
	tool.Must(t, "dev", "stop")
	f.Start(t)
	now, err := url.Parse(f.status(t).UIURL)
	harness.Must(t, err)
	if now.Hostname() == before.Hostname() {
		t.Errorf("what was left at %s is there still", before)
	}
	if sent := b.Jar.Cookies(now); len(sent) > 0 {
		t.Errorf("the browser sends %v to whoever has %s", sent, now)
	}
	jar, err := cookiejar.New(nil)
	harness.Must(t, err)
	jar.SetCookies(now, b.Jar.Cookies(before))
	b.Jar = jar
	for _, at := range []string{now.String(), before.String(), "http://127.0.0.1:" + now.Port(),
		"http://localhost:" + now.Port()} {
		for _, path := range []string{"/", "/api/v1/namespaces/deployctl/workflows", "/open?link=x"} {
			if res, text := b.ask(t, http.MethodGet, at+path, ""); res == nil || res.StatusCode < 400 {
				t.Errorf("%s%s is answered after a restart: %v %.200s", at, path, res, text)
			}
		}
	}
}
