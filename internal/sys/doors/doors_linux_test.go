package doors

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"golang.org/x/sys/unix"
)

// household is a Household with fixed processes.
type household []int

func (household) UID() int           { return os.Geteuid() }
func (h household) Processes() []int { return h }

// TestMain lets the test binary connect or listen instead of testing, if DOORS_TEST_KNOCK says so.
func TestMain(m *testing.M) {
	address := os.Getenv("DOORS_TEST_KNOCK")
	beside, beneath := strings.CutPrefix(address, "beside ")
	at, listens := strings.CutPrefix(address, "listen ")
	from, reads := strings.CutPrefix(address, "read ")
	switch {
	case beneath:
		listenBeside(beside)
	case address == "hide":
		hide()
	case listens:
		listen(at, func(conn net.Conn) { _, _ = conn.Write([]byte("hello\n")) }) // the client may have gone
	case reads:
		listen(from, func(conn net.Conn) { _, _ = io.Copy(io.Discard, conn) })
	case address != "":
		fmt.Println(knock(address))
	default:
		os.Exit(m.Run())
	}
}

// listenBeside listens at an address at which another process listens that is bound to another interface than loopback.
func listenBeside(at string) {
	config := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		return errors.Join(raw.Control(func(fd uintptr) { err = unix.BindToDevice(int(fd), "lo") }), err)
	}}
	listener, err := config.Listen(context.Background(), "tcp", at)
	serveAll(listener, err, func(conn net.Conn) { _, _ = io.Copy(os.Stdout, conn) })
}

// listen acts as a plugin: it prints its port and serves every connection.
func listen(at string, serve func(net.Conn)) {
	listener, err := net.Listen("tcp", at)
	serveAll(listener, err, serve)
}

func serveAll(listener net.Listener, err error, serve func(net.Conn)) {
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		serve(conn)
	}
}

// knock connects and returns the line that it receives: "hello", or nothing.
func knock(address string) string {
	conn, err := net.DialTimeout("tcp", address, 2e9)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	line, _ := bufio.NewReader(conn).ReadString('\n')
	return strings.TrimSpace(line)
}

// process returns a command that runs this binary in another role, as another user if uid is not 0.
func process(t *testing.T, role string, uid uint32, wrapper ...string) *exec.Cmd {
	t.Helper()
	if uid != 0 && os.Geteuid() != 0 {
		t.Skip("only root can play another user")
	}
	cmd := exec.Command("/proc/self/exe")
	if len(wrapper) > 0 {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd = exec.Command(wrapper[0], append(wrapper[1:], self)...)
	}
	cmd.Env = append(os.Environ(), "DOORS_TEST_KNOCK="+role)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	return cmd
}

// heard starts a process and returns the first line that it prints.
func heard(t *testing.T, cmd *exec.Cmd, started func(pid int)) string {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err := errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	if started != nil {
		started(cmd.Process.Pid)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	return strings.TrimSpace(line)
}

// serve sends hello on every connection that is accepted. The household's processes are read again for each connection.
func serve(t *testing.T, h Household) (address string, refused chan net.Addr) {
	t.Helper()
	refused = make(chan net.Addr, 10)
	listener, err := Listen(h, func(a net.Addr) { refused <- a })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("hello\n"))
			_ = conn.Close()
		}
	}()
	return listener.Addr().String(), refused
}

// growing is a household whose processes are still being started.
type growing struct{ pid chan int }

func (growing) UID() int { return os.Geteuid() }
func (g growing) Processes() []int {
	pid := <-g.pid
	g.pid <- pid
	return []int{pid}
}

func TestAProcessOfTheHouseholdAndWhatItStartsAreLetIn(t *testing.T) {
	for name, wrapper := range map[string][]string{"itself": nil, "its child": {"/bin/sh", "-c", `"$0"; true`}} {
		t.Run(name, func(t *testing.T) {
			h := growing{make(chan int, 1)}
			address, _ := serve(t, h)
			if got := heard(t, process(t, address, 0, wrapper...), func(pid int) { h.pid <- pid }); got != "hello" {
				t.Errorf("it hears %q", got)
			}
		})
	}
}

func TestThisProcessIsLetIn(t *testing.T) {
	address, _ := serve(t, household(nil))
	if got := knock(address); got != "hello" {
		t.Errorf("it hears %q", got)
	}
}

func TestWhoeverElseConnectsHearsNothing(t *testing.T) {
	for name, uid := range map[string]uint32{"another process of the same user": 0, "another user": 54321} {
		t.Run(name, func(t *testing.T) {
			address, refused := serve(t, household{})
			if got := heard(t, process(t, address, uid), nil); got != "" {
				t.Fatalf("a stranger hears %q", got)
			}
			<-refused
		})
	}
}

