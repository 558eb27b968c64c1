package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

const root, version = "../..", "1.2.3-rc.1"

// kept is where tests have what they share.
var kept string

func TestMain(m *testing.M) {
	var err error
	if kept, err = os.MkdirTemp("", "release-"); err != nil {
		panic(err)
	}
	code := m.Run()
	_ = os.RemoveAll(kept)
	os.Exit(code)
}

// standIn builds a program in a directory of its own, which is packed in the place of all.
func standIn(t *testing.T, dir string) string {
	t.Helper()
	for name, text := range map[string]string{
		"go.mod":  "module github.com/deployctl/deployctl\n\ngo " + strings.TrimPrefix(runtime.Version(), "go") + "\n",
		"main.go": "package main\n\nvar version string\n\nfunc main() { println(version) }\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "bin", client)
	if err := compile(dir, ".", path, target{os: runtime.GOOS, arch: runtime.GOARCH}, "-X main.version=1"); err != nil {
		t.Fatal(err)
	}
	return path
}

// shared returns the directory of a release that no test changes.
func shared(t *testing.T) string {
	t.Helper()
	dist := filepath.Join(kept, "dist")
	if _, err := os.Stat(dist); err != nil {
		pack(t, standIn(t, kept), dist, targets...)
	}
	return dist
}

// pack writes a release whose programs are all one into a directory.
func pack(t *testing.T, program, dist string, targets ...target) {
	t.Helper()
	tree, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	r := &release{root: tree, version: version, commit: strings.Repeat("0123456789", 4), changes: "- It is there.\n",
		time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), completions: map[string][]byte{}, licences: []byte("Theirs.\n")}
	for _, shell := range shells {
		r.completions[shell] = []byte("completions of " + shell + "\n")
	}
	for _, to := range targets {
		b := build{target: to, paths: map[string]string{}}
		for _, name := range to.programs {
			b.paths[name] = program
		}
		r.builds = append(r.builds, b)
	}
	if err := r.pack(dist); err != nil {
		t.Fatal(err)
	}
}

// tree reads all files below a directory, by their names.
func tree(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	if err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		found[filepath.ToSlash(name)] = string(content)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return found
}

func TestTwoReleasesOfATreeAreEqual(t *testing.T) {
	again := t.TempDir()
	pack(t, standIn(t, again), filepath.Join(again, "dist"), targets...)
	one, other := tree(t, shared(t)), tree(t, filepath.Join(again, "dist"))
	for name, content := range one {
		if other[name] != content {
			t.Errorf("%s differs", name)
		}
	}
	if len(one) != len(other) || len(one) < 25 {
		t.Errorf("they have %d and %d files", len(one), len(other))
	}
}

