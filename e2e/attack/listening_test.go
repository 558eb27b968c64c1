//go:build unix

package attack

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
)

// listening are the ports on which the service and all below it listen.
func (f *field) listening(t *testing.T) map[string]bool {
	t.Helper()
	var status struct{ PID int }
	harness.Must(t, json.Unmarshal([]byte(f.Deployctl(f.Dir).Must(t, "dev", "status", "--json")), &status))
	below, err := cluster.Below(status.PID, "")
	harness.Must(t, err)
	sockets := map[string]bool{}
	for _, p := range append(below, status.PID) {
		files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", p)) // the pattern is well-formed
		for _, file := range files {
			if target, err := os.Readlink(file); err == nil {
				sockets[target] = true
			}
		}
	}
	text, err := os.ReadFile("/proc/net/tcp")
	harness.Must(t, err)
	ports := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		x := strings.Fields(line)
		if len(x) > 9 && x[3] == "0A" && sockets["socket:["+x[9]+"]"] {
			raw, err := hex.DecodeString(x[1][strings.LastIndexByte(x[1], ':')+1:])
			harness.Must(t, err)
			ports[strconv.Itoa(int(raw[0])<<8|int(raw[1]))] = true
		}
	}
	return ports
}
