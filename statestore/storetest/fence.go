package storetest

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// Fence has writers compete for a stack on an object store whose calls go wrong, as a seed says, and gives the first
// head that a writer wrote who had lost the stack. Between a writer's look at the head and its write others may have
// their turn, whole.
func Fence(ctx context.Context, objects bucket.Objects, seed uint64) error {
	c := &contest{random: rand.New(rand.NewPCG(seed, 7)), heads: &heads{Objects: objects}}
	faulty := NewFaulty(c.heads, Randomly(seed, 0.2, Sound...))
	if err := c.enter(ctx, faulty); err != nil {
		return err
	}
	for range contestTurns {
		if err := c.turn(ctx); err != nil {
			return err
		}
	}
	return c.heads.broken()
}

const (
	contestTurns   = 40
	contestWriters = 3
	contestDepth   = 2
)

// contest is a Fence at work.
type contest struct {
	heads   *heads
	random  *rand.Rand
	writers []*contestant
	depth   int // of turns within turns
}

// contestant is a writer with the claims that it was given, most of which it has lost since.
type contestant struct {
	*statestore.Store
	name   string
	claims []statestore.Claim
}

// enter makes the stack and the writers, each with a store of its own.
func (c *contest) enter(ctx context.Context, faulty bucket.Objects) error {
	for i := range contestWriters {
		s, err := statestore.New(bucket.NewRetry(&interrupted{faulty, c}, time.Hour),
			statestore.Options{Master: Master})
		if err != nil {
			return err
		}
		c.writers = append(c.writers, &contestant{Store: s, name: fmt.Sprint("w", i)})
	}
	c.depth = contestDepth // nobody interrupts the beginning
	defer func() { c.depth = 0 }()
	return c.writers[0].CreateStack(ctx, dev, nil)
}

// turn lets a writer claim the stack, for the update that has it or the next one, or end an update by a claim that it
// was given some time. Only that it loses is no error.
func (c *contest) turn(ctx context.Context) error {
	w := c.writers[c.random.IntN(len(c.writers))]
	if len(w.claims) == 0 || c.random.IntN(2) == 0 {
		return losing(c.claim(ctx, w))
	}
	claim := w.claims[c.random.IntN(len(w.claims))]
	if c.random.IntN(5) == 0 {
		return losing(w.Commit(ctx, claim, statestore.Written{}))
	}
	err := w.Commit(ctx, claim, statestore.Written{Version: claim.Update.Number(),
		Digest: signed(claim.Writer, claim.Fence)})
	if err == nil && !c.heads.had(signed(claim.Writer, claim.Fence)) {
		return fmt.Errorf("%s was told that it moved the head with the fence %d, and it did not", w.name, claim.Fence)
	}
	return losing(err)
}

func (c *contest) claim(ctx context.Context, w *contestant) error {
	h, err := w.Head(ctx, dev)
	if err != nil {
		return err
	}
	u := deployments.UpdateName{StackName: dev, Version: fmt.Sprint(h.Next)}
	if h.Active != nil && c.random.IntN(4) > 0 {
		u.Version = h.Active.Version
	}
	claim, err := w.Claim(ctx, statestore.Claimant{Update: u, Writer: fmt.Sprint(w.name, "#", c.random.IntN(1000))})
	if err == nil {
		w.claims = append(w.claims, claim)
	}
	return err
}

// losing is no error.
func losing(err error) error {
	if err != nil && deployments.CodeOf(err) == deployments.CodeConflict {
		return nil
	}
	return err
}

// signed is the digest of whatever a claim writes, so that a head tells who moved it.
func signed(writer string, fence int) string { return fmt.Sprint(writer, "/", fence) }

// interrupted lets others have their turn before a writer's head is written.
type interrupted struct {
	bucket.Objects
	contest *contest
}

// Put implements statestore.Objects.
func (i *interrupted) Put(
	ctx context.Context, key string, data []byte, condition bucket.Condition,
) (string, error) {
	if c := i.contest; strings.HasSuffix(key, "/head.json") && c.depth < contestDepth && c.random.IntN(3) == 0 {
		c.depth++
		err := c.turn(ctx)
		c.depth--
		if err != nil {
			return "", err
		}
	}
	return i.Objects.Put(ctx, key, data, condition)
}

// heads remembers every head that was written, in order. It stands next to the store, below all faults.
type heads struct {
	bucket.Objects
	mu  sync.Mutex
	all []statestore.Head
}

// Put implements statestore.Objects.
func (h *heads) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	tag, err := h.Objects.Put(ctx, key, data, c)
	if err == nil && strings.HasSuffix(key, "/head.json") {
		var head statestore.Head
		err = json.Unmarshal(data, &head)
		h.all = append(h.all, head)
	}
	return tag, err
}

func (h *heads) had(digest string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, head := range h.all {
		if head.Digest == digest {
			return true
		}
	}
	return false
}

// broken holds each head to the one before it: the fence never goes back and is another one for each writer, and
// whoever moved the version had the stack.
func (h *heads) broken() error {
	var err error
	for i := 1; i < len(h.all); i++ {
		before, now := h.all[i-1], h.all[i]
		switch {
		case now.Fence < before.Fence:
			err = fmt.Errorf("the fence went back from %d to %d", before.Fence, now.Fence)
		case now.Active != nil && now.Fence == before.Fence && (before.Active == nil ||
			before.Active.Writer != now.Active.Writer):
			err = fmt.Errorf("%s got the stack with a fence, %d, that somebody had before", now.Active.Writer,
				now.Fence)
		case now.Version == before.Version && now.Digest == before.Digest:
		case before.Active == nil || now.Digest != signed(before.Active.Writer, before.Fence):
			err = fmt.Errorf("%s moved the head to version %d, and had lost the stack", now.Digest, now.Version)
		}
		if err != nil {
			return fmt.Errorf("%w (head %d of %d)", err, i+1, len(h.all))
		}
	}
	return nil
}
