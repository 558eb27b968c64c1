package sandbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/internal/sys/doors"
	"github.com/deployctl/deployctl/internal/testkit/usertest"
	"golang.org/x/sys/unix"
)

var update = flag.Bool("update", false, "write the table of docs/sandbox.md as it is observed")

// reach is one thing that a program tries to reach, a row of the table.
type reach struct {
	What string
	// One of these says how it is tried.
	File, Dir, Device string // read it, and change it
	Unix, TCP         string // connect, and hear somebody say hello
	PID               int    // send a signal
	Environ           int    // read the environment of a process
}

const needleText = "needle"

// The answers of a probe, and the words of the table.
const (
	nothing = "–"
	reads   = "reads"
	changes = "changes"
	reaches = "reaches"
)

// probeVariable has what a process of a box is to try, which is this binary then.
const probeVariable = "SANDBOX_TEST_PROBE"

// probe tries everything and answers with a word for each.
func probe(text string) {
	var tries []reach
	if err := json.Unmarshal([]byte(text), &tries); err != nil {
		panic(err)
	}
	var answers []string
	for _, try := range tries {
		answers = append(answers, try.try())
	}
	_ = json.NewEncoder(os.Stdout).Encode(answers)
}

func (r reach) try() string {
	answer := nothing
	hears := func(network, address string) {
		conn, err := net.Dial(network, address)
		if err != nil {
			return
		}
		defer func() { _ = conn.Close() }()
		if said, _ := io.ReadAll(conn); string(said) == needleText {
			answer = reaches
		}
	}
	switch {
	case r.File != "":
		if text, err := os.ReadFile(r.File); err == nil && strings.Contains(string(text), needleText) {
			answer = reads
		}
		if f, err := os.OpenFile(r.File, os.O_WRONLY|os.O_APPEND, 0); err == nil { // what comes of it is seen outside
			_, _ = f.WriteString(".")
			_ = f.Close()
		}
	case r.Dir != "":
		if entries, err := os.ReadDir(r.Dir); err == nil && len(entries) > 0 {
			answer = reads
		}
		_ = os.MkdirAll(filepath.Join(r.Dir, "planted"), 0o700)
	case r.Device != "":
		if f, err := os.OpenFile(r.Device, os.O_RDWR|unix.O_NOCTTY|unix.O_NONBLOCK, 0); err == nil {
			answer = changes
			_ = f.Close()
		}
	case r.Unix != "":
		hears("unix", r.Unix)
	case r.TCP != "":
		hears("tcp", r.TCP)
	case r.PID != 0:
		if syscall.Kill(r.PID, 0) == nil {
			answer = reaches
		}
	case r.Environ != 0:
		if text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", r.Environ)); err == nil && len(text) > 0 {
			answer = reads
		}
	}
	return answer
}

// greet says hello to whoever connects.
func greet(t *testing.T, listener net.Listener, err error) string {
	t.Helper()
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
			_, _ = conn.Write([]byte(needleText)) // it may have gone
			_ = conn.Close()
		}
	}()
	return listener.Addr().String()
}

// waiting is a process of a box that waits until the test ends.
func waiting(t *testing.T, b *Box) int {
	t.Helper()
	startAsked(t, b)
	return b.Processes()[0]
}

