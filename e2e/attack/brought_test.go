//go:build unix

package attack

import (
	"net"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
)

// programAttacks are those of what users bring: programs, and the plugins that they ask for.
var programAttacks = []attack{
	{"program/assets-of-others", assetsOfOthers},
	{"program/fetches", fetches},
	{"program/service-bucket", serviceBucket},
	{"program/processes", processes},
	{"program/next-start", nextStart},
	{"program/sockets-of-the-user", socketsOfTheUser},
	{"program/ports-of-another-update", portsOfAnotherUpdate},
	{"program/links-in-its-place", linksInItsPlace},
	{"program/files-of-processes", filesOfProcesses},
	{"program/user-namespaces", userNamespaces},
	{"program/left-processes", leftProcesses},
	{"program/links-in-home", linksInHome},
	{"program/pipe-for-the-service", pipeForTheService},
	{"program/runtime-path", runtimePath},
	{"program/escape-sequences", escapesOfAProgram},
	{"plugin/processes", processesOfAPlugin},
	{"program/long-urns", longURNs},
	{"program/endless-tools", endlessTools},
	{"program/endless-steps", endlessSteps},
	{"plugin/escape-sequences", escapesOfAPlugin},
	{"plugin/two-causes", twoCauses},
	{"plugin/deep-names", deepNames},
	{"plugin/doubling-schema", doublingSchema},
}

// script makes a project whose program is a shell script, with a stack dev, and returns deployctl in its directory.
// What the script writes to $FOUND, the second one reads.
func (f *field) script(t *testing.T, name, text string, env ...string) (tool *harness.Tool, found func() string) {
	t.Helper()
	report := filepath.Join(t.TempDir(), "found")
	dir := t.TempDir()
	harness.Files{
		"Pulumi.yaml": "name: " + name + "\nruntime: {name: go, options: {binary: ./program}}\n", "go.mod": "module " +
			name + "\n",
		"program": "#!/bin/bash\nFOUND=" + report + "\necho begins >> $FOUND\n" + text +
			"\necho ends >> $FOUND\nexit 1\n",
	}.Write(t, dir)
	harness.Must(t, os.Chmod(filepath.Join(dir, "program"), 0o700)) //nolint:gosec // it is run
	tool = f.Deployctl(dir, env...)
	tool.Must(t, "stack", "init", "dev")
	return tool, func() string {
		said, err := os.ReadFile(report)
		if text := string(said); err != nil || !strings.Contains(text, "begins") || !strings.Contains(text, "ends") {
			t.Errorf("it did not run: %v %s", err, text)
		}
		return string(said)
	}
}

// sandboxed skips an attack where programs are not kept apart.
func sandboxed(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("programs are kept apart on Linux only: see docs/sandbox.md")
	}
}

// assetsOfOthers names as assets what the program itself cannot read, or what has no end, and leaves the hashes to the
// service.
func assetsOfOthers(t *testing.T, f *field) {
	sandboxed(t)
	const asset, archive = "c44067f5952c0a294b673a41bacd8c17", "0def7320c3a5731c473e5ecbe6d01bc7"
	keys := filepath.Join(f.State(), "data", "keys.json")
	for name, value := range map[string]string{
		"key": asset + ", path: " + keys, "uri": asset + ", uri: 'file://" + keys + "'", "environment": asset +
			", path: /proc/self/environ",
		"endless": asset + ", path: /dev/zero", "directory": archive + ", path: " + filepath.Dir(keys),
		"link": asset + ", path: link",
	} {
		tool := f.project(t, "assets-"+name, `
packages: [{name: fake, version: 0.1.0}]
steps:
  - {register: thing, type: fake:index:Auto, properties: {settings: {file: {4dabf18193072939515e22adb298388d: `+value+`}}}}
`, "FAKECLOUD_ENDPOINT="+f.cloud.URL())
		if name == "link" {
			harness.Edit(t, filepath.Join(tool.Dir, "scenario.yaml"), "path: link", "path: /proc/self/root"+keys)
		}
		end := tool.Run(t, "up", "--yes", "--skip-preview")
		if end.Code == 0 || !strings.Contains(end.Said(), "cannot be computed") {
			t.Errorf("%s: the update ends with %d: %s", name, end.Code, end.Said())
			tool.Run(t, "destroy", "--yes", "--skip-preview")
		}
	}
}

