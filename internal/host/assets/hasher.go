package assets

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/deployctl/deployctl/internal/host/assets/digest"
	"github.com/deployctl/deployctl/internal/sandbox/process"
)

// errClosed is the error of a Hasher after Close.
var errClosed = errors.New("the update has ended")

// Hasher sets the hashes of one update's assets. The process that opens what they name is started when it is needed
// first, and again if it has ended. Close it. Its methods may be called from any goroutine; a nil Hasher closes.
type Hasher struct {
	start func(process.Command) (*process.Process, error)

	mu     sync.Mutex
	closed bool
	reader *reader // nil: none was started
}

// New returns a Hasher whose process is started by a function, in the directory in which relative paths begin.
func New(start func(process.Command) (*process.Process, error)) *Hasher { return &Hasher{start: start} }

// Close ends the process. Whoever waits for a hash gets an error.
func (h *Hasher) Close() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
	if h.reader != nil {
		h.reader.process.Kill()
	}
}

// ask returns the hashes that an item lacks.
func (h *Hasher) ask(ctx context.Context, item *digest.Item, missing int) ([]string, error) {
	r, err := h.running()
	if err != nil {
		return nil, err
	}
	return r.ask(ctx, item, missing)
}

// running returns the process, and starts it unless it runs.
func (h *Hasher) running() (*reader, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errClosed
	}
	if h.reader != nil && !h.reader.ended() {
		return h.reader, nil
	}
	self, err := process.Self()
	if err != nil {
		return nil, err
	}
	r := &reader{waiting: map[int]*question{}}
	r.process, err = h.start(process.Command{Path: self, Name: digest.Name, Stdin: true, Stdout: r.hear})
	if err != nil {
		return nil, fmt.Errorf("starting the process that opens it: %w", err)
	}
	h.reader = r
	return r, nil
}

// reader is a process that opens what assets name. It has the rights of the program, which may have made it say
// anything: its answers are hashes of what it was asked for, or nothing.
type reader struct {
	process *process.Process

	mu      sync.Mutex
	last    int
	waiting map[int]*question
}

// question is an order that is not answered yet.
type question struct {
	hashes []string
	end    chan error // receives one value
}

func (r *reader) ended() bool {
	select {
	case <-r.process.Ended():
		return true
	default:
		return false
	}
}

func (r *reader) ask(ctx context.Context, item *digest.Item, missing int) ([]string, error) {
	q := &question{hashes: make([]string, missing), end: make(chan error, 1)}
	r.mu.Lock()
	r.last++
	id := r.last
	r.waiting[id] = q
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.waiting, id)
	}()
	order, err := json.Marshal(digest.Order{ID: id, Item: item})
	if err != nil {
		return nil, err
	}
	// The process may have been stopped, so that nobody reads this; an error is that of its end.
	go func() { _, _ = r.process.Write(append(order, '\n')) }()
	select {
	case err := <-q.end:
		if err != nil {
			return nil, err
		}
		return q.hashes, nil
	case <-r.process.Done():
		return nil, fmt.Errorf("the process that opens it has ended (%s)", r.process.Exit())
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// hear takes a line of the process.
func (r *reader) hear(line string) {
	var a digest.Answer
	if json.Unmarshal([]byte(line), &a) != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.waiting[a.ID]
	switch {
	case q == nil:
	case a.End:
		delete(r.waiting, a.ID)
		q.end <- q.judged(a.Error)
	case a.Index >= 0 && a.Index < len(q.hashes) && isHash(a.Hash):
		q.hashes[a.Index] = a.Hash
	}
}

// judged returns the error of a question that was answered with a text.
func (q *question) judged(text string) error {
	if text != "" {
		return errors.New(text)
	}
	for _, hash := range q.hashes {
		if hash == "" {
			return errors.New("the process that opens it has not said a hash")
		}
	}
	return nil
}

// isHash reports whether a text is a SHA-256 in hexadecimal.
func isHash(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == 32
}