func TestAReleaseHasAllThatIsSaidOfIt(t *testing.T) {
	dist := shared(t)
	entries, err := os.ReadDir(dist)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	want := []string{"CHANGES-1.2.3-rc.1.md", "SHA256SUMS", "compose-1.2.3-rc.1.yaml", "deployctl-1.2.3-rc.1.tgz",
		"deployctl-embedded_1.2.3-rc.1_linux_amd64.cdx.json", "deployctl-embedded_1.2.3-rc.1_linux_arm64.cdx.json",
		"deployctl-embedded_1.2.3~rc.1_amd64.deb", "deployctl-embedded_1.2.3~rc.1_arm64.deb",
		"deployctl_1.2.3-rc.1_darwin_amd64.cdx.json", "deployctl_1.2.3-rc.1_darwin_amd64.tar.gz",
		"deployctl_1.2.3-rc.1_darwin_arm64.cdx.json", "deployctl_1.2.3-rc.1_darwin_arm64.tar.gz",
		"deployctl_1.2.3-rc.1_linux_amd64.cdx.json", "deployctl_1.2.3-rc.1_linux_amd64.tar.gz",
		"deployctl_1.2.3-rc.1_linux_arm64.cdx.json", "deployctl_1.2.3-rc.1_linux_arm64.tar.gz",
		"deployctl_1.2.3-rc.1_oci", "deployctl_1.2.3-rc.1_oci.tar",
		"deployctl_1.2.3-rc.1_windows_amd64.cdx.json", "deployctl_1.2.3-rc.1_windows_amd64.zip",
		"deployctl_1.2.3~rc.1_amd64.deb", "deployctl_1.2.3~rc.1_arm64.deb"}
	if !slices.Equal(names, want) {
		t.Errorf("the release has\n%s\nand not\n%s", strings.Join(names, "\n"), strings.Join(want, "\n"))
	}
	if _, err := output(dist, "sha256sum", "--check", "--strict", sumsFile); err != nil {
		t.Error(err)
	}
	if sums := tree(t, dist)[sumsFile]; strings.Count(sums, "\n") != len(tree(t, dist))-1 {
		t.Errorf("a file has no checksum:\n%s", sums)
	}
	var bill struct {
		SpecVersion string
		Metadata    struct {
			Component struct{ Name, Version string }
		}
		Components []struct{ Name string }
	}
	err = json.Unmarshal([]byte(tree(t, dist)["deployctl_1.2.3-rc.1_windows_amd64.cdx.json"]), &bill)
	if err != nil || bill.SpecVersion == "" || bill.Metadata.Component.Version != version ||
		bill.Components[0].Name != "std" {
		t.Errorf("the list of what is in the program is %+v, %v", bill, err)
	}
}

func TestAModuleOfTheWorkspaceHasTheVersionOfTheRelease(t *testing.T) {
	r := &release{version: version}
	bill := r.bill(build{target: targets[0]}, embedded, &debug.BuildInfo{Deps: []*debug.Module{
		{Path: project, Version: "(devel)"}, {Path: "example.test/other", Version: "v1.0.0"}}})
	var found []string
	for _, c := range *bill.Components {
		found = append(found, c.Name+" "+c.Version)
	}
	if want := project + " " + version; !slices.Contains(found, want) || !slices.Contains(found, "example.test/other v1.0.0") {
		t.Errorf("it lists %q, and not %s", found, want)
	}
}

func TestArchivesHaveThePrograms(t *testing.T) {
	dist := shared(t)
	const name = "deployctl_1.2.3-rc.1_"
	for archive, programs := range map[string][]string{
		name + "linux_amd64.tar.gz": {client, embedded}, name + "linux_arm64.tar.gz": {client, embedded},
		name + "darwin_amd64.tar.gz": {client}, name + "darwin_arm64.tar.gz": {client},
		name + "windows_amd64.zip": {"deployctl.exe"},
	} {
		found := unpack(t, filepath.Join(dist, archive))
		dir := strings.TrimSuffix(strings.TrimSuffix(archive, ".tar.gz"), ".zip") + "/"
		wanted := map[string]fs.FileMode{"LICENSE": 0o644, "README.md": 0o644, "CHANGELOG.md": 0o644,
			"LICENSES-OF-OTHERS.txt": 0o644, "completions/deployctl.bash": 0o644, "completions/deployctl.fish": 0o644,
			"completions/deployctl.zsh": 0o644}
		for _, p := range programs {
			wanted[p] = 0o755
		}
		for name, mode := range wanted {
			if e, ok := found[dir+name]; !ok || e.mode != mode || e.uid != 0 || len(e.content) == 0 {
				t.Errorf("%s: %s has mode %o, owner %d, %d bytes", archive, name, e.mode, e.uid, len(e.content))
			}
			delete(found, dir+name)
		}
		delete(found, dir+"completions/")
		for name := range found {
			t.Errorf("%s has %s, too", archive, name)
		}
	}
}

var (
	ran     = regexp.MustCompile(`(?m)^ExecStart=(\S+)`)
	setting = regexp.MustCompile(`(?m)^Environment=DEPLOYCTL_SETTINGS=/(\S+)`)
	account = regexp.MustCompile(`(?m)^(?:User|Group|SupplementaryGroups)=(\S+)`)
	unit    = regexp.MustCompile(`deployctl-\w+\.service`)
)

