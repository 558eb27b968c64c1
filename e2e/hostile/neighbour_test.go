//go:build linux

package hostile

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/emptypb"
)

// neighbour is the user id of somebody else on the machine.
const neighbour = 54321

// TestMain makes the test binary the neighbour, when it is started as such.
func TestMain(m *testing.M) {
	ports := os.Getenv("HOSTILE_TEST_PORTS")
	if ports == "" {
		os.Exit(m.Run())
	}
	for port := range strings.FieldsSeq(ports) {
		fmt.Println(port, knock("127.0.0.1:"+port))
	}
}

// knock is what a server lets a stranger have: "nothing", or something of it.
func knock(address string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err.Error()
	}
	defer func() { _ = conn.Close() }()
	if info, err := pulumirpc.NewResourceMonitorClient(conn).GetDeploymentInfo(ctx, &emptypb.Empty{}); err == nil {
		return "a monitor: " + info.String()
	}
	log := &pulumirpc.LogRequest{Severity: pulumirpc.LogSeverity_ERROR, Message: "the neighbour was here"}
	if _, err := pulumirpc.NewEngineClient(conn).Log(ctx, log); err == nil {
		return "an engine"
	}
	if _, err := pulumirpc.NewResourceProviderClient(conn).GetPluginInfo(ctx, &emptypb.Empty{}); err == nil {
		return "a provider"
	}
	raw, err := net.DialTimeout("tcp", address, time.Second)
	if err != nil {
		return "nothing"
	}
	defer func() { _ = raw.Close() }()
	_, _ = raw.Write([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"))
	_ = raw.SetReadDeadline(time.Now().Add(5 * time.Second))
	if n, _ := io.ReadAll(io.LimitReader(raw, 9)); len(n) > 0 {
		return fmt.Sprintf("an answer: %q", n)
	}
	return "nothing"
}

// The programs, all of which hold an update open while a command waits for a file.
const (
	waitInYAML = `
resources:
  wait:
    type: deployctl:command:Run
    properties: {create: "touch $READY; while [ ! -e $GO ]; do sleep 0.05; done"}
  server:
    type: fake:index:Auto
    properties: {zone: a}
`
	waitInNode = `
import * as pulumi from "@pulumi/pulumi";

class Any extends pulumi.CustomResource {}

new Any("deployctl:command:Run", "wait", { create: "touch $READY; while [ ! -e $GO ]; do sleep 0.05; done" });
new Any("fake:index:Auto", "server", { zone: "a" }, { version: "0.1.0" });
`
	waitInGo = `
package main

import "github.com/pulumi/pulumi/sdk/v3/go/pulumi"

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		var wait, server pulumi.CustomResourceState
		create := pulumi.Map{"create": pulumi.String("touch $READY; while [ ! -e $GO ]; do sleep 0.05; done")}
		zone := pulumi.Map{"zone": pulumi.String("a")}
		err := ctx.RegisterResource("fake:index:Auto", "server", zone, &server, pulumi.Version("0.1.0"))
		if err != nil {
			return err
		}
		return ctx.RegisterResource("deployctl:command:Run", "wait", create, &wait)
	})
}
`
)

func TestAnotherUserGetsNothingFromAnyPortOfAnUpdate(t *testing.T) {
	soaktest.Only(t)
	if os.Geteuid() != 0 {
		t.Skip("only root can play another user")
	}
	for row, program := range []struct{ language, example, file, text string }{
		{"a YAML program", "", "Pulumi.yaml", "name: yaml\nruntime: yaml\n" + waitInYAML},
		{"a Node program", "typescript", "index.ts", waitInNode},
		{"a Go program", "go", "main.go", waitInGo},
	} {
		t.Run(program.language, func(t *testing.T) {
			soaktest.ButFor(t, 3, row)
			h := harness.NewHome(t, harness.Binary())
			dir := t.TempDir()
			if program.example != "" {
				dir = harness.Example(t, program.example)
			}
			harness.Files{program.file: program.text}.Write(t, dir)
			_, env := harness.Cloud(t)
			ready, release := filepath.Join(t.TempDir(), "ready"), filepath.Join(t.TempDir(), "go")
			p := h.Deployctl(dir, env, "READY="+ready, "GO="+release)
			p.Must(t, "stack", "init", "dev")
			update := p.Begin(t, "up", "--yes", "--skip-preview")
			await(t, ready)

			status, err := cluster.ReadHome([]byte(p.Must(t, "dev", "status", "--json")))
			harness.Must(t, err)
			ports := loopbackPorts(t, status.PID)
			if len(ports) < 4 { // the engine's, the monitor's, the API's and Temporal's
				t.Errorf("the service listens on %v only", ports)
			}
			for port, got := range asNeighbour(t, ports) {
				if got != "nothing" && !public(t, p, port) {
					t.Errorf("port %d gives another user %s", port, got)
				}
			}
			harness.Must(t, os.WriteFile(release, nil, 0o600))
			if end := update(); end.Code != 0 || strings.Contains(end.Stdout+end.Stderr, "neighbour") {
				t.Errorf("the update ends with %d: %s", end.Code, end.Said())
			}
		})
	}
}

// public tells whether a port is one that asks whoever comes for a token, or for nothing that is worth any.
func public(t *testing.T, p *harness.Tool, port int) bool {
	status := p.Must(t, "dev", "status", "--json")
	for line := range strings.Lines(status) {
		for _, name := range []string{`"apiAddress"`, `"pulumiAddress"`, `"consoleAddress"`, `"uiURL"`, `"s3Endpoint"`} {
			if strings.Contains(line, name) && strings.Contains(line, ":"+strconv.Itoa(port)) {
				return true
			}
		}
	}
	return false
}

// await waits until there is a file.
func await(t *testing.T, path string) {
	t.Helper()
	harness.Eventually(t, path+" is there", func() bool {
		_, err := os.Stat(path)
		return err == nil
	})
}

// asNeighbour lets another user knock at ports.
func asNeighbour(t *testing.T, ports []int) map[int]string {
	t.Helper()
	self, err := os.ReadFile("/proc/self/exe")
	harness.Must(t, err)
	binary := filepath.Join(open(t), "neighbour")
	harness.Must(t, os.WriteFile(binary, self, 0o755)) //nolint:gosec // everybody runs it
	cmd := exec.Command(binary)
	cmd.Env = []string{"HOSTILE_TEST_PORTS=" + strings.Trim(fmt.Sprint(ports), "[]")}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: neighbour, Gid: neighbour}}
	out, err := cmd.Output()
	harness.Must(t, err)
	got := map[int]string{}
	for line := range strings.Lines(string(out)) {
		text, what, _ := strings.Cut(strings.TrimSpace(line), " ")
		port, err := strconv.Atoi(text)
		harness.Must(t, err)
		got[port] = what
	}
	if len(got) != len(ports) {
		t.Errorf("the neighbour knocked at %d of %d ports: %s", len(got), len(ports), out)
	}
	return got
}

// loopbackPorts are those on which a process and all below it listen.
func loopbackPorts(t *testing.T, pid int) (ports []int) {
	t.Helper()
	processes, err := cluster.Below(pid, "")
	harness.Must(t, err)
	owned := map[string]bool{}
	for _, p := range append(processes, pid) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p)) // the pattern is well-formed
		for _, file := range files {
			if target, err := os.Readlink(file); err == nil {
				owned[target] = true
			}
		}
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, err := os.ReadFile(table)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		harness.Must(t, err)
		for line := range strings.Lines(string(text)) {
			x := strings.Fields(line)
			if len(x) < 10 || x[3] != "0A" || !owned["socket:["+x[9]+"]"] {
				continue
			}
			raw, err := hex.DecodeString(x[1][strings.LastIndexByte(x[1], ':')+1:])
			harness.Must(t, err)
			ports = append(ports, int(raw[0])<<8|int(raw[1]))
		}
	}
	slices.Sort(ports)
	return slices.Compact(ports) // one may be of both loopback addresses
}
