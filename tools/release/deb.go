package main

import (
	"bytes"
	"crypto/md5" //nolint:gosec // what dpkg verifies files with
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// debs writes the Debian packages of a platform: the client with what serve and worker need, and the embedded service.
func (r *release) debs(dist string, b build) error {
	if b.paths[client] == "" || b.paths[embedded] == "" {
		return fmt.Errorf("%s lacks a program", b)
	}
	ours := func(name string) string { return filepath.Join(r.root, "deploy", "debian", name) }
	files := slices.Concat(r.documents(client), []file{
		{name: "usr/bin/" + client, mode: 0o755, source: b.paths[client]},
		{name: "etc/deployctl/", mode: 0o750},
		{name: "etc/deployctl/keys/", mode: 0o750},
		{name: "etc/deployctl/config.yaml", mode: 0o640, source: ours("config.yaml")},
		{name: "etc/default/deployctl", mode: 0o600, source: ours("default")}, // systemd reads it as root
		{name: "usr/lib/systemd/system/deployctl-serve.service", mode: 0o644, source: ours("deployctl-serve.service")},
		{name: "usr/lib/systemd/system/deployctl-worker.service", mode: 0o644, source: ours("deployctl-worker.service")},
		{name: "usr/lib/sysusers.d/deployctl.conf", mode: 0o644, source: ours("deployctl.sysusers")},
		{name: "usr/share/bash-completion/completions/deployctl", mode: 0o644, content: r.completions["bash"]},
		{name: "usr/share/fish/vendor_completions.d/deployctl.fish", mode: 0o644, content: r.completions["fish"]},
		{name: "usr/share/zsh/vendor-completions/_deployctl", mode: 0o644, content: r.completions["zsh"]},
	})
	control := r.control(b, client, "Depends: systemd-standalone-sysusers | systemd\nRecommends: ca-certificates, git\n"+
		"Suggests: "+embedded, "deployment service whose updates survive crashes",
		"Client, API server and worker of deployctl, with units of systemd for the", "latter two, which are not enabled.")
	scripts := []file{{name: "conffiles", mode: 0o644,
		content: []byte("/etc/default/deployctl\n/etc/deployctl/config.yaml\n")}}
	for _, name := range []string{"postinst", "postrm", "prerm"} {
		scripts = append(scripts, file{name: name, mode: 0o755, source: ours(name)})
	}
	if err := r.deb(dist, b, client, control, scripts, files); err != nil {
		return err
	}
	files = append(r.documents(embedded), file{name: "usr/bin/" + embedded, mode: 0o755, source: b.paths[embedded]})
	control = r.control(b, embedded, fmt.Sprintf("Depends: %s (= %s)", client, r.debianVersion()),
		"embedded service of deployctl", "Temporal, its Web UI, an S3 server, the API and a worker in one program, for",
		"one user of one machine. deployctl starts it when it is needed.")
	return r.deb(dist, b, embedded, control, nil, files)
}

// debianVersion sorts a version before a release below that release.
func (r *release) debianVersion() string { return strings.Replace(r.version, "-", "~", 1) }

// documents are those of a package.
func (r *release) documents(name string) []file {
	dir := "usr/share/doc/" + name
	files := r.papers(dir)
	files[slices.IndexFunc(files, func(f file) bool { return f.name == dir+"/LICENSE" })].name = dir + "/copyright"
	return files
}

// control is the paragraph that describes a package.
func (r *release) control(b build, name, relations, title string, text ...string) string {
	return fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: %s\nSection: admin\nPriority: optional\n"+
		"%s\nHomepage: https://github.com/deployctl/deployctl\nDescription: %s\n %s\n", name, r.debianVersion(), b.arch,
		"The authors of deployctl <deployctl@users.noreply.github.com>", relations, title, strings.Join(text, "\n "))
}

// deb writes a package: control is its paragraph, more what dpkg has of it besides, files what is installed.
func (r *release) deb(dist string, b build, name, control string, more, files []file) error {
	files = complete(files)
	var size int
	var digests strings.Builder
	for i, f := range files {
		content, err := f.read()
		if err != nil {
			return err
		}
		size += (len(content) + 1023) / 1024
		if !strings.HasSuffix(f.name, "/") {
			fmt.Fprintf(&digests, "%x  %s\n", md5.Sum(content), f.name) //nolint:gosec // as above
		}
		files[i].name = "./" + f.name
	}
	control = strings.Replace(control, "\nSection:", fmt.Sprintf("\nInstalled-Size: %d\nSection:", size), 1)
	more = append(slices.Clone(more), file{name: "control", mode: 0o644, content: []byte(control)},
		file{name: "md5sums", mode: 0o644, content: []byte(digests.String())})
	described, err := tarGz("./", complete(more), r.time)
	if err != nil {
		return err
	}
	installed, err := tarGz("", files, r.time)
	if err != nil {
		return err
	}
	path := fmt.Sprintf("%s_%s_%s.deb", name, r.debianVersion(), b.arch)
	return create(dist, path, func(w io.Writer) error {
		return writeAr(w, r.time, []file{{name: "debian-binary", content: []byte("2.0\n")},
			{name: "control.tar.gz", content: described}, {name: "data.tar.gz", content: installed}})
	})
}

// writeAr writes an archive of ar, which a Debian package is.
func writeAr(w io.Writer, when time.Time, members []file) error {
	b := bytes.NewBufferString("!<arch>\n")
	for _, m := range members {
		fmt.Fprintf(b, "%-16s%-12d%-6d%-6d%-8s%-10d`\n", m.name, when.Unix(), 0, 0, "100644", len(m.content))
		b.Write(m.content)
		if len(m.content)%2 == 1 {
			b.WriteByte('\n')
		}
	}
	_, err := w.Write(b.Bytes())
	return err
}