// plugin starts a process that listens, and returns its household and port.
func plugin(t *testing.T) (household, uint16) {
	t.Helper()
	return pluginThat(t, "listen 127.0.0.1:0")
}

func pluginThat(t *testing.T, does string) (household, uint16) {
	t.Helper()
	var h household
	port, err := strconv.ParseUint(heard(t, process(t, does, 0), func(pid int) { h = household{pid} }), 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	return h, uint16(port)
}

func TestAPluginIsDeafToStrangersOnceItIsConnectedTo(t *testing.T) {
	_, port := plugin(t)
	if got := heard(t, process(t, "127.0.0.1:"+strconv.Itoa(int(port)), 0), nil); got != "hello" {
		t.Fatalf("before, a stranger hears %q", got)
	}
	h, port := plugin(t)
	address := "127.0.0.1:" + strconv.Itoa(int(port))
	conn, sealed, err := Dial(context.Background(), h, port)
	if err != nil || !sealed {
		t.Fatal(sealed, err)
	}
	if got := heard(t, process(t, address, 0), nil); got != "" {
		t.Errorf("a stranger hears %q", got)
	}
	if line, err := bufio.NewReader(conn).ReadString('\n'); err != nil || line != "hello\n" {
		t.Errorf("the plugin says %q, %v", line, err)
	}
	if got := knock(address); got != "" {
		t.Errorf("a second connection hears %q", got)
	}
	_ = conn.Close()
}

func TestAPluginToWhichAStrangerIsConnectedIsNotUsed(t *testing.T) {
	h, port := plugin(t)
	address := "127.0.0.1:" + strconv.Itoa(int(port))
	stranger := exec.Command("/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+strconv.Itoa(
		int(port))+"; read -u 3; echo $REPLY; read")
	stdin, err := stranger.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close() }()
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if got := heard(t, stranger, nil); got != "hello" {
		t.Fatalf("the stranger hears %q at %s", got, address)
	}
	if _, _, err := Dial(context.Background(), h, port); err == nil ||
		!strings.Contains(err.Error(), "connected to its port") {
		t.Errorf("%v", err)
	}
}

func TestAPortThatIsAnothersIsNotTakenForThePlugins(t *testing.T) {
	_, port := plugin(t)
	if _, _, err := Dial(context.Background(), household{}, port); err == nil {
		t.Error("it is connected to")
	}
}

// TestAPluginToWhichAStrangerHasTalkedIsNotUsed covers clients that write a request and close at once: their socket
// then has no owner, until the plugin has closed its end, too, or the connection is reset.
func TestAPluginToWhichAStrangerHasTalkedIsNotUsed(t *testing.T) {
	for _, c := range []struct{ name, at, by string }{
		{"and has gone", "127.0.0.1:0", "127.0.0.1"},
		{"by another address of loopback", "0.0.0.0:0", "127.0.0.2"},
		{"by IPv4, where it listens to both", "[::]:0", "127.0.0.3"},
		{"by an address of the machine", "0.0.0.0:0", machine(t)},
	} {
		for _, stays := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, stays %v", c.name, stays), func(t *testing.T) {
				h, port := pluginThat(t, "read "+c.at)
				conn, err := net.Dial("tcp", net.JoinHostPort(c.by, strconv.Itoa(int(port))))
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = conn.Close() }()
				if _, err := conn.Write([]byte("request\n")); err != nil {
					t.Fatal(err)
				}
				// This process is no stranger while it has the connection; a child that inherits it is.
				stranger := exec.Command("/bin/cat")
				file, err := conn.(*net.TCPConn).File()
				if err != nil {
					t.Fatal(err)
				}
				stranger.ExtraFiles = []*os.File{file}
				in, err := stranger.StdinPipe()
				if err := errors.Join(err, stranger.Start(), conn.Close(), file.Close()); err != nil {
					t.Fatal(err)
				}
				if !stays {
					if err := errors.Join(in.Close(), stranger.Wait()); err != nil {
						t.Fatal(err)
					}
				} else {
					defer func() { _ = errors.Join(in.Close(), stranger.Wait()) }()
				}
				if _, _, err := Dial(context.Background(), h, port); err == nil ||
					!errors.As(err, new(*StrangerError)) {
					t.Errorf("%v", err)
				}
			})
		}
	}
}

// machine returns an address of this machine other than loopback; a loopback address if it has no other.
func machine(t *testing.T) string {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if n, ok := a.(*net.IPNet); ok && !n.IP.IsLoopback() && n.IP.To4() != nil {
			return n.IP.String()
		}
	}
	return "127.0.0.4"
}

