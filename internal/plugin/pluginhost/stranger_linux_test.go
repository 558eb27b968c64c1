package pluginhost

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

func TestAPluginToWhichAStrangerIsConnectedFirstIsStartedAgain(t *testing.T) {
	dir := bin(t, "pulumi-resource-knocked")
	h := open(t, Options{Env: []string{"PATH=" + dir}})
	started := make(chan error, 1)
	go func() {
		_, err := h.Provider(waittest.Context(t), Package{Name: "knocked"}, "")
		started <- err
	}()
	var port string
	waittest.Until(t, "the plugin listens", func() bool {
		text, _ := os.ReadFile(filepath.Join(dir, "port")) // until it is there
		port = strings.TrimSpace(string(text))
		return strings.HasSuffix(string(text), "\n")
	})
	knock(t, port)
	if err := os.WriteFile(filepath.Join(dir, "knocked"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := waittest.For(t, "the plugin has been started again", started); err != nil {
		t.Errorf("the stranger costs the plugin: %v", err)
	}
}

// knock has another process connect to a port, and stay until the test ends.
func knock(t *testing.T, port string) {
	t.Helper()
	stranger := exec.Command("/bin/bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/"+port+" && echo in && read")
	stranger.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := stranger.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := stranger.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = stranger.Wait() // it ends with its input
	})
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "in\n" {
		t.Fatalf("the stranger says %q, %v", line, err)
	}
}
