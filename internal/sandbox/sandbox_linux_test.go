package sandbox

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/internal/sandbox/launcher"
	"github.com/deployctl/deployctl/internal/testkit/usertest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"golang.org/x/sys/unix"
)

// madeRanges counts the ranges of userIDs.
var madeRanges atomic.Int64

// userIDs is a range of at most ten ids that no user has, and no other test, also of another process: processes of an
// earlier test, which may still be ending, count as those of their user.
func userIDs(n int64) string {
	const first, most, ranges = 2_000_000_000, 10, 64 // a process has so many ranges, and takes them in turn
	from := first + most*(int64(os.Getpid()%100_000)*ranges+madeRanges.Add(1)%ranges)
	return fmt.Sprintf("%d-%d", from, from+n-1)
}

// inBox runs a shell script in a box, and returns what it writes and how it ends.
func inBox(t *testing.T, b *Box, script string) (string, error) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	cmd.Env, cmd.Dir = []string{"PATH=/usr/bin:/bin"}, b.Home()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	l, err := b.Prepare(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Start(cmd, cmd.Start); err != nil {
		return "", err
	}
	err = cmd.Wait()
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it has left
	b.Ended(cmd.Process.Pid)
	return out.String(), err
}

// box makes a box of a policy for an organization.
func box(t *testing.T, p *Policy, organization, rooms string) *Box {
	t.Helper()
	b, err := p.Box(organization, rooms)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
		if os.Geteuid() != 0 { // the kernel counts none of root's
			waittest.Until(t, "init has reaped what ended in the sandbox: it counts for the next test", func() bool {
				return !leftToInit(t)
			})
		}
	})
	return b
}

// leftToInit reports whether there are processes of this user that have ended and wait for init.
func leftToInit(t *testing.T) bool {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(stats, func(file string) bool {
		info, err := os.Stat(file)
		if err != nil || int(info.Sys().(*syscall.Stat_t).Uid) != os.Geteuid() {
			return false
		}
		stat, _ := os.ReadFile(file) // it may be gone
		_, rest, _ := strings.Cut(string(stat), ") ")
		return strings.HasPrefix(rest, "Z 1 ")
	})
}

// policy makes a policy, or skips the test where the system has none.
func policy(t *testing.T, o Options) *Policy {
	t.Helper()
	if o.Mode == RunAs && maySwitch() != nil {
		t.Skipf("this process may not run others as another user: %v", maySwitch())
	}
	p, _, err := New(o)
	if err != nil {
		t.Fatalf("this system keeps processes apart in no such way: %v", err)
	}
	return p
}

// place is a directory that other users may pass through.
func place(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	return dir
}

func write(t *testing.T, path, text string) string {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
	return path
}

// secretHolder is a process of this user that was started with a secret, as a service that is not secluded.
func secretHolder(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("/bin/cat")
	cmd.Env = []string{"THE_KEY=needle"}
	in, errIn := cmd.StdinPipe()
	out, errOut := cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = errors.Join(cmd.Process.Kill(), cmd.Wait()) })
	// The kernel shows the environment a moment after Start has returned: once the process answers, it is there.
	_, errIn = in.Write([]byte("x"))
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil || errIn != nil {
		t.Fatal(errIn, err)
	}
	return cmd.Process.Pid
}

// modes are the ways to keep processes apart, each with whatever it needs.
func modes(t *testing.T, check func(t *testing.T, o Options)) {
	for _, o := range []Options{
		{Mode: Namespace},
		{Mode: RunAs, RunAs: userIDs(10), Record: filepath.Join(place(t), "uids.json")},
	} {
		t.Run(string(o.Mode), func(t *testing.T) { check(t, o) })
	}
}

func TestAProcessSeesNeitherHiddenFilesNorTheRoomsOfOtherOrganizations(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		dir := place(t)
		key, data := write(t, filepath.Join(dir, "key"), "needle"),
			write(t, filepath.Join(dir, "home", "data", "keys.json"), "needle")
		o.Hide = []string{key, filepath.Join(dir, "home"), filepath.Join(dir, "missing")}
		o.Shared = []string{dir}
		p, rooms := policy(t, o), filepath.Join(dir, "home", "work")
		if err := errors.Join(os.Chmod(dir, 0o711), os.Chmod(filepath.Join(dir, "home"), 0o711)); err != nil {
			t.Fatal(err)
		}
		others := box(t, p, "others", rooms)
		if err := others.Do(func() error {
			return os.WriteFile(filepath.Join(others.Home(), "program"),
				[]byte("needle"), 0o600)
		}); err != nil {
			t.Fatal(err)
		}
		mine := box(t, p, "mine", rooms)
		out, err := inBox(t, mine, fmt.Sprintf(
			`cat %s %s ../../%s/home/program; cat /proc/%d/root%s; umount %s; unshare -Urm sh -c 'umount %s; cat %[2]s'; echo done > mine`,
			key, data, RoomName("others"), os.Getpid(), data, filepath.Join(dir, "home"), filepath.Join(dir, "home")))
		if strings.Contains(out, "needle") || err != nil {
			t.Errorf("%v: %s", err, out)
		}
		if text, err := os.ReadFile(filepath.Join(mine.Home(), "mine")); err != nil || string(text) != "done\n" {
			t.Errorf("its own room has %q, %v", text, err)
		}
	})
}