// terminal opens one of this process's user.
func terminal(t *testing.T) string {
	t.Helper()
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = main.Close() })
	number, err := unix.IoctlGetInt(int(main.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(main.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("/dev/pts/%d", number)
}

// machine is a worker's account, with a bit of everything, in a directory that every user can pass through if that is
// possible.
func machine(t *testing.T) (base string) {
	t.Helper()
	parent, err := os.UserCacheDir()
	if os.Geteuid() == 0 {
		parent, err = "/opt", nil
	}
	if err == nil {
		err = os.MkdirAll(parent, 0o755) //nolint:gosec // as it is on every machine
	}
	if err == nil {
		base, err = os.MkdirTemp(parent, "machine-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	for _, dir := range []string{"", "home", "tools", "tools/bin", "tmp", "tmp/deployctl-worker-1"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(base, dir), 0o755), //nolint:gosec // others pass through
			os.Chmod(filepath.Join(base, dir), 0o755)); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", filepath.Join(base, "home"))
	t.Setenv("PATH", filepath.Join(base, "tools", "bin")+":/usr/bin:/bin")
	t.Setenv("TMPDIR", filepath.Join(base, "tmp"))
	t.Setenv("XDG_RUNTIME_DIR", "")
	return base
}

// tries returns what is tried from a box of the organization "mine", in the order of the table.
func tries(t *testing.T, base string, p *Policy) (*Box, []reach) {
	t.Helper()
	home := filepath.Join(base, "home")
	key, ssh := write(t, filepath.Join(base, "keys", "key"), needleText), write(t, filepath.Join(home, ".ssh", "id.pub"),
		needleText)
	tool := write(t, filepath.Join(base, "tools", "bin", "tool"), needleText)
	temp := write(t, filepath.Join(base, "tmp", "deployctl-worker-1", "file"), needleText)
	shared := filepath.Join("/dev/shm", filepath.Base(base))
	t.Cleanup(func() { _ = os.Remove(shared) })
	write(t, shared, needleText)
	rooms := filepath.Join(base, "tmp", "deployctl-worker-1", "organizations")
	mine, again, others := box(t, p, "mine", rooms), box(t, p, "mine", rooms), box(t, p, "others", rooms)
	for _, b := range []*Box{mine, others} {
		if out, err := inBox(t, b, "echo "+needleText+" > file"); err != nil {
			t.Fatal(out, err)
		}
	}
	plugin, foreignPlugin := filepath.Join(mine.Plugins(), "plugin"), filepath.Join(others.Plugins(), "plugin")
	agent, tmux := filepath.Join(home, ".agent", "socket"), filepath.Join(base, "tmp", "socket")
	if err := errors.Join(os.WriteFile(plugin, []byte(needleText), 0o755), os.Mkdir(filepath.Dir(agent), 0o700),
		os.WriteFile(foreignPlugin, []byte(needleText), 0o755), os.Chmod(tool, 0o755)); err != nil {
		t.Fatal(err)
	}
	listen := func(network, address string) string {
		listener, err := net.Listen(network, address)
		return greet(t, listener, err)
	}
	refused := func(net.Addr) {}
	own, err1 := doors.Listen(mine, refused)
	foreign, err2 := doors.Listen(others, refused)
	return mine, []reach{
		{What: "files of its organization", File: filepath.Join(mine.Home(), "file")},
		{What: "files of another organization", File: filepath.Join(others.Home(), "file")},
		{What: "plugins that the worker has downloaded for its organization", File: plugin},
		{What: "plugins that the worker has downloaded for another organization", File: foreignPlugin},
		{What: "processes of another update of its organization", PID: waiting(t, again)},
		{What: "processes of another organization", PID: waiting(t, others)},
		{What: "ports of its own update", TCP: greet(t, own, err1)},
		{What: "ports of another update", TCP: greet(t, foreign, err2)},
		{What: "key files, and other secrets of the settings", File: key},
		{What: "the settings file, where there is none", Dir: filepath.Join(home, ".config", "deployctl")},
		{What: "cloud credentials in the worker's HOME",
			File: write(t, filepath.Join(home, ".aws", "credentials"), needleText)},
		{What: "cloud credentials, where there are none", Dir: filepath.Join(home, ".azure")},
		{What: "other files of the worker's HOME", File: ssh},
		{What: "directories of PATH", Dir: filepath.Dir(tool)},
		{What: "executables on PATH", File: tool},
		{What: "the worker's temporary files", File: temp},
		{What: "TMPDIR of the worker", Dir: filepath.Join(base, "tmp")},
		{What: "the worker's environment", Environ: secretHolder(t)},
		{What: "the worker, and other processes of its user, by signals", PID: secretHolder(t)},
		{What: "sockets of the worker's user in HOME", Unix: listen("unix", agent)},
		{What: "sockets of the worker's user in TMPDIR", Unix: listen("unix", tmux)},
		{What: "abstract sockets of the worker's user", Unix: listen("unix", "@"+filepath.Base(base))},
		{What: "terminals of the worker's user", Device: terminal(t)},
		{What: "shared memory of the worker's user", File: shared},
		{What: "control groups", Dir: "/sys/fs/cgroup"},
		{What: "the network, as the worker does", TCP: listen("tcp", "127.0.0.1:0")},
	}
}

// outcome is what a program has reached, by its own answer and by what it has changed.
func (r reach) outcome(t *testing.T, answer string) string {
	t.Helper()
	if r.File != "" {
		if text, err := os.ReadFile(r.File); err != nil {
			t.Fatal(err)
		} else if strings.HasSuffix(string(text), ".") {
			return changes
		}
	}
	if r.Dir != "" {
		planted := filepath.Join(r.Dir, "planted")
		if _, err := os.Stat(planted); err == nil {
			_ = os.Remove(planted)
			return changes
		}
	}
	return answer
}

// observe lets a program try everything.
func observe(t *testing.T, o Options) (rows []string, seen []string) {
	base := machine(t)
	o.Hide = []string{filepath.Join(base, "keys", "key")}
	if !o.OneUser {
		o.Hide = append(o.Hide, filepath.Join(base, "home", ".aws"))
	}
	if o.Mode == RunAs {
		o.Record = filepath.Join(base, "keys", "users.json")
	}
	b, all := tries(t, base, policy(t, o))
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{probeVariable + "=" + string(text)}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	l, err := b.Prepare(cmd)
	if err == nil {
		err = l.Start(cmd, cmd.Start)
	}
	if err == nil {
		err = cmd.Wait()
	}
	var answers []string
	if err := errors.Join(err, json.Unmarshal(out.Bytes(), &answers)); err != nil || len(answers) != len(all) {
		t.Fatalf("%v: %s", err, &complaint)
	}
	for i, r := range all {
		rows, seen = append(rows, r.What), append(seen, r.outcome(t, answers[i]))
	}
	return rows, seen
}

// The table is between these lines of the page.
const (
	pageOfReach = "../../docs/sandbox.md"
	tableBegins = "<!-- observed: go test ./internal/sandbox -run ThePageSays -update, as root -->\n"
	tableEnds   = "<!-- end of what is observed -->\n"
)

func TestThePageSaysWhatAProgramReaches(t *testing.T) {
	if !scoped() {
		t.Skip("the page is about Linux 6.12 and later")
	}
	if usertest.Again() {
		t.Skip("the page is not there, and is about root where that can do more")
	}
	text, err := os.ReadFile(pageOfReach)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok1 := strings.Cut(string(text), tableBegins)
	table, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok1 || !ok2 {
		t.Fatal("the page has no place for the table")
	}
	columns := []struct {
		name string
		o    Options
	}{
		{"`namespace`", Options{Mode: Namespace}},
		{"`namespace` on the embedded service", Options{Mode: Namespace, OneUser: true}},
		{"`run-as`", Options{Mode: RunAs, RunAs: userIDs(10)}},
	}
	var lines []string
	for i, column := range columns {
		t.Run(column.name, func(t *testing.T) {
			rows, seen := observe(t, column.o)
			if i == 0 {
				lines = append([]string{"a program …"}, rows...)
			}
			for row, word := range append([]string{column.name}, seen...) {
				lines[row] += " | " + word
			}
		})
	}
	said := strings.Split(strings.TrimSpace(table), "\n")
	if *update && os.Geteuid() == 0 {
		var made strings.Builder
		for i, line := range lines {
			fmt.Fprintf(&made, "| %s |\n", line)
			if i == 0 {
				made.WriteString("|---|---|---|---|\n")
			}
		}
		if err := os.WriteFile(pageOfReach, []byte(before+tableBegins+made.String()+tableEnds+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	said = append(said[:min(1, len(said))], said[min(2, len(said)):]...) // but for the line below the head
	for i, line := range lines {                                         // a column that could not be observed is missing
		if i >= len(said) || !strings.HasPrefix(said[i], "| "+line+" |") {
			t.Errorf("the page does not say: %s", line)
		}
	}
	if len(said) != len(lines) {
		t.Errorf("the page has %d lines, and %d were observed", len(said), len(lines))
	}
}
