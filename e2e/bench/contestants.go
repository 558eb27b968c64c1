package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/cluster"
)

// measured is one operation's cost. CPU is of every process that took part, in seconds; memory is the peak of the
// largest one, in MiB.
type measured struct {
	wall, cpu, memory float64
	events, bytes     float64 // of the histories of the update's Update and Run
	requests, carried float64 // to S3, and the bytes of their bodies both ways
	chain             float64 // of the requests that wait for one another, the longest
}

// play runs a command and accounts for it and its descendants.
func play(ctx context.Context, dir string, env []string, name string, args ...string) (measured, string, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir, cmd.Env = dir, env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	err := cmd.Run()
	m := measured{wall: time.Since(begin).Seconds()}
	if err != nil {
		return m, "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, out.String())
	}
	m.cpu = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		m.memory = float64(usage.Maxrss) / 1024
	}
	return m, out.String(), nil
}

func output(ctx context.Context, dir string, env []string, name string, args ...string) (string, error) {
	_, out, err := play(ctx, dir, env, name, args...)
	return out, err
}

// stock is the stock CLI on one of its backends.
type stock struct {
	name string
	env  []string
}

// The stock CLI with its state in a file, on an S3 server, and with deployctl as its backend.
const stockFile, stockS3, stockHere = "stock, file", "stock, S3", "stock, deployctl"

func (s *stock) String() string { return s.name }

func (s *stock) prepare(ctx context.Context, dir string) error {
	_, err := output(ctx, dir, s.env, "pulumi", "stack", "init", "dev")
	return err
}

func (s *stock) play(ctx context.Context, dir string, op operation) (measured, error) {
	m, _, err := play(ctx, dir, s.env, "pulumi", append(op.arguments(), "--non-interactive")...)
	return m, err
}

// house is deployctl on its embedded service.
type house struct {
	dir string
	env []string
	*cluster.Home
	temporal client.Client
}

const ours = "deployctl"

func (h *house) String() string { return ours }

// openHouse starts the embedded service.
func openHouse(ctx context.Context, dir string, env []string) (*house, error) {
	h := &house{dir: dir, env: env}
	if _, err := output(ctx, dir, env, ours, "dev", "--background"); err != nil {
		return nil, err
	}
	text, err := output(ctx, dir, env, ours, "dev", "status", "--json")
	if err != nil {
		return nil, err
	}
	if h.Home, err = cluster.ReadHome([]byte(text)); err != nil {
		return nil, err
	}
	h.temporal, err = h.Temporal().Dial()
	return h, err
}

func (h *house) close() {
	if h.temporal != nil {
		h.temporal.Close()
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	_, _ = output(ctx, h.dir, h.env, ours, "dev", "stop")
}

// s3Environment lets the stock CLI keep its state on an S3 server with the service's credentials.
func (h *house) s3Environment(endpoint string) []string {
	return []string{
		"AWS_ACCESS_KEY_ID=" + h.Keys.S3AccessKey, "AWS_SECRET_ACCESS_KEY=" + h.Keys.S3SecretKey,
		"AWS_REGION=us-east-1",
		"PULUMI_BACKEND_URL=s3://" + h.Bucket + "/stock?region=us-east-1&s3ForcePathStyle=true&endpoint=" + endpoint,
	}
}

// pulumiEnvironment lets the stock CLI keep its state in the service, which it reaches at an address.
func (h *house) pulumiEnvironment(address string) ([]string, error) {
	token, err := os.ReadFile(h.PulumiTokenFile)
	return []string{"PULUMI_BACKEND_URL=http://" + address, "PULUMI_ACCESS_TOKEN=" + strings.TrimSpace(string(token))}, err
}

func (h *house) prepare(ctx context.Context, dir string) error {
	_, err := output(ctx, dir, h.env, ours, "stack", "init", "dev")
	return err
}

// play adds what the service and its children spent to what the client did.
func (h *house) play(ctx context.Context, dir string, op operation) (measured, error) {
	before := spent(h.PID)
	forgetPeak(h.PID)
	m, text, err := play(ctx, dir, h.env, ours, append(op.arguments(), "--json")...)
	if err != nil {
		return m, err
	}
	m.cpu += spent(h.PID) - before
	m.memory = max(m.memory, cluster.Peak(h.PID))
	m.events, m.bytes, err = h.histories(ctx, text)
	return m, err
}

// histories gives the size of the histories of the update that a command's output names.
func (h *house) histories(ctx context.Context, text string) (events, bytes float64, err error) {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	var summary struct{ Update string }
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &summary); err != nil {
		return 0, 0, fmt.Errorf("read the summary: %w", err)
	}
	u, err := deployments.ParseUpdateName(summary.Update)
	if err != nil {
		return 0, 0, err
	}
	for _, id := range []string{deployments.UpdateWorkflowID(u), deployments.RunWorkflowID(u)} {
		all, err := cluster.Histories(ctx, h.temporal, id)
		if err != nil {
			return 0, 0, err
		}
		for _, history := range all {
			events, bytes = events+float64(history.Events), bytes+float64(history.Bytes)
		}
	}
	return events, bytes, nil
}

// spent is the processor time of a process and its children, in seconds. Of children that live, their own is read.
func spent(pid int) float64 {
	total := 0.0
	for _, p := range append(children(pid), pid) {
		fields := stat(p)
		if len(fields) < 16 {
			continue
		}
		for _, f := range fields[11:15] { // utime, stime, cutime, cstime
			ticks, _ := strconv.ParseFloat(f, 64)
			total += ticks / 100
		}
	}
	return total
}

// stat gives the fields of /proc/PID/stat after the name.
func stat(pid int) []string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
}

func children(pid int) []int {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	var out []int
	for _, f := range strings.Fields(string(data)) {
		if n, err := strconv.Atoi(f); err == nil {
			out = append(out, n)
		}
	}
	return out
}

// forgetPeak lets a process's peak begin anew; where the kernel does not let us, it stays that since its start.
func forgetPeak(pid int) {
	_ = os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0)
}
