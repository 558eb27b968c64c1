//go:build linux

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// asDocumented are the commands of docs/install.md and docs/production.md, by root on the machine of the service. The
// machine is turned off at the end.
const asDocumented = `#!/bin/bash
trap 'echo "ended with $?" > /root/end; journalctl -u deployctl-serve -u deployctl-worker > /root/log
systemctl poweroff' EXIT
set -eux
cd /etc/deployctl
(umask 077; openssl rand -hex 32 > keys/bootstrap-token)
chgrp deployctl keys/*
chmod g+r keys/*
systemctl enable --now deployctl-serve.service deployctl-worker.service
export DEPLOYCTL_SERVER=%[1]s DEPLOYCTL_TOKEN_FILE=/etc/deployctl/keys/bootstrap-token
until deployctl whoami; do
	systemctl is-active deployctl-serve
	sleep 1
done
(umask 077; deployctl token create root --role admin --organization '*' > /root/token)
export DEPLOYCTL_TOKEN_FILE=/root/token
mkdir /root/site
cd /root/site
deployctl new website --yes
%[2]s
deployctl up --yes
deployctl stack output url > /root/url
systemctl is-active deployctl-serve.service deployctl-worker.service
for part in serve worker; do stat -c %%U /proc/$(systemctl show -P MainPID deployctl-$part.service); done > /root/users
`

// onStart runs it when the machine has started.
const onStart = `[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/root/check
StandardOutput=file:/root/said
StandardError=file:/root/said
`

// debian makes a bare Debian in a directory.
func debian(t *testing.T) (dir string) {
	t.Helper()
	for _, tool := range []string{"debootstrap", "systemd-nspawn", "dpkg-deb"} {
		if _, err := exec.LookPath(tool); err != nil || os.Geteuid() != 0 {
			t.Skipf("a bare Debian is made and started by root with debootstrap and systemd-nspawn: no %s", tool)
		}
	}
	dir = filepath.Join(t.TempDir(), "debian")
	shell(t, "debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,openssl", "bookworm", dir)
	return dir
}

// shell runs a program, which must succeed.
func shell(t *testing.T, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}

// release makes a release of the last commit for this platform.
func release(t *testing.T, dist string) {
	t.Helper()
	tree := filepath.Join(t.TempDir(), "tree")
	shell(t, "git", "clone", "--quiet", root, tree)
	changes := filepath.Join(tree, "CHANGELOG.md")
	text, err := os.ReadFile(changes)
	must(t, err)
	const first = "## Unreleased"
	changed := strings.Replace(string(text), first, first+"\n\n## 1.2.3", 1)
	must(t, os.WriteFile(changes, []byte(changed), 0o600))
	shell(t, "git", "-C", tree, "-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "-am",
		"1.2.3")
	shell(t, "go", "-C", filepath.Join(tree, "tools", "release"), "run", ".", "-root", tree, "-dist", dist,
		"-version", "1.2.3", "-platforms", "linux/amd64")
}

// TestTheDebianPackageIsAServiceThatDeploysTheWebsite installs it on a bare Debian, which is started as a machine of
// its own on the network of this one, where Temporal and S3 are.
func TestTheDebianPackageIsAServiceThatDeploysTheWebsite(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	machine, dist := debian(t), filepath.Join(t.TempDir(), "dist")
	release(t, dist)
	h := newHome(t)
	h.in(h.dir).must(t, "dev", "--background")
	settings, status := h.parts(t)
	h.in(h.dir).must(t, "dev", "stop")
	servers := h.in(h.dir, settings...)
	servers.start(t, "dev", "s3", "--home", status.Home)
	servers.start(t, "dev", "temporal", "--home", status.Home)

	at := func(path string) string { return filepath.Join(machine, path) }
	must(t, os.Rename(filepath.Join(dist, "deployctl_1.2.3_amd64.deb"), at("root/deployctl.deb")))
	shell(t, "systemd-nspawn", "--quiet", "--register=no", "-D", machine, "apt-get", "install", "-y",
		"/root/deployctl.deb")
	credentials, err := os.ReadFile(status.TemporalCredentials)
	must(t, err)
	must(t, os.WriteFile(at("etc/deployctl/keys/temporal.pem"), credentials, 0o600))
	listen, config := porttest.Address(t), ""
	var variables, website []string
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		switch name {
		case "DEPLOYCTL_KEY":
			must(t, os.WriteFile(at("etc/deployctl/keys/key"), []byte(value), 0o600))
		case "DEPLOYCTL_BOOTSTRAP_TOKEN":
		default:
			variables = append(variables, name+"="+strings.Replace(value, status.TemporalCredentials,
				"/etc/deployctl/keys/temporal.pem", 1))
		}
		if key, ok := map[string]string{"DEPLOYCTL_S3_ENDPOINT": "s3Endpoint", "DEPLOYCTL_S3_ACCESS_KEY_ID": "s3AccessKey",
			"DEPLOYCTL_S3_SECRET_ACCESS_KEY": "s3SecretKey"}[name]; ok {
			website = append(website, fmt.Sprintf("deployctl config set --secret deployctl:%s '%s'", key, value))
		}
	}
	text, err := os.ReadFile(at("etc/deployctl/config.yaml"))
	must(t, err)
	config = strings.NewReplacer("#key-file:", "key-file:", "#bootstrap-token-file:", "bootstrap-token-file:",
		"#listen: 0.0.0.0:7460", "listen: "+listen).Replace(string(text))
	must(t, os.WriteFile(at("etc/deployctl/config.yaml"), []byte(config), 0o640)) // which keeps its group
	must(t, os.WriteFile(at("etc/default/deployctl"), []byte(strings.Join(variables, "\n")+"\n"), 0o600))
	must(t, os.WriteFile(at("root/check"), fmt.Appendf(nil, asDocumented, listen, strings.Join(website, "\n")), 0o700))
	must(t, os.WriteFile(at("etc/systemd/system/check.service"), []byte(onStart), 0o600))
	must(t, os.MkdirAll(at("etc/systemd/system/default.target.wants"), 0o755))
	must(t, os.Symlink("/etc/systemd/system/check.service", at("etc/systemd/system/default.target.wants/check.service")))
	boot := exec.CommandContext(waiting(t), "systemd-nspawn", "--quiet", "--register=no", "--keep-unit", "--boot", "-D",
		machine)
	out, _ := boot.CombinedOutput() // how the machine was turned off
	read := func(name string) string {
		text, err := os.ReadFile(at("root/" + name))
		if err != nil {
			return err.Error()
		}
		return string(text)
	}
	if read("end") != "ended with 0\n" {
		t.Fatalf("%s\n%s\n%s\n%s", out, read("said"), read("log"), read("end"))
	}
	if users := read("users"); users != "deployctl\ndeployctl-worker\n" {
		t.Errorf("the parts are processes of %q", users)
	}
	if page := body(t, strings.TrimSpace(read("url"))); !strings.Contains(page, "<!doctype html>") {
		t.Errorf("the website says %q", page)
	}
}