func TestAProcessReadsNothingOfAProcessOutside(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		b := box(t, policy(t, o), "mine", place(t))
		pid := secretHolder(t)
		outside, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err != nil || !bytes.Contains(outside, []byte("needle")) {
			t.Fatalf("the secret is not where it is looked for: %q, %v", outside, err)
		}
		out, err := inBox(t, b, fmt.Sprintf(`cd /proc/%d; cat environ; cat mem maps; cat fd/0; cat root/etc/hostname; echo; true`, pid))
		if err != nil || strings.Contains(out, "needle") || strings.Contains(out, "r-xp") {
			t.Errorf("%v: %s", err, out)
		}
		if denied := strings.Count(out, "enied"); denied < 5 {
			t.Errorf("%d of 5 attempts were denied: %s", denied, out)
		}
	})
}

func TestAProcessHasNoPrivilegeAndGetsNone(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		b := box(t, policy(t, o), "mine", place(t))
		out, err := inBox(t, b, `grep -E '^(Cap(Eff|Prm|Bnd|Amb)|NoNewPrivs)' /proc/self/status; ulimit -c; cat /proc/self/oom_score_adj`)
		if err != nil {
			t.Fatal(out, err)
		}
		got := strings.Fields(out)
		for i, name := range got[:len(got)-2] {
			kept := name == "CapBnd:" && o.Mode == RunAs // which is what nobody but root can make use of
			if strings.HasPrefix(name, "Cap") && !kept && strings.Trim(got[i+1], "0") != "" {
				t.Errorf("%s %s", name, got[i+1])
			}
		}
		if !strings.Contains(out, "NoNewPrivs:\t1") || !strings.HasSuffix(out, "\n0\n500\n") {
			t.Error(out)
		}
	})
}

func TestAProcessKeepsToItsLimits(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		o.Limits = Limits{Memory: 200 << 20, Processes: 50, Files: 64, FileSize: 1 << 20, CPU: 3600}
		if o.Mode == Namespace && os.Geteuid() == 0 {
			o.Limits.Processes = 0 // the kernel counts none of root's
		}
		b := box(t, policy(t, o), "mine", place(t))
		out, _ := inBox(t, b, `ulimit -d; ulimit -n; ulimit -f; ulimit -t; head -c 2000000 /dev/zero > big; stat -c %s big`)
		for _, want := range []string{"204800", "64", "2048", "3600", "1048576"} {
			if !strings.Contains("\n"+out, "\n"+want+"\n") {
				t.Errorf("no %s in %s", want, out)
			}
		}
		// tail keeps what has no line in it
		out, _ = inBox(t, b, `head -c 500m /dev/zero | tail > /dev/null; echo "memory: $?"`)
		if strings.Contains(out, "memory: 0") {
			t.Errorf("it used 500 MiB: %s", out)
		}
		if o.Limits.Processes == 0 {
			return
		}
		out, _ = inBox(t, b, `i=0; while [ $i -lt 200 ]; do sleep 20 >/dev/null 2>&1 & i=$((i+1)); done; echo all`)
		if !strings.Contains(out, "fork") || strings.Contains(out, "all") {
			t.Errorf("it started 200 processes: %s", out)
		}
	})
}

func TestAProcessRunsThePluginsOfItsOrganizationAndCannotChangeThem(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		b := box(t, policy(t, o), "acme", place(t))
		dir := filepath.Join(b.Plugins(), "one")
		plugin := filepath.Join(dir, "plugin")
		err := errors.Join(os.Mkdir(dir, 0o755), os.WriteFile(plugin, []byte("#!/bin/sh\necho runs\n"), 0o755))
		if err != nil {
			t.Fatal(err)
		}
		if said, err := inBox(t, b, plugin); said != "runs\n" || err != nil {
			t.Errorf("it says %q: %v", said, err)
		}
		for _, change := range []string{"echo x >> " + plugin, "rm -f " + plugin, "mv " + dir + " " + dir + "-away",
			"touch " + dir + "/new", "chmod 777 " + plugin, "mkdir " + dir + "-new"} {
			if said, err := inBox(t, b, change); err == nil {
				t.Errorf("%s succeeded: %s", change, said)
			}
		}
	})
}