// theft looks at the service's processes and files, asks whether it may end them, and writes down what it may.
const theft = `
for p in $(pgrep deployctl) $PPID; do
  tr '\0' '\n' < /proc/$p/environ 2>/dev/null | grep -q . &&
    [ "$(tr '\0' '\n' < /proc/$p/cmdline 2>/dev/null | sed -n 2p)" = dev ] &&
    echo "LEAK: environment of $p" >> $FOUND
  [ "$(tr '\0' '\n' < /proc/$p/cmdline 2>/dev/null | sed -n 2p)" = dev ] || continue
  seen=yes
  kill -0 $p 2>/dev/null && echo "LEAK: may end $p" >> $FOUND
  # Of a process that is ending, both open for everybody and are empty. The text of a Go program begins at 0x400000.
  [ "$(head -c 64 /proc/$p/maps 2> /dev/null | wc -c)" -gt 0 ] && echo "LEAK: maps of $p" >> $FOUND
  [ "$(dd if=/proc/$p/mem bs=4096 skip=1024 count=1 2> /dev/null | wc -c)" -gt 0 ] &&
    echo "LEAK: memory of $p" >> $FOUND
  readlink /proc/$p/fd/* > /dev/null 2>&1 && echo "LEAK: files of $p" >> $FOUND
  cat "/proc/$p/root$STATE/data/keys.json" > /dev/null 2>&1 && echo "LEAK: keys by way of $p" >> $FOUND
done
[ "$seen" = yes ] || echo "LEAK: it saw no process of the service" >> $FOUND
for file in $STATE/data/keys.json $STATE/data/s3/*/keys/ring.json $STATE/token $STATE/data/*; do
  [ -s "$file" ] && [ -f "$file" ] && cat "$file" > /dev/null 2>&1 && echo "LEAK: $file" >> $FOUND
done
touch $STATE/data/planted $STATE/planted 2>/dev/null && [ -e $STATE/data/planted ] &&
  echo "planted in what it sees" >> $FOUND
`

func processes(t *testing.T, f *field) {
	sandboxed(t)
	tool, found := f.script(t, "processes", "STATE='"+f.State()+"'"+theft)
	tool.Run(t, "up", "--yes", "--skip-preview")
	f.noTheft(t, found())
}

// noTheft fails the test if a theft got anything.
func (f *field) noTheft(t *testing.T, found string) {
	t.Helper()
	for line := range strings.Lines(found) {
		if strings.HasPrefix(line, "LEAK") {
			t.Error(line)
		}
	}
	if _, err := os.Stat(filepath.Join(f.State(), "data", "planted")); err == nil {
		t.Error("it has put a file among the service's")
	}
}