func TestAPluginThatListensEverywhereIsUsed(t *testing.T) {
	for _, at := range []string{"0.0.0.0:0", "[::]:0"} {
		h, port := pluginThat(t, "listen "+at)
		conn, sealed, err := Dial(context.Background(), h, port)
		if err != nil || !sealed {
			t.Fatalf("%s: %v, %v", at, sealed, err)
		}
		_ = conn.Close()
	}
}

func TestWhoeverListensBesideAPluginIsSentNothing(t *testing.T) {
	h, port := plugin(t)
	conn, sealed, err := Dial(context.Background(), h, port)
	if err != nil || !sealed {
		t.Fatal(sealed, err)
	}
	defer func() { _ = conn.Close() }()
	at := "127.0.0.1:" + strconv.Itoa(int(port))
	if said := heard(t, process(t, "beside "+at, 54321), nil); said != strconv.Itoa(int(port)) {
		t.Fatalf("nobody listens beside it: %s", said)
	}
	if other, _, err := Dial(context.Background(), h, port); err == nil {
		_ = other.Close()
		t.Error("it is connected to")
	}
}

// backlog is a listener with connections that nobody has accepted.
func backlog(t *testing.T) (l net.Listener, address *net.TCPAddr) {
	t.Helper()
	l, err := Open("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l, l.Addr().(*net.TCPAddr)
}

// says connects from an address, which is reserved for the test, or from any if that is empty, and says something. If
// that fails, the test does; it may be called on any goroutine.
func says(t *testing.T, from string, to *net.TCPAddr, text string) *net.TCPConn {
	t.Helper()
	dialer := net.Dialer{Control: func(_, _ string, c syscall.RawConn) (err error) {
		if wrong := c.Control(func(fd uintptr) { // beside the reservation
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
		}); wrong != nil {
			return wrong
		}
		return err
	}}
	if from != "" {
		dialer.LocalAddr = net.TCPAddrFromAddrPort(netip.MustParseAddrPort(from))
	}
	conn, err := dialer.DialContext(t.Context(), "tcp", to.String())
	if err != nil {
		t.Error(err)
		return nil
	}
	t.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.Write([]byte(text)); err != nil {
		t.Error(err)
	}
	return conn.(*net.TCPConn)
}

// reset ends a connection so that its addresses are free.
func reset(t *testing.T, conn *net.TCPConn) {
	t.Helper()
	if conn == nil {
		return // which has been reported
	}
	if err := errors.Join(conn.SetLinger(0), conn.Close()); err != nil {
		t.Error(err)
	}
}

// TestADeadConnectionIsNotTakenForTheNextOneFromItsAddress has a stranger leave its request and its port.
func TestADeadConnectionIsNotTakenForTheNextOneFromItsAddress(t *testing.T) {
	for name, guarded := range map[string]func(net.Listener) net.Listener{
		"of the same user": SameUser,
		"of the household": func(l net.Listener) net.Listener {
			return guard(l, func(conn net.Conn) bool { return belongs(household{}, conn) })
		},
	} {
		t.Run(name, func(t *testing.T) {
			l, address := backlog(t)
			from := porttest.Address(t)
			reset(t, says(t, from, address, "a stranger's request"))
			if says(t, from, address, "ours") == nil {
				return
			}
			conn, err := guarded(l).Accept()
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			got := make([]byte, 100)
			if n, err := conn.Read(got); err != nil || string(got[:n]) != "ours" {
				t.Errorf("it reads %q, %v", got[:n], err)
			}
		})
	}
}

// TestAConnectionThatDiesWhileItIsLookedUpIsNotLetIn has its address taken over before the answer is there.
func TestAConnectionThatDiesWhileItIsLookedUpIsNotLetIn(t *testing.T) {
	l, address := backlog(t)
	from := porttest.Address(t)
	dead := says(t, from, address, "a stranger's request")
	first := true
	guarded := guard(l, func(conn net.Conn) bool {
		if first {
			first = false
			if reset(t, dead); says(t, from, address, "ours") == nil {
				_ = l.Close() // nobody else comes
			}
		}
		return ofThisUser(conn)
	})
	conn, err := guarded.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	got := make([]byte, 100)
	if n, err := conn.Read(got); err != nil || string(got[:n]) != "ours" {
		t.Errorf("it reads %q, %v", got[:n], err)
	}
}

// dying is a household whose process ends while its files are looked at.
type dying struct{ ends func() }

func (dying) UID() int { return os.Geteuid() }
func (d dying) Processes() []int {
	d.ends()
	return nil
}

func TestAProcessThatIsKilledWhileItIsLookedUpIsNoStranger(t *testing.T) {
	for _, killed := range []bool{true, false} {
		l, address := backlog(t)
		caller := process(t, address.String(), 0)
		if err := caller.Start(); err != nil {
			t.Fatal(err)
		}
		end := sync.OnceFunc(func() {
			_ = caller.Process.Kill()
			_ = caller.Wait()
		})
		t.Cleanup(end)
		conn, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		told := 0
		h := dying{func() {
			if killed {
				end()
			}
		}}
		if admits(h, conn, func(net.Addr) { told++ }) || told > 0 == killed {
			t.Errorf("killed %v: people are told %d times of a stranger", killed, told)
		}
	}
}

func TestADeadConnectionIsClosedWithoutALookup(t *testing.T) {
	l, address := backlog(t)
	for range 100 {
		reset(t, says(t, "", address, "gone"))
		_ = says(t, "", address, "half gone").CloseWrite()
	}
	lives := says(t, "", address, "lives")
	asked := make(chan net.Addr, 300)
	conn, err := guard(l, func(conn net.Conn) bool { asked <- conn.RemoteAddr(); return true }).Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if first := <-asked; first.String() != lives.LocalAddr().String() || len(asked) > 0 {
		t.Errorf("%v was looked up, and %d others, for %v", first, len(asked), lives.LocalAddr())
	}
}

func TestALookupThatTakesLongHoldsUpNoOtherConnection(t *testing.T) {
	l, address := backlog(t)
	slow := says(t, "", address, "slow").LocalAddr().String()
	fast := says(t, "", address, "fast").LocalAddr().String()
	over := make(chan struct{})
	guarded := guard(l, func(conn net.Conn) bool {
		if conn.RemoteAddr().String() == slow {
			<-over
		}
		return true
	})
	for _, want := range []string{fast, slow} {
		conn, err := guarded.Accept()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if got := conn.RemoteAddr().String(); got != want {
			t.Errorf("%s comes, not %s", got, want)
		}
		if want == fast {
			close(over)
		}
	}
}

func TestAListenerThatIsClosedClosesWhatNobodyHasTaken(t *testing.T) {
	l, address := backlog(t)
	conn := says(t, "", address, "hello")
	found := make(chan struct{})
	guarded := guard(l, func(net.Conn) bool { close(found); return true })
	<-found
	if err := errors.Join(guarded.Close(), guarded.Close()); err != nil {
		t.Error(err)
	}
	if _, err := guarded.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("%v", err)
	}
	if _, err := conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection is open")
	}
}