func TestTwoOrganizationsNeverShareAUserID(t *testing.T) {
	record := filepath.Join(place(t), "uids.json")
	given := map[int]string{}
	var last error
	for round := range 2 { // the second time, from the record
		ids := &identities{first: 60000, last: 60003, record: record}
		for n := range 5 {
			organization := strconv.Itoa(n)
			id, err := ids.of(organization)
			if err != nil {
				last = err
				continue
			}
			if other, taken := given[id.uid]; taken && other != organization {
				t.Errorf("round %d: %s and %s are both %d", round, other, organization, id.uid)
			}
			given[id.uid] = organization
		}
	}
	if len(given) != 4 || last == nil {
		t.Errorf("%v, %v", given, last)
	}
}

func TestALinkThatAProgramLeavesLeadsTheWorkerNowhere(t *testing.T) {
	p := policy(t, Options{Mode: RunAs, RunAs: userIDs(1),
		Record: filepath.Join(place(t), "uids.json")})
	dir := place(t)
	key := write(t, filepath.Join(dir, "key"), "needle")
	if err := errors.Join(os.Chmod(dir, 0o711), os.Chmod(key, 0o640)); err != nil { // also for root's own group
		t.Fatal(err)
	}
	b := box(t, p, "mine", filepath.Join(dir, "rooms"))
	if out, err := inBox(t, b, "ln -s "+key+" link"); err != nil {
		t.Fatal(out, err)
	}
	link := filepath.Join(b.Home(), "link")
	err := b.Do(func() error { _, err := os.ReadFile(link); return err })
	if !errors.Is(err, fs.ErrPermission) {
		t.Errorf("reading: %v", err)
	}
	if err := b.Do(func() error { return os.WriteFile(link, nil, 0o600) }); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("writing: %v", err)
	}
	if text, err := os.ReadFile(link); err != nil || string(text) != "needle" {
		t.Errorf("the worker itself reads %q, %v", text, err)
	}
}

func TestAProcessSignalsOnlyItsOwn(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		b := box(t, policy(t, o), "mine", place(t))
		out, err := inBox(t, b, fmt.Sprintf("sleep 60 & kill -0 $! && kill $! && echo its own; kill -0 %d && echo "+
			"outside", secretHolder(t)))
		if !strings.Contains(out, "its own") || strings.Contains(out, "outside") {
			t.Errorf("it may signal %s (%v)", out, err)
		}
	})
}

func TestWhatIsNoFileIsNotOpenedForAProgram(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		b := box(t, policy(t, o), "mine", place(t))
		if out, err := inBox(t, b, "mkfifo pipe; echo text > file"); err != nil {
			t.Fatal(out, err)
		}
		for _, path := range []string{filepath.Join(b.Home(), "pipe"), "/dev/zero", "/proc/self/environ",
			"/proc/self/maps"} {
			if file, err := b.Open(path); err == nil {
				t.Errorf("%s is opened", path)
				_ = file.Close()
			}
		}
		if text, err := b.ReadFile(filepath.Join(b.Home(), "file")); err != nil || string(text) != "text\n" {
			t.Errorf("a file is read as %q, %v", text, err)
		}
	})
}

// TestWhatTheFilesOfProcessesLinkToIsNotOpenedForAProgram leads by way of a process of another box, into whose memory
// and directories the worker could see, and of the worker.
func TestWhatTheFilesOfProcessesLinkToIsNotOpenedForAProgram(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		p, rooms := policy(t, o), place(t)
		mine, others := box(t, p, "mine", rooms), box(t, p, "others", rooms)
		other := fmt.Sprintf("/proc/%d/", waiting(t, others))
		secret := write(t, filepath.Join(place(t), "secret"), "needle")
		file, err := os.Open(secret)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = file.Close() }()
		for _, path := range []string{
			other + "root/etc/passwd", other + "root/dev/shm", other + "cwd", other + "exe", other + "fd/0",
			"/proc/self/root/etc/passwd", "/proc/thread-self/cwd", fmt.Sprintf("/proc/self/fd/%d", file.Fd()),
			fmt.Sprintf("/dev/fd/%d", file.Fd()),
		} {
			link := filepath.Join(mine.Home(), "link")
			if out, err := inBox(t, mine, "ln -sfn "+path+" link"); err != nil {
				t.Fatal(out, err)
			}
			for _, way := range []string{path, link} {
				if file, err := mine.Open(way); !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
					t.Errorf("%s by way of %s is opened: %v", path, way, err)
					_ = file.Close()
				}
			}
		}
	})
}