// portsOfAnotherUpdate has one update's program knock at the ports of another update, which runs at the same time on
// the same worker under the same user.
func portsOfAnotherUpdate(t *testing.T, f *field) {
	sandboxed(t)
	gate, err := f.hold(t)
	harness.Must(t, err)
	s := f.status(t)
	var public []string
	for _, address := range []string{
		s.APIAddress, s.PulumiAddress, s.ConsoleAddress, s.TemporalAddress, s.UIURL, f.S3(t).Endpoint, f.vitals,
	} {
		if u, err := url.Parse(address); err == nil && u.Port() != "" {
			public = append(public, u.Port())
		} else if _, port, err := net.SplitHostPort(address); err == nil {
			public = append(public, port)
		}
	}
	tool, found := f.script(t, "knocker", "PUBLIC=' "+strings.Join(public, " ")+" '"+`
trap '' PIPE
own=" ${PULUMI_MONITOR##*:} ${PULUMI_ENGINE##*:} "
while read -r _ local _ state _; do
  [ "$state" = 0A ] || continue
  port=$((16#${local##*:}))
  case "$PUBLIC$own" in *" $port "*) continue ;; esac
  knocked=$((knocked+1))
  exec 3<> /dev/tcp/127.0.0.1/$port || continue
  printf 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0' >&3
  n=$(timeout 1 head -c 9 <&3 | wc -c)
  exec 3>&-
  [ "$n" -ge 9 ] && echo "ANSWERS: $port" >> $FOUND
done < /proc/net/tcp 2>/dev/null
echo "own: $own knocked: $knocked" >> $FOUND
`)
	tool.Run(t, "up", "--yes", "--skip-preview")
	said, owned := found(), f.listening(t)
	gate(t)
	if !strings.Contains(said, "knocked: ") || strings.Contains(said, "own:   ") {
		t.Errorf("it did not knock: %s", said)
	}
	for line := range strings.Lines(said) {
		if port, is := strings.CutPrefix(strings.TrimSpace(line), "ANSWERS: "); is && owned[port] {
			t.Errorf("port %s of the service or of its updates answers another update's program", port)
		}
	}
}

// linksInItsPlace has a program leave links and pipes where the service will read and write the next time.
func linksInItsPlace(t *testing.T, f *field) {
	sandboxed(t)
	canary := filepath.Join(t.TempDir(), "canary")
	harness.Must(t, os.WriteFile(canary, []byte("untouched"), 0o600))
	keys := filepath.Join(f.State(), "data", "keys.json")
	before, err := os.ReadFile(keys)
	harness.Must(t, err)
	tool, found := f.script(t, "links", `
echo "$PWD" >> $FOUND
for file in Pulumi.yaml go.mod; do rm -f $file; ln -s `+keys+` $file; done
ln -s `+canary+` node_modules; mkfifo .npmrc package.json; ln -sfn / bin
cd ..; for other in *; do rm -rf "$other.tmp"; ln -s `+canary+` "$other.tmp"; done
`)
	for range 2 {
		if end := tool.Run(t, "up", "--yes", "--skip-preview"); strings.Contains(end.Said(), "s3SecretKey") {
			t.Errorf("the update shows what the link leads to: %s", end.Said())
		}
	}
	found()
	after, err := os.ReadFile(keys)
	harness.Must(t, err)
	if text, err := os.ReadFile(canary); err != nil || string(text) != "untouched" || string(before) != string(after) {
		t.Errorf("what the links led to was changed: %q %v", text, err)
	}
}

// runtimePath names as its runtime, and as a package, a program of the machine.
func runtimePath(t *testing.T, f *field) {
	for i, files := range []harness.Files{
		{"Pulumi.yaml": "name: path-0\nruntime: ../../../../../../../bin/sh\n"},
		{"Pulumi.yaml": "name: path-1\nruntime: x/../../../../../../../bin/sh\n"},
		{"Pulumi.yaml": "name: path-2\nruntime: scenario\n", "scenario.yaml": "steps: [{register: x, type: " +
			"'../../../../bin/sh:index:X'}]\n"},
	} {
		tool := f.project(t, "path-"+string(rune('0'+i)), "steps: []\n")
		files.Write(t, tool.Dir)
		if end := tool.Run(t, "up", "--yes", "--skip-preview"); end.Code == 0 ||
			!strings.Contains(end.Said(), "is not ") || strings.Contains(end.Said(), "sh:") && i < 2 {
			t.Errorf("the update ends with %d: %s", end.Code, end.Said())
		}
	}
}

// escapes is what a terminal would obey.
const escapes = `\x1b]0;PWNED\x07\x1b[2J\x1b]8;;http://evil.example\x07link\x1b[1A\x9b31m\r\x08`