// TestNoTableIsReadForASocketThatIsGone has a table in which it would still be.
func TestNoTableIsReadForASocketThatIsGone(t *testing.T) {
	if !answers() {
		t.Skip("this kernel answers no requests")
	}
	before := tables
	defer func() { tables = before }()
	tables = []string{t.TempDir() + "/tcp"}
	line := "0: 0100007F:0001 0100007F:0002 01 00000000:00000000 00:00000000 00000000 0 0 4711 1\n"
	if err := os.WriteFile(tables[0], []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	local, remote := netip.MustParseAddrPort("127.0.0.1:1"), netip.MustParseAddrPort("127.0.0.1:2")
	all, err := read(func(s socket) bool { return s.local == local && s.remote == remote })
	if err != nil || len(all) != 1 {
		t.Fatalf("the table has %v, %v", all, err)
	}
	if s, ok := connection(local, remote); ok {
		t.Errorf("it is found: %v", s)
	}
}

// TestAConnectionOfSeveralPathsIsNotMade has a client that would make one, whose first path can end before it does.
func TestAConnectionOfSeveralPathsIsNotMade(t *testing.T) {
	var dialer net.Dialer
	dialer.SetMultipathTCP(true)
	for name, c := range map[string]struct {
		listen func() (net.Listener, error)
		served bool
	}{
		"Open":       {func() (net.Listener, error) { return Open("127.0.0.1:0") }, true},
		"net.Listen": {func() (net.Listener, error) { return net.Listen("tcp", "127.0.0.1:0") }, false},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := c.listen()
			if err != nil {
				t.Fatal(err)
			}
			asked := make(chan bool, 1)
			conn, err := dialer.DialContext(waittest.Context(t), "tcp", l.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			used, err := conn.(*net.TCPConn).MultipathTCP()
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.served && used:
				t.Fatal("it has several paths")
			case !c.served && !used:
				t.Skip("this kernel makes no such connections")
			}
			guarded := guard(l, func(net.Conn) bool { asked <- true; return true })
			if c.served {
				if _, err := guarded.Accept(); err != nil {
					t.Fatal(err)
				}
			} else if _, err := conn.Read(make([]byte, 1)); err == nil || len(asked) > 0 {
				t.Errorf("it is let in: %v", err)
			}
			_ = guarded.Close()
		})
	}
}
