package cluster

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"

	"go.temporal.io/sdk/client"
)

// Peak is the largest resident size that a process has had, in MiB; 0 when it cannot be told.
func Peak(pid int) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kib, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kib / 1024
		}
	}
	return 0
}

// History is the size of a workflow's history.
type History struct{ Events, Bytes int }

// Histories gives those of a workflow and of all that it continued, the newest first.
func Histories(ctx context.Context, temporal client.Client, id string) (all []History, err error) {
	for run := ""; ; {
		var h History
		continued := ""
		for events := temporal.GetWorkflowHistory(ctx, id, run, false, 0); events.HasNext(); {
			e, err := events.Next()
			if err != nil {
				return nil, err
			}
			h.Events++
			h.Bytes += e.Size()
			if a := e.GetWorkflowExecutionStartedEventAttributes(); a != nil {
				continued = a.GetContinuedExecutionRunId()
			}
		}
		all = append(all, h)
		if continued == "" || continued == run {
			return all, nil
		}
		run = continued
	}
}