// obeyed fails the test if a terminal would obey a part of what a command wrote.
func obeyed(t *testing.T, end harness.End) {
	t.Helper()
	if said := end.Stdout + end.Stderr; strings.ContainsAny(said, "\x1b\x07\x08\u009b") ||
		strings.Contains(said, "\r") {
		t.Errorf("%v prints control characters: %q", end.Args, said)
	}
}

// show runs each command that prints what others have made.
func show(t *testing.T, tool *harness.Tool) {
	t.Helper()
	for _, command := range [][]string{
		{"stack"}, {"stack", "output"}, {"stack", "history"}, {"stack", "ls", "--all"}, {"preview", "--diff"}, {"logs"},
		{"audit"},
	} {
		obeyed(t, tool.Run(t, command...))
	}
}

func escapesOfAProgram(t *testing.T, f *field) {
	tool := f.project(t, "shouting", `
packages: [{name: fake, version: 0.1.0}]
steps:
  - {print: "out `+escapes+`"}
  - {print: "err `+escapes+`", to: stderr}
  - {log: "log `+escapes+`", severity: warning}
  - {register: "thing", type: fake:index:Auto, properties: {settings: {"key `+escapes+`": "value `+escapes+`"}}}
  - {await: [thing]}
  - {fail: "error `+escapes+`"}
`, "FAKECLOUD_ENDPOINT="+f.cloud.URL())
	obeyed(t, tool.Run(t, "up", "--yes", "--diff"))
	show(t, tool)
	tool.Must(t, "destroy", "--yes", "--skip-preview")
}

// plugin is a plugin of the user's, a shell script.
func (f *field) plugin(t *testing.T, name, text string) {
	t.Helper()
	dir := filepath.Join(f.Dir, "pulumi", "plugins", "resource-"+name+"-v0.1.0")
	harness.Files{"pulumi-resource-" + name: "#!/bin/bash\n" + text}.Write(t, dir)
	harness.Must(t, os.Chmod(filepath.Join(dir, "pulumi-resource-"+name), 0o700)) //nolint:gosec // it is run
}

func processesOfAPlugin(t *testing.T, f *field) {
	sandboxed(t)
	report := filepath.Join(t.TempDir(), "found")
	f.plugin(t, "thief", "FOUND="+report+"\nSTATE='"+f.State()+"'"+theft+"\necho ends >> $FOUND\nexit 1\n")
	tool := f.project(t, "stolen", "packages: [{name: thief, version: 0.1.0}]\nsteps: [{register: x, type: "+
		"thief:index:X}]\n")
	end := tool.Run(t, "up", "--yes", "--skip-preview")
	said, err := os.ReadFile(report)
	if err != nil || !strings.Contains(string(said), "ends") {
		t.Fatalf("the plugin did not run: %v %s", err, end.Said())
	}
	f.noTheft(t, string(said))
}

// escapesOfAPlugin has a plugin say in its diagnostics, its errors and its outputs what a terminal would obey.
func escapesOfAPlugin(t *testing.T, f *field) {
	f.plugin(t, "shout", "printf 'shout "+escapes+"\\n' >&2\nprintf 'port "+escapes+"\\n'\nexit 3\n")
	tool := f.project(t, "deafened", "packages: [{name: shout, version: 0.1.0}]\nsteps: [{register: x, type: "+
		"shout:index:X}]\n")
	obeyed(t, tool.Run(t, "up", "--yes"))
	tool = f.project(t, "printed", `
steps:
  - {register: x, type: "deployctl:command:Run", properties: {create: "printf '`+strings.ReplaceAll(escapes, `\`, `\\`)+`'"}}
outputs: {said: "${x.stdout}"}
`)
	obeyed(t, tool.Run(t, "up", "--yes", "--diff"))
	show(t, tool)
}
