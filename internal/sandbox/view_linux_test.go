package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// account makes HOME a directory with a file in it, and PATH one with the tools of HOME and of the system.
func account(t *testing.T) (home string) {
	t.Helper()
	outside, err := os.UserCacheDir() // of the directories that programs have for themselves
	if err == nil {
		err = os.MkdirAll(outside, 0o700)
	}
	if err == nil {
		home, err = os.MkdirTemp(outside, "account-")
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(home) })
	t.Setenv("HOME", home)
	t.Setenv("XDG_RUNTIME_DIR", "")
	t.Setenv("PATH", filepath.Join(home, "tools", "bin")+":/usr/bin:/bin")
	write(t, filepath.Join(home, "tools", "bin", "tool"), "tool\n")
	write(t, filepath.Join(home, "tools", "lib", "part"), "part\n")
	write(t, filepath.Join(home, ".ssh", "id.pub"), "key\n")
	return home
}

// refusals runs shell commands in a box, each of which must fail.
func refusals(t *testing.T, b *Box, commands ...string) {
	t.Helper()
	for _, command := range commands {
		if out, err := inBox(t, b, command); err == nil {
			t.Errorf("%s succeeds: %s", command, out)
		}
	}
}

func TestAProgramChangesNothingThatTheWorkerReads(t *testing.T) {
	for _, oneUser := range []bool{false, true} {
		t.Run(fmt.Sprintf("one user %t", oneUser), func(t *testing.T) {
			home := account(t)
			missing := filepath.Join(home, ".aws", "config")
			p := policy(t, Options{Mode: Namespace, OneUser: oneUser, Hide: []string{filepath.Dir(missing)}})
			b := box(t, p, "mine", t.TempDir())
			self, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			refusals(t, b,
				"mkdir "+filepath.Dir(missing), "ln -s /usr "+filepath.Dir(missing), "mkdir -p "+home+"/.config/deployctl",
				"touch "+home+"/tools/bin/tool", "touch "+home+"/tools/bin/sh", "touch "+home+"/tools/lib/part", "touch "+self,
				"mv "+home+" "+home+"-away", "test -w /usr/local/bin", "test -w /sys/fs/cgroup",
				"test -w /proc/sys/kernel/core_pattern",
				"echo 1000 > /proc/"+fmt.Sprint(secretHolder(t))+"/oom_score_adj")
			out, err := inBox(t, b, `cat `+home+`/tools/bin/tool `+home+`/tools/lib/part; mkdir -p "$HOME/.aws" /tmp/mine
				echo mine > "$HOME/.aws/config"; cat "$HOME/.aws/config"`)
			if err != nil || out != "tool\npart\nmine\n" {
				t.Errorf("what is its own: %v: %s", err, out)
			}
			if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("%s is there: %v", missing, err)
			}
		})
	}
}

func TestAProgramOfAWorkerReadsNothingOfItsHome(t *testing.T) {
	home := account(t)
	refusals(t, box(t, policy(t, Options{Mode: Namespace}), "mine", t.TempDir()), "cat "+home+"/.ssh/id.pub")
}