func TestWhatIsHiddenLooksAsIfItWereNotThere(t *testing.T) {
	hidden, dir := place(t), place(t)
	secret := write(t, filepath.Join(hidden, "key"), "needle")
	b := box(t, policy(t, Options{Mode: Namespace, Hide: []string{secret}}), "mine", filepath.Join(dir, "rooms"))
	other := write(t, filepath.Join(dir, "rooms", RoomName("other"), Bundles, "file"), "needle")
	link := filepath.Join(b.Home(), "link")
	if err := os.Symlink(hidden, link); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{secret, other, link, filepath.Join(link, "key"), "/proc/self/root" + secret} {
		_, errOpen := b.Open(path)
		_, errStat := b.Stat(path)
		_, errReal := b.RealPath(path)
		_, errGlob := fs.Stat(b.FS(filepath.Dir(path)), filepath.Base(path))
		for _, err := range []error{errOpen, errStat, errReal, errGlob} {
			if missing := (&fs.PathError{Op: "open", Path: path, Err: syscall.ENOENT}).Error(); err == nil ||
				err.Error() != missing {
				t.Errorf("%v, and not: %s", err, missing)
			}
		}
	}
	replaced := filepath.Join(place(t), "key")
	if err := errors.Join(os.Rename(secret, replaced), os.Symlink(replaced, secret)); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Open(replaced); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("where the secret lies since it was replaced: %v", err)
	}
}

func TestAMissingExecutableIsToldAsWithoutASandbox(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		b := box(t, policy(t, o), "mine", place(t))
		cmd := exec.Command("/nowhere/tool")
		l, err := b.Prepare(cmd)
		if err == nil {
			err = l.Start(cmd, cmd.Start)
		}
		if want := exec.Command("/nowhere/tool").Start(); err == nil || err.Error() != want.Error() ||
			!errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%v; without, %v", err, want)
		}
		if len(b.Processes()) != 0 {
			t.Errorf("it counts as started: %v", b.Processes())
		}
	})
}

func TestAProcessGroupCanBeKilledAndItsEndIsSeen(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		b := box(t, policy(t, o), "mine", place(t))
		cmd := exec.Command("/bin/sh", "-c", "sleep 3600 & wait")
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		l, err := b.Prepare(cmd)
		if err == nil {
			err = l.Start(cmd, cmd.Start)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		if status := cmd.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
			t.Errorf("%v", cmd.ProcessState)
		}
	})
}

func TestTheEnvironmentOfAServiceIsNotWhatTheKernelShows(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "worker")
	cmd.Env = append(os.Environ(), "DEPLOYCTL_KEY=needle", "SANDBOX_TEST_SERVICE=1", "AWS_SECRET_ACCESS_KEY=needle")
	stdin, err1 := cmd.StdinPipe()
	stdout, err2 := cmd.StdoutPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 100)
	n, _ := stdout.Read(said)
	// what it knows, whether it is secluded and dumpable, and the size of its core dumps
	if string(said[:n]) != "needle true 0 0\n" {
		t.Errorf("the service says %q", said[:n])
	}
	shown, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
	// only root may look at all
	if err != nil && !errors.Is(err, fs.ErrPermission) || bytes.Contains(shown, []byte("needle")) {
		t.Errorf("the kernel shows %q, %v", shown, err)
	}
	_ = errors.Join(stdin.Close(), cmd.Wait())
}

// TestMain makes the test binary a service that says what it knows when it is started as one, and a probe.
func TestMain(m *testing.M) {
	if text := os.Getenv(probeVariable); text != "" {
		probe(text)
		return
	}
	if os.Getenv(listenVariable) != "" {
		listen()
		return
	}
	if os.Getenv("SANDBOX_TEST_SERVICE") == "" {
		os.Exit(m.Run())
	}
	dumpable, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	var core unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_CORE, &core)
	fmt.Println(os.Getenv("DEPLOYCTL_KEY"), launcher.Secluded(), dumpable, core.Max)
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// BenchmarkStart is what the sandbox adds to the start of a process.
func BenchmarkStart(b *testing.B) {
	for _, o := range []Options{{Mode: Off}, {Mode: Namespace}} {
		b.Run(string(o.Mode), func(b *testing.B) {
			p, _, err := New(o)
			if err != nil {
				b.Skip(err)
			}
			box, err := p.Box("mine", b.TempDir())
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				cmd := exec.Command("/bin/true")
				l, err := box.Prepare(cmd)
				if err := errors.Join(err, l.Start(cmd, cmd.Start), cmd.Wait()); err != nil {
					b.Fatal(err)
				}
				box.Ended(cmd.Process.Pid)
			}
		})
	}
}

