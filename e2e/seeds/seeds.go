// Package seeds holds what programs share that play random runs by seed: ranges of seeds, and files of outcomes from
// which an interrupted run is resumed.
package seeds

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// longestLine bounds a line of a file of outcomes, in bytes.
const longestLine = 16 << 20

// Parse reads a range of seeds, such as 1-20, or one seed.
func Parse(text string) (from, to int, err error) {
	first, last, ranged := strings.Cut(text, "-")
	if !ranged {
		last = first
	}
	from, errFrom := strconv.Atoi(first)
	to, errTo := strconv.Atoi(last)
	if err := errors.Join(errFrom, errTo); err != nil || from < 1 || to < from {
		return 0, 0, fmt.Errorf("seeds are FROM-TO, such as 1-20, not %q", text)
	}
	return from, to, nil
}

// Build returns a digest of a binary and of its embedded service: outcomes of another build do not count.
func Build(binary string) (string, error) {
	digest := sha256.New()
	for _, path := range []string{binary, binary + "-embedded"} {
		f, err := os.Open(path)
		if err != nil {
			return "", fmt.Errorf("build it with make build: %w", err)
		}
		_, err = io.Copy(digest, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", digest.Sum(nil)[:6]), nil
}

// Read returns the outcomes of a file that keep wants; none if there is no file. A line that is not whole is skipped.
func Read[T any](path string, keep func(T) bool) ([]T, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var kept []T
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, longestLine)
	for lines.Scan() {
		var o T
		if json.Unmarshal(lines.Bytes(), &o) == nil && keep(o) {
			kept = append(kept, o)
		}
	}
	return kept, lines.Err()
}

// Append adds an outcome to a file, as a line. Callers add one at a time.
func Append[T any](path string, o T) error {
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
