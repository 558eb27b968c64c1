package servers

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// mostFolders limits what names remembers, to about ten megabytes.
const mostFolders = 100_000

// names puts the folders on disk that lead to an object. A folder whose own name is there already needs no other sync
// than that of the names in it: a disk takes up to milliseconds for each sync, also of a folder that has not changed.
//
// The server removes a folder with its last object. So a delete forgets the folders before it removes anything, and
// what is put meanwhile is not remembered.
type names struct {
	sync func(folder string) error // syncFile

	mu      sync.Mutex
	onDisk  map[string]bool // folders below the bucket
	deletes int             // that have begun
	running int             // of them
}

// put puts an object by write, and then the folders that lead from the bucket to it on disk.
func (n *names) put(bucket, key string, write func() error) error {
	n.mu.Lock()
	began, alone := n.deletes, n.running == 0
	n.mu.Unlock()
	if err := write(); err != nil {
		return err
	}
	var synced []string
	for folder := filepath.Dir(filepath.Join(bucket, key)); ; folder = filepath.Dir(folder) {
		// a delete may have emptied and removed it
		if err := n.sync(folder); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if folder == bucket || folder == "." || n.has(folder) {
			break
		}
		synced = append(synced, folder)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if !alone || n.deletes != began {
		return nil
	}
	if n.onDisk == nil || len(n.onDisk) > mostFolders {
		n.onDisk = map[string]bool{}
	}
	for _, folder := range synced {
		n.onDisk[folder] = true
	}
	return nil
}

func (n *names) has(folder string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.onDisk[folder]
}

// remove removes objects by do, which may remove their folders with them.
func (n *names) remove(bucket string, keys []string, do func() error) error {
	n.mu.Lock()
	n.deletes++
	n.running++
	for _, key := range keys {
		for folder := filepath.Dir(filepath.Join(bucket, key)); folder != bucket && folder != "."; {
			delete(n.onDisk, folder)
			folder = filepath.Dir(folder)
		}
	}
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.running--
	}()
	return do()
}

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