func TestARangeOfUserIDsThatAnAccountHasOrMayTakeIsRefused(t *testing.T) {
	if usertest.Again() {
		t.Skip("it is about ranges that are root's own")
	}
	if err := maySwitch(); err != nil {
		t.Skip(err)
	}
	etc := t.TempDir()
	for name, text := range map[string]string{
		"passwd": "root:x:0:0::/root:/bin/sh\nann:x:5000:5000::/home/ann:/bin/sh\n",
		"subuid": "# by hand\nann:100000:65536\nben:165536:65536\nroot:700000:1000\n0:800000:1000\n",
		"subgid": "ben:400000:10\n",
	} {
		if err := os.WriteFile(filepath.Join(etc, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for given, says := range map[string]string{
		"200000-265535": "from 200000 to 231071 are those of ben (" + etc + "/subuid)",
		"1000-165536":   "of ann (" + etc + "/passwd)",
		"100001-100001": "of ann",
		"165535-165535": "of ann",
		"231071-300000": "from 231071 to 231071 are those of ben",
		"400009-500000": "of ben (" + etc + "/subgid)",
		"99000-99999":   "",
		"231072-399999": "",
		"700000-700010": "", // this user's own
		"800000-800010": "",
		Suggested:       "",
	} {
		_, err := newIdentities(given, "", etc)
		if said := fmt.Sprint(err); (err == nil) != (says == "") || err != nil && (!strings.Contains(said, says) ||
			!strings.Contains(said, Suggested)) {
			t.Errorf("%s: %v", given, err)
		}
	}
	if _, err := newIdentities(Suggested, "", t.TempDir()); err != nil {
		t.Errorf("without the files: %v", err)
	}
}

// TestWithoutAHomeNothingIsKeptWhereAnotherUserCouldHavePutIt has somebody else make the directory first.
func TestWithoutAHomeNothingIsKeptWhereAnotherUserCouldHavePutIt(t *testing.T) {
	t.Setenv("HOME", "")
	t.Setenv("XDG_CACHE_HOME", "")
	t.Setenv("TMPDIR", t.TempDir())
	at := filepath.Join(os.TempDir(), "deployctl-"+strconv.Itoa(os.Getuid()))
	var b *Box
	for what, make := range map[string]func() error{
		"a link":                func() error { return os.Symlink(t.TempDir(), at) },
		"open to others":        func() error { return errors.Join(os.Mkdir(at, 0o700), os.Chmod(at, 0o770)) },
		"of another user":       func() error { return errors.Join(os.Mkdir(at, 0o700), os.Chown(at, 54321, 54321)) },
		"nobody's, and is made": func() error { return nil },
	} {
		if err := make(); err != nil {
			if errors.Is(err, fs.ErrPermission) {
				continue // only root can give it away
			}
			t.Fatal(err)
		}
		cache, err1 := b.Cache()
		locks, err2 := b.Locks()
		if good := strings.HasPrefix(what, "nobody"); (err1 == nil) != good || (err2 == nil) != good {
			t.Errorf("it is %s: %v, %v, %s", what, err1, err2, locks)
		}
		if err1 == nil {
			_ = cache.Close()
		}
		if err := os.RemoveAll(at); err != nil {
			t.Fatal(err)
		}
	}
}

// TestAProgramLearnsOfNoFileOfTheWorkerByTheExecutablesThatItNames names what is hidden from it, and what is nowhere.
func TestAProgramLearnsOfNoFileOfTheWorkerByTheExecutablesThatItNames(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		dir := place(t)
		home := filepath.Join(dir, "home")
		there := write(t, filepath.Join(home, "data", "keys.json"), "needle")
		o.Hide = []string{home}
		if err := os.Chmod(home, 0o700); err != nil {
			t.Fatal(err)
		}
		b := box(t, policy(t, o), "mine", place(t))
		if _, err := b.Executable("/bin/sh"); err != nil {
			t.Errorf("what everybody may run is not found: %v", err)
		}
		_, present := b.Executable(there)
		_, absent := b.Executable(filepath.Join(home, "data", "nothing"))
		if present == nil || absent == nil {
			t.Fatalf("an executable is found: %v, %v", present, absent)
		}
		if a := strings.ReplaceAll(present.Error(), "keys.json", "nothing"); a != absent.Error() {
			t.Errorf("what is there is told from what is not: %v, %v", present, absent)
		}
	})
}
