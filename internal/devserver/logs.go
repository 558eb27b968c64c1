package devserver

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
)

// maxLogSize is how large a log file grows before it becomes NAME.1, which replaces the one before.
const maxLogSize = 16 << 20

// Logs are the paths of the logs of a home, the current one of each server.
func Logs(path string) ([]string, error) {
	h, err := findHome(path)
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(h.logs())
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var logs []string
	for _, entry := range entries {
		if filepath.Ext(entry.Name()) == ".log" {
			logs = append(logs, filepath.Join(h.logs(), entry.Name()))
		}
	}
	return logs, err
}

// logFile is a log that a server writes to; safe for concurrent use.
type logFile struct {
	path string
	mu   sync.Mutex
	file *os.File
	size int64
}

// openLog starts a new log below h, keeping the one of the run before as NAME.1.
func openLog(h home, name string) (*logFile, error) {
	l := &logFile{path: filepath.Join(h.logs(), name)}
	return l, l.rotate()
}

func (l *logFile) rotate() error {
	if l.file != nil {
		_ = l.file.Close()
	}
	if err := os.Rename(l.path, l.path+".1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(l.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	l.file, l.size = file, 0
	return err
}

// Write appends p whole, or drops it once the log is closed: servers have last words after they have ended.
func (l *logFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return len(p), nil
	}
	if l.size+int64(len(p)) > maxLogSize {
		if err := l.rotate(); err != nil {
			return 0, err
		}
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

// Sync has nothing to do: a log need not survive a power cut.
func (l *logFile) Sync() error { return nil }

// Close ends the log.
func (l *logFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file == nil {
		return nil
	}
	file := l.file
	l.file = nil
	return file.Close()
}
