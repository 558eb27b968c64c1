package launcher

import (
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// In namespaces of their own, programs of all organizations have the worker's user id, for which the kernel counts much
// of what they use. docs/sandbox.md has the table of these counters.

// counted are the limits of resources that the kernel counts for a user id. In a user namespace the kernel also holds
// the sum of all processes below what the process that created it had as its limit.
var counted = []int{unix.RLIMIT_NPROC, unix.RLIMIT_SIGPENDING, unix.RLIMIT_MSGQUEUE}

// reserve keeps a quarter of each counted resource for the worker: all programs together get the rest.
func reserve() error { return lower(func(limit uint64) uint64 { return limit - limit/4 }) } //nolint:mnd // a quarter

// takeHalf leaves this process and what it starts half of what all programs get of each counted resource.
func takeHalf() error { return lower(func(limit uint64) uint64 { return limit / 2 }) } //nolint:mnd // a half

// lower sets the counted limits, but those that are unlimited or too small to be divided, to a part of what all
// programs have.
func lower(part func(uint64) uint64) error {
	for _, resource := range counted {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(resource, &now); err != nil {
			return err
		}
		limit := part(now.Max)
		if now.Max == unix.RLIM_INFINITY || limit == 0 {
			continue
		}
		if err := syscall.Setrlimit(resource, &syscall.Rlimit{Cur: min(now.Cur, limit), Max: limit}); err != nil {
			return err
		}
	}
	return nil
}

// Counters are what the kernel counts for a user id and bounds in each user namespace, and the bounds in that of a
// program. The settings of the machine bound the sum. Other namespaces cannot be made without one of a user.
var Counters = map[string]int{
	"max_user_namespaces": 0, "max_inotify_instances": 64, "max_inotify_watches": 1 << 16, "max_fanotify_groups": 16,
	"max_fanotify_marks": 1 << 12,
}

// boundCounters sets the bounds of Counters. Where the system does not let it (a container whose /proc/sys is
// read-only, an older kernel), what bounds them is the setting of the machine; user namespaces are refused in another
// way as well.
func boundCounters() {
	for name, bound := range Counters {
		path := "/proc/sys/user/" + name
		_ = os.WriteFile(path, []byte(strconv.Itoa(bound)), 0)
	}
}