func TestDebianPackagesHaveWhatTheirUnitsName(t *testing.T) {
	control, files := deb(t, filepath.Join(shared(t), "deployctl_1.2.3~rc.1_amd64.deb"))
	for name, mode := range map[string]fs.FileMode{"usr/bin/deployctl": 0o755, "etc/deployctl/": 0o750,
		"etc/deployctl/keys/": 0o750, "etc/deployctl/config.yaml": 0o640, "usr/lib/sysusers.d/deployctl.conf": 0o644,
		"usr/share/doc/deployctl/copyright": 0o644, "usr/lib/systemd/system/deployctl-worker.service": 0o644} {
		if e, ok := files["./"+name]; !ok || e.mode != mode {
			t.Errorf("%s has mode %o", name, e.mode)
		}
	}
	users := files["./usr/lib/sysusers.d/deployctl.conf"].content
	for _, name := range []string{"deployctl-serve.service", "deployctl-worker.service"} {
		text := files["./usr/lib/systemd/system/"+name].content
		for _, named := range []string{ran.FindStringSubmatch(text)[1], "/" + setting.FindStringSubmatch(text)[1]} {
			if _, ok := files["."+named]; !ok {
				t.Errorf("%s names %s, which is not in the package", name, named)
			}
		}
		for _, named := range account.FindAllStringSubmatch(text, -1) {
			if !strings.Contains(users, "u "+named[1]+" ") {
				t.Errorf("%s names the account %s, which nobody makes", name, named[1])
			}
		}
	}
	for script, mode := range map[string]fs.FileMode{
		"postinst": 0o755, "prerm": 0o755, "postrm": 0o755, "control": 0o644,
	} {
		if e, ok := control["./"+script]; !ok || e.mode != mode {
			t.Errorf("%s has mode %o", script, e.mode)
		}
		for _, named := range unit.FindAllString(control["./"+script].content, -1) {
			if _, ok := files["./usr/lib/systemd/system/"+named]; !ok {
				t.Errorf("%s names %s, which is not in the package", script, named)
			}
		}
	}
	for line := range strings.Lines(control["./conffiles"].content) {
		if _, ok := files["."+strings.TrimSpace(line)]; !ok {
			t.Errorf("%s is not in the package", line)
		}
	}
	if text := control["./control"].content; !strings.Contains(text, "\nVersion: 1.2.3~rc.1\nArchitecture: amd64\n") {
		t.Errorf("it is described as\n%s", text)
	}
	for name, e := range files {
		if e.uid != 0 || strings.HasSuffix(name, "/") && files[name].content != "" {
			t.Errorf("%s is of %d", name, e.uid)
		}
	}
}

func TestTheImageRunsAsNobodyAndHasNothingButTheProgram(t *testing.T) {
	dist := shared(t)
	index, err := layout.ImageIndexFromPath(filepath.Join(dist, "deployctl_1.2.3-rc.1_oci"))
	if err != nil {
		t.Fatal(err)
	}
	top, err := index.IndexManifest()
	if err != nil || len(top.Manifests) != 1 {
		t.Fatalf("the layout has %+v, %v", top, err)
	}
	if index, err = index.ImageIndex(top.Manifests[0].Digest); err != nil {
		t.Fatal(err)
	}
	platforms, err := index.IndexManifest()
	if err != nil || len(platforms.Manifests) != 2 {
		t.Fatalf("the image has %+v, %v", platforms, err)
	}
	for _, one := range platforms.Manifests {
		image, err := index.Image(one.Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil || config.Config.User != "65532:65532" || config.Architecture != one.Platform.Architecture {
			t.Errorf("it runs as %+v, %v", config, err)
		}
		files := layers(t, image)
		if files["."+config.Config.Entrypoint[0]].mode != 0o755 && files[config.Config.Entrypoint[0][1:]].mode != 0o755 {
			t.Errorf("it starts %s, which is not there", config.Config.Entrypoint)
		}
		for name, mode := range map[string]fs.FileMode{"tmp/": 0o777, "var/lib/deployctl-worker/": 0o711} {
			if files[name].mode.Perm() != mode {
				t.Errorf("%s has mode %o", name, files[name].mode)
			}
		}
		if n := strings.Count(files["etc/ssl/certs/ca-certificates.crt"].content, "BEGIN CERTIFICATE"); n < 50 {
			t.Errorf("it knows %d authorities", n)
		}
		for name, e := range files {
			if e.mode&0o111 != 0 && !strings.HasSuffix(name, "/") && name != "usr/bin/deployctl" {
				t.Errorf("it has %s, which can be run", name)
			}
		}
	}
}

func layers(t *testing.T, image v1.Image) map[string]entry {
	t.Helper()
	found := map[string]entry{}
	all, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		content, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for name, e := range untar(t, content) {
			found[name] = e
		}
	}
	return found
}