func TestAProgramOfTheUserReadsTheUsersFilesAndChangesCredentialsForItselfAlone(t *testing.T) {
	home := account(t)
	token := write(t, filepath.Join(home, ".azure", "token"), "old\n")
	write(t, filepath.Join(home, ".config", "tool", "settings"), "settings\n")
	write(t, filepath.Join(home, ".cache", "cached"), "cached\n")
	p := policy(t, Options{Mode: Namespace, OneUser: true})
	rooms := t.TempDir()
	b := box(t, p, "mine", rooms)
	out, err := inBox(t, b, `cd; cat .ssh/id.pub .config/tool/settings .azure/token
		echo new > .azure/token && echo other > .azure/other && rm .azure/token && echo newer > .azure/token
		cat .azure/token; cat .cache/cached 2>/dev/null; mkdir -p .cache && echo mine > .cache/mine; echo kept > /tmp/kept`)
	if err != nil || out != "key\nsettings\nold\nnewer\n" {
		t.Errorf("%v: %s", err, out)
	}
	if text, err := os.ReadFile(token); string(text) != "old\n" {
		t.Errorf("the user's own file has %q, %v", text, err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := p.Box("mine", rooms)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	out, err = inBox(t, again, "cat ~/.azure/token ~/.cache/mine /tmp/kept")
	if err != nil || out != "old\nmine\nkept\n" {
		t.Errorf("the next update: %v: %s", err, out)
	}
	if text, err := again.ReadFile("/tmp/kept"); err != nil || string(text) != "kept\n" {
		t.Errorf("the worker reads the program's file as %q, %v", text, err)
	}
}

func TestALinkToADirectoryOfTheSystemHidesNothingOfIt(t *testing.T) {
	home := account(t)
	if err := os.Symlink("/usr", filepath.Join(home, ".aws")); err != nil {
		t.Fatal(err)
	}
	p, warnings, err := New(Options{Mode: Namespace, Hide: []string{filepath.Join(home, ".aws")}})
	if err != nil || !strings.Contains(strings.Join(warnings, "\n"), "programs can read /usr") {
		t.Fatal(err, warnings)
	}
	if out, err := inBox(t, box(t, p, "mine", t.TempDir()), "ls /usr/bin/env"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestAProgramReachesNoSocketOfItsUser(t *testing.T) {
	home := account(t)
	shared := t.TempDir()
	p := policy(t, Options{Mode: Namespace, OneUser: true, Shared: []string{shared}})
	b := box(t, p, "mine", t.TempDir())
	for path, reached := range map[string]bool{
		filepath.Join(home, ".agent", "socket"): false, filepath.Join(home, ".ssh", "agent"): false,
		filepath.Join(t.TempDir(), "socket"): false, filepath.Join(shared, "socket"): true,
	} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		out, err := inBox(t, b, "test -S "+path)
		if (err == nil) != reached {
			t.Errorf("%s can be reached: %t (%s)", path, err == nil, out)
		}
		_ = listener.Close()
	}
}

// Daemons bind a socket by another name than that by which they are known: one that they rename or link, as supervisord
// and ssh do, or one of their directory.
func TestAProgramReachesNoSocketThatWasBoundByAnotherName(t *testing.T) {
	home := account(t)
	b := box(t, policy(t, Options{Mode: Namespace, OneUser: true}), "mine", t.TempDir())
	for how, serve := range map[string]func(dir, name string) (net.Listener, error){
		"linked": func(dir, name string) (net.Listener, error) {
			listener, err := net.Listen("unix", filepath.Join(dir, "new"))
			return listener, errors.Join(err, os.Link(filepath.Join(dir, "new"), filepath.Join(dir, name)),
				os.Remove(filepath.Join(dir, "new")))
		},
		"renamed": func(dir, name string) (net.Listener, error) {
			listener, err := net.Listen("unix", filepath.Join(dir, "new"))
			return listener, errors.Join(err, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, name)))
		},
		"of its directory": func(dir, name string) (net.Listener, error) {
			t.Chdir(dir)
			return net.Listen("unix", name)
		},
	} {
		dir := filepath.Join(home, ".daemon", how)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		listener, err := serve(dir, "socket")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		if out, err := inBox(t, b, "test -S '"+filepath.Join(dir, "socket")+"'"); err == nil {
			t.Errorf("one that is %s can be reached: %s", how, out)
		}
	}
}

// The stock CLI keeps a token of the embedded service in the Pulumi home, which it makes after the service has started.
func TestAProgramReadsNoTokenOfTheStockCLI(t *testing.T) {
	home := account(t)
	b := box(t, policy(t, Options{Mode: Namespace, OneUser: true}), "mine", t.TempDir())
	token := write(t, filepath.Join(home, ".pulumi", "credentials.json"), "needle\n")
	tool := write(t, filepath.Join(home, ".pulumi", "bin", "tool"), "tool\n")
	refusals(t, b, "cat "+token, "cat ~/.pulumi/credentials.json")
	if out, err := inBox(t, b, "cat "+tool); err != nil || out != "tool\n" {
		t.Errorf("what the Pulumi home has for programs: %v, %s", err, out)
	}
}

func TestAProgramHasNoDeviceOfTheMachineAndTerminalsOfItsOwn(t *testing.T) {
	b := box(t, policy(t, Options{Mode: Namespace}), "mine", place(t))
	write(t, "/dev/shm/of-another", "needle")
	t.Cleanup(func() { _ = os.Remove("/dev/shm/of-another") })
	out, err := inBox(t, b, `for f in /dev/*; do test -b $f && echo $f; done; ls /dev/shm; touch /dev/shm/mine && rm /dev/shm/mine
		echo x > /dev/null; head -c 4 /dev/urandom | wc -c; touch /dev/new 2>/dev/null && echo new
		ls /dev/pts | grep -v ptmx; script -qec tty /dev/null | grep -c dev/pts`)
	if err != nil || out != "4\n1\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// What lies in shared memory is no process's: when the machine has no more, the kernel ends the largest processes,
// those of others, before the one that has filled it.
func TestAProgramFillsNoMemoryOfTheMachineByItsSharedMemory(t *testing.T) {
	b := box(t, policy(t, Options{Mode: Namespace}), "mine", place(t))
	out, err := inBox(t, b, `head -c 300000000 /dev/zero > /dev/shm/all 2>/dev/null; stat -c %s /dev/shm/all
		rm /dev/shm/all; mkdir /dev/shm/d && cd /dev/shm/d && seq 70000 | xargs touch 2>/dev/null; ls -f | wc -l`)
	var bytes, files int
	if _, scanned := fmt.Sscan(out, &bytes, &files); err != nil || scanned != nil || bytes > 256<<20 || files > 1<<16 {
		t.Errorf("%v: it has %d bytes and %d files: %s", err, bytes, files, out)
	}
}

func TestACacheIsSharedOnlyInASharedDirectory(t *testing.T) {
	shared, own := t.TempDir(), account(t)
	b := box(t, policy(t, Options{Mode: Namespace, Shared: []string{shared}}), "mine", t.TempDir())
	env := b.sees().withoutCaches([]string{"GOCACHE=" + filepath.Join(shared, "go"), "GOPATH=" + own, "A=b"})
	if fmt.Sprint(env) != fmt.Sprint([]string{"GOCACHE=" + filepath.Join(shared, "go"), "A=b"}) {
		t.Error(env)
	}
	if out, err := inBox(t, b, "mkdir "+filepath.Join(shared, "go")); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestASharedDirectoryOpensNothingThatTheWorkerReads(t *testing.T) {
	shared := t.TempDir()
	settings := write(t, filepath.Join(shared, "etc", "settings"), "settings\n")
	absent := filepath.Join(shared, "etc", "deployctl", "more")
	b := box(t, policy(t, Options{Mode: Namespace, Shared: []string{shared}, Reads: []string{settings, absent}}), "mine",
		t.TempDir())
	refusals(t, b, "echo >> "+settings, "rm "+settings, "mkdir "+filepath.Dir(absent), "mv "+shared+"/etc "+shared+"/x")
	if out, err := inBox(t, b, "touch "+shared+"/mine"); err != nil {
		t.Errorf("%v: %s", err, out)
	}
	absent = filepath.Join(shared, "absent")
	if _, _, err := New(Options{Mode: Namespace, Shared: []string{shared}, Reads: []string{absent}}); err == nil ||
		!strings.Contains(err.Error(), absent) {
		t.Errorf("a file that is not there yet: %v", err)
	}
}

func TestAWorkerDoesNotStartWhereTheUsersOfProgramsCanChangeWhatItReads(t *testing.T) {
	dir := place(t)
	file := write(t, filepath.Join(dir, "own", "file"), "")
	open := filepath.Join(dir, "open")
	sticky := filepath.Join(dir, "sticky")
	err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777), os.Mkdir(sticky, 0o700),
		os.Chmod(sticky, 0o777|os.ModeSticky), os.Symlink(file, filepath.Join(open, "link")))
	if err != nil {
		t.Fatal(err)
	}
	kept := write(t, filepath.Join(sticky, "kept"), "")
	o := Options{Mode: RunAs, RunAs: userIDs(10), Record: filepath.Join(dir, "uids.json")}
	o.Reads = []string{file, kept, filepath.Join(dir, "own", "absent")}
	policy(t, o)
	for _, path := range []string{open, filepath.Join(open, "absent", "file"), filepath.Join(open, "link"), sticky,
		filepath.Join(sticky, "absent")} {
		o.Reads = []string{path}
		if _, _, err := New(o); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestAutoChoosesForSeveralOrganizationsOnlyWhatKeepsThemApart(t *testing.T) {
	policy(t, Options{Mode: Auto, Several: true})
	had := scoped
	t.Cleanup(func() { scoped = had })
	scoped = func() bool { return false }
	if _, _, err := New(Options{Mode: Auto, Several: true}); err == nil || !strings.Contains(err.Error(), "6.12") {
		t.Errorf("for several: %v", err)
	}
	for _, o := range []Options{{Mode: Auto}, {Mode: Namespace, Several: true}} {
		p, warnings, err := New(o)
		if err != nil || p.Mode() != Namespace || !strings.Contains(strings.Join(warnings, "\n"), "6.12") {
			t.Errorf("%+v: %v %v", o, warnings, err)
		}
	}
}
