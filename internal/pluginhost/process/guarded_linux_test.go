package process

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/pluginhost/process/guard"
)

// A guard hides its files from other processes of its user right after it takes its name.
func TestAGuardShowsItsName(t *testing.T) {
	var mine groups
	mine.add(sleeper(t))
	defer mine.guard.end()
	name := ""
	for deadline := time.Now().Add(time.Minute); name != guard.Name; time.Sleep(time.Millisecond) {
		shown, err := os.ReadFile("/proc/" + strconv.Itoa(mine.guard.Pid) + "/comm")
		if err != nil || time.Now().After(deadline) {
			t.Fatalf("it is %q, %v", name, err)
		}
		name = strings.TrimSpace(string(shown))
	}
}