func TestTheChartIsOfTheRelease(t *testing.T) {
	files := unpack(t, filepath.Join(shared(t), "deployctl-1.2.3-rc.1.tgz"))
	text := files["deployctl/Chart.yaml"].content
	if strings.Count(text, version) != 2 || strings.Contains(text, "0.0.0") {
		t.Errorf("it is\n%s", text)
	}
	for name, content := range tree(t, filepath.Join(root, "deploy", "helm", client)) {
		if name != "Chart.yaml" && files["deployctl/"+name].content != content {
			t.Errorf("it lacks %s", name)
		}
	}
}

func TestAReleaseIsRefusedWithoutAVersionOrWhatIsNewInIt(t *testing.T) {
	for _, version := range []string{"", "1.2", "v1.2.3", "1.2.3+a", "1.02.3", "1.2.3-", "1.2.3-RC"} {
		if _, err := read(root, version); err == nil || !strings.Contains(err.Error(), "is no version") {
			t.Errorf("%q: %v", version, err)
		}
	}
	if _, err := read(root, "999.0.0"); err == nil || !strings.Contains(err.Error(), "no section for version 999.0.0") {
		t.Errorf("a version that the changelog does not have: %v", err)
	}
	const changelog = "# Changes\n\n## Unreleased\n\n- c\n\n## 1.1.0 (2026-01-02)\n\n- b\n\n## [1.0.0]\n- a\n\n## 0.9.0\n"
	for version, want := range map[string]string{"1.1.0": "- b\n", "1.0.0": "- a\n", "0.9.0": "", "1.1": ""} {
		if got, err := section(changelog, version); got != want || (err == nil) != (want != "") {
			t.Errorf("of %s it says %q, %v", version, got, err)
		}
	}
}

func TestAReleaseForOtherPlatformsAloneHasNoImage(t *testing.T) {
	dir := t.TempDir()
	pack(t, standIn(t, dir), filepath.Join(dir, "dist"), target{"darwin", "arm64", []string{client}})
	for name := range tree(t, filepath.Join(dir, "dist")) {
		if strings.Contains(name, "oci") || strings.HasSuffix(name, ".deb") {
			t.Errorf("it has %s", name)
		}
	}
}

func TestOnlyPlatformsThatThereAreAreChosen(t *testing.T) {
	if found, err := chosen("darwin/arm64,linux/amd64"); err != nil || len(found) != 2 || found[0].arch != "arm64" {
		t.Errorf("%v, %v", found, err)
	}
	if _, err := chosen("plan9/386"); err == nil {
		t.Error("there is something for plan9")
	}
}

func TestMembersOfAnArchiveAreReadAsTheyWereWritten(t *testing.T) {
	var b bytes.Buffer
	files := []file{{name: "a", content: []byte("odd")}, {name: "b", content: []byte("even")}}
	if err := writeAr(&b, time.Unix(1, 0), files); err != nil {
		t.Fatal(err)
	}
	if got := members(t, b.String()); got["a"] != "odd" || got["b"] != "even" {
		t.Errorf("%q", got)
	}
}
