package fakecloud

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// entry is one line of the journal: an effect and the object as it left it.
type entry struct {
	Effect Effect `json:"effect"`
	Object Object `json:"object"`
}

// journal is a file of entries, one JSON object a line, that outlives the process. A nil journal keeps nothing.
// It does not sync: it is there for the death of this process, not of the machine.
type journal struct{ file *os.File }

// openJournal opens or makes the file and gives every whole entry in it to replay. A torn last line, left by a death in
// the middle of a write, was never acknowledged and is cut off.
func openJournal(path string, replay func(entry)) (*journal, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	whole, err := replayLines(f, replay)
	if err == nil {
		err = f.Truncate(whole)
	}
	if err == nil {
		_, err = f.Seek(whole, io.SeekStart)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("journal %s: %w", path, err), f.Close())
	}
	return &journal{f}, nil
}

// replayLines reads to the last whole line and returns where it ends.
func replayLines(f io.Reader, replay func(entry)) (whole int64, err error) {
	for r := bufio.NewReader(f); ; {
		line, err := r.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return whole, nil
		}
		if err != nil {
			return whole, err
		}
		var e entry
		if err := json.Unmarshal(bytes.TrimSpace(line), &e); err != nil {
			return whole, fmt.Errorf("at byte %d: %w", whole, err)
		}
		replay(e)
		whole += int64(len(line))
	}
}

func (j *journal) append(e entry) error {
	if j == nil {
		return nil
	}
	line, err := json.Marshal(e)
	if err != nil {
		return err
	}
	_, err = j.file.Write(append(line, '\n'))
	return err
}

func (j *journal) close() error {
	if j == nil {
		return nil
	}
	return j.file.Close()
}
