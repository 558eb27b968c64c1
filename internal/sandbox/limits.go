package sandbox

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/internal/sandbox/launcher"
)

// Limits bound each process of a Box.
type Limits = launcher.Limits

// ParseSize reads a number of bytes, which may have a unit: KiB, MiB, GiB or TiB. "none" is 0: no limit.
func ParseSize(text string) (uint64, error) {
	number, shift := strings.TrimSpace(text), 0
	for unit, by := range map[string]int{"KiB": 10, "MiB": 20, "GiB": 30, "TiB": 40} {
		if rest, ok := strings.CutSuffix(number, unit); ok {
			number, shift = strings.TrimSpace(rest), by
			break
		}
	}
	n, err := ParseCount(number)
	if err != nil || n > (1<<63)>>shift {
		return 0, fmt.Errorf("%q is no size: write one as 512MiB, 8GiB or none", text)
	}
	return n << shift, nil
}

// ParseCount reads a positive number; "none" is 0: no limit.
func ParseCount(text string) (uint64, error) {
	if text == "none" {
		return 0, nil
	}
	n, err := strconv.ParseUint(text, 10, 63)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%q is no limit: write a positive number, or none", text)
	}
	return n, nil
}

// ParseTime reads a duration in seconds; "none" is 0: no limit.
func ParseTime(text string) (uint64, error) {
	if text == "none" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < time.Second {
		return 0, fmt.Errorf("%q is no time: write one as 90m, 24h or none", text)
	}
	return uint64(d / time.Second), nil
}
