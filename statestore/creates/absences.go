package creates

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Each create of a type with a settle rule may note an absence, and waits until the note is durable. So what is noted
// while an object is written is in the next object, together.

// noted is what one object is of: an update of a stack.
type noted struct {
	name    deployments.StackName
	version int
}

// queue has what is to be written of an update; a goroutine writes until that is nothing.
type queue struct{ next *absences }

// absences are the notes of one object.
type absences struct {
	sought  map[string]string // by the seeds of the creates, as hexadecimal digits
	written chan struct{}     // closed after the attempt to write them
	err     error             // of that attempt
}

// absencesRead is how many objects with absences are remembered, of about two kilobytes each: for every create that a
// lost worker leaves, all of the update are looked at if none tells of it. An update of 200,000 creates has so many.
const absencesRead = 8192

// absencesFolder cannot be a seed.
const absencesFolder = "absences"

// NoteAbsence records that the resource of a create was looked for before an attempt, and did not exist. The create
// is identified by its seed, the same in every update that attempts it; sought is a digest of what was looked for,
// and version that of the update that looked. It returns when the note is durable.
func (s *Store) NoteAbsence(
	ctx context.Context, name deployments.StackName, seed []byte, sought string, version int,
) error {
	of := noted{name, version}
	s.mu.Lock()
	q, writing := s.queues[of]
	if !writing {
		q = &queue{}
		s.queues[of] = q
	}
	if q.next == nil {
		q.next = &absences{sought: map[string]string{}, written: make(chan struct{})}
	}
	a := q.next
	a.sought[hex.EncodeToString(seed)] = sought
	s.mu.Unlock()
	if !writing {
		go s.write(context.WithoutCancel(ctx), of, q)
	}
	select {
	case <-a.written:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// write writes what is in a queue, until that is nothing.
func (s *Store) write(ctx context.Context, of noted, q *queue) {
	for {
		s.mu.Lock()
		a := q.next
		if q.next = nil; a == nil {
			delete(s.queues, of)
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		a.err = panics.Do("noting absences", func() error { return s.put(ctx, of, a.sought) })
		close(a.written)
	}
}

func (s *Store) put(ctx context.Context, of noted, sought map[string]string) error {
	stack, err := s.stacks.Of(ctx, of.name)
	if err != nil {
		return err
	}
	key := absencesKey(stack, of.name, fmt.Sprintf("%s%016x-%s", versionForm(of.version), time.Now().UnixNano(),
		rand.Text()))
	return s.stacks.PutJSON(ctx, of.name, key, sought)
}

// SawAbsence reports whether NoteAbsence was called for a create and the same search, in an update since a version: a
// create before that one may have had the seed, too.
func (s *Store) SawAbsence(
	ctx context.Context, name deployments.StackName, seed []byte, sought string, since int,
) (bool, error) {
	stack, err := s.stacks.Of(ctx, name)
	if err != nil {
		return false, err
	}
	prefix := absencesKey(stack, name, "")
	l, err := s.stacks.Sealed.Objects.List(ctx, bucket.Query{Prefix: prefix, After: prefix + versionForm(since)})
	if err != nil {
		return false, bucket.Failed(err, "list "+prefix)
	}
	for _, key := range slices.Backward(l.Keys) { // what was lost was noted lately
		all, err := s.absencesOf(ctx, name, key)
		if err != nil {
			return false, err
		}
		if all[hex.EncodeToString(seed)] == sought {
			return true, nil
		}
	}
	return s.sawEarlier(ctx, name, seed, sought, since)
}

// absencesOf returns what one object tells, by the seeds of the creates; nil if it was removed.
func (s *Store) absencesOf(ctx context.Context, name deployments.StackName, key string) (map[string]string, error) {
	if all, known := s.read.Get(key); known {
		return all, nil
	}
	return s.reading.Do(ctx, key, "reading absences", func(ctx context.Context) (map[string]string, error) {
		all, known := s.read.Get(key) // another read of it may have ended since
		if known {
			return all, nil
		}
		_, err := s.stacks.GetJSON(ctx, name, key, &all)
		switch {
		case errors.Is(err, bucket.ErrAbsent): // it was too old
			return all, nil
		case err == nil:
			s.read.Add(key, all)
		}
		return all, err
	})
}

// OfSeveral reports whether a key is of an object with the absences of several creates.
func OfSeveral(key string) bool {
	segments := strings.Split(key, "/")
	return len(segments) > 1 && segments[len(segments)-2] == absencesFolder
}

func absencesKey(stack stackobjects.Stack, name deployments.StackName, object string) string {
	return stackobjects.Key(name, "creates", stack.ID, absencesFolder, object)
}

// versionForm begins the names of the objects of an update; they sort as versions do.
func versionForm(version int) string { return fmt.Sprintf("%010d-", version) }

// absence is what earlier builds recorded of one create; the earliest recorded the text of Sought alone.
type absence struct {
	Sought  string `json:"sought"`
	Version int    `json:"version"` // of the update that looked
}

// UnmarshalJSON reads either.
func (a *absence) UnmarshalJSON(data []byte) error {
	type plain absence
	if err := json.Unmarshal(data, &a.Sought); err == nil {
		return nil
	}
	return json.Unmarshal(data, (*plain)(a))
}

// sawEarlier is SawAbsence of what earlier builds recorded.
func (s *Store) sawEarlier(
	ctx context.Context, name deployments.StackName, seed []byte, sought string, since int,
) (bool, error) {
	var noted absence
	err := s.record(ctx, name, seed, absenceObject, &noted)
	return err == nil && noted != (absence{}) && noted.Sought == sought && noted.Version >= since, err
}
