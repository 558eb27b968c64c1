package main

import (
	"bufio"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
)

// book keeps outcomes, a line each, so that a run can be resumed. It may be used concurrently.
type book struct {
	path  string
	build string // digest of the binary that is compared

	mu sync.Mutex
}

func openBook(dir, binary string) (*book, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(binary)
	if err != nil {
		return nil, fmt.Errorf("build it with make build: %w", err)
	}
	defer f.Close()
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return nil, err
	}
	return &book{path: filepath.Join(dir, "outcomes.jsonl"), build: fmt.Sprintf("%x", digest.Sum(nil)[:6])}, nil
}

// known returns the outcomes of this build in which the engines did not differ.
func (b *book) known() (map[int]outcome, error) {
	known := map[int]outcome{}
	f, err := os.Open(b.path)
	if errors.Is(err, os.ErrNotExist) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		var o outcome
		if json.Unmarshal(lines.Bytes(), &o) == nil && o.Build == b.build && o.Differs == "" {
			known[o.Seed] = o
		}
	}
	return known, lines.Err()
}

func (b *book) add(o outcome) error {
	o.Build = b.build
	line, err := json.Marshal(o)
	if err != nil {
		return err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	f, err := os.OpenFile(b.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(line, '\n'))
	return errors.Join(err, f.Close())
}
