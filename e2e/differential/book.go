package main

import (
	"os"
	"path/filepath"
	"sync"

	"github.com/deployctl/deployctl/e2e/seeds"
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
	build, err := seeds.Build(binary)
	return &book{path: filepath.Join(dir, "outcomes.jsonl"), build: build}, err
}

// known returns the outcomes of this build in which the engines did not differ.
func (b *book) known() (map[int]outcome, error) {
	played, err := seeds.Read(b.path, func(o outcome) bool { return o.Build == b.build && o.Differs == "" })
	known := map[int]outcome{}
	for _, o := range played {
		known[o.Seed] = o
	}
	return known, err
}

func (b *book) add(o outcome) error {
	o.Build = b.build
	b.mu.Lock()
	defer b.mu.Unlock()
	return seeds.Append(b.path, o)
}
