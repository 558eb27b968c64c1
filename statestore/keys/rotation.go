package keys

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// dropGrace is how long a key must have been replaced before it can be dropped: until then a process may still seal
// with it.
const dropGrace = 10 * time.Minute

// Info describes one of the sealing keys.
type Info struct {
	ID      string    `json:"id"`
	Created time.Time `json:"created,omitzero"`
	Retired time.Time `json:"retired,omitzero"` // zero: the current key
	Objects int       `json:"objects"`          // objects of the bucket that it has sealed
}

// Tally is told how many objects of how many are done, by one caller at a time, the objects in any order.
type Tally func(done, of int)

// List lists the sealing keys, the oldest first, and how many objects need each. It reads the whole bucket.
func (s *Store) List(ctx context.Context, tally Tally) ([]Info, error) {
	if err := s.reloadKeyring(ctx); err != nil {
		return nil, err
	}
	var infos []Info
	counts := map[seal.KeyID]*atomic.Int64{}
	keys := s.ring.Keys().Sealing // another process may drop one while the bucket is read
	for _, key := range keys {
		infos = append(infos, Info{ID: key.ID().String(), Created: key.Created, Retired: key.Retired})
		counts[key.ID()] = &atomic.Int64{}
	}
	first := keys[0].ID()
	err := s.eachSealed(ctx, tally, func(key string) error {
		o, err := s.objects.Get(ctx, key)
		if errors.Is(err, bucket.ErrAbsent) {
			return nil
		}
		if err != nil {
			return bucket.Failed(err, "read "+key)
		}
		id, named := seal.KeyOf(o.Data)
		if !named { // sealed before values named their key
			id = first
		}
		if n, ok := counts[id]; ok {
			n.Add(1)
		}
		return nil
	})
	for i, key := range keys {
		infos[i].Objects = int(counts[key.ID()].Load())
	}
	return infos, err
}

// Rotate creates a new sealing key and makes it the current one. All keys are wrapped again, with each of this
// process's keepers; the first is the service's. Other processes find the new key by Follow.
func (s *Store) Rotate(ctx context.Context) (Info, error) {
	var key seal.SealingKey
	err := s.changeKeyring(ctx, func(content *keyringContent) {
		key = content.rotate(s.now().UTC())
	})
	return Info{ID: key.ID().String(), Created: key.Created}, err
}

// Drop removes a sealing key. CodeConflict: it is or recently was the current one, or objects need it.
func (s *Store) Drop(ctx context.Context, id string, tally Tally) error {
	infos, err := s.List(ctx, tally)
	if err != nil {
		return err
	}
	for _, info := range infos {
		if info.ID != id {
			continue
		}
		switch {
		case info.Retired.IsZero():
			return deployments.Errorf(deployments.CodeConflict, "the key %s is the one that seals: replace it first "+
				"with `deployctl key rotate`", id)
		case s.now().Sub(info.Retired) < dropGrace:
			return deployments.Errorf(deployments.CodeConflict, "the key %s was replaced less than %s ago, and may "+
				"be in use: try again later", id, dropGrace)
		case info.Objects > 0:
			return deployments.Errorf(deployments.CodeConflict,
				"%s of the bucket are sealed with the key %s: seal them again with `deployctl key reseal`",
				deployments.Plural(info.Objects, "object"), id)
		}
		return s.forgetKey(ctx, id)
	}
	return deployments.Errorf(deployments.CodeNotFound, "there is no key %s; `deployctl key ls` lists those there are",
		id)
}

func (s *Store) forgetKey(ctx context.Context, id string) error {
	return s.changeKeyring(ctx, func(content *keyringContent) {
		content.Sealing = slices.DeleteFunc(content.Sealing, func(key seal.SealingKey) bool {
			return key.ID().String() == id
		})
	})
}

// Resealed counts what Reseal has done.
type Resealed struct {
	Sealed  int // sealed again
	Damaged []string
}

// Reseal seals every object again that has an older key. Others may use the bucket meanwhile: an object that another
// process writes is skipped and checked again. Objects that cannot be opened are named and stay as they are.
func (s *Store) Reseal(ctx context.Context, tally Tally) (Resealed, error) {
	var done Resealed
	var sealed atomic.Int64
	damaged := make(chan string)
	collected := make(chan struct{})
	go func() {
		defer close(collected)
		for key := range damaged {
			done.Damaged = append(done.Damaged, key)
		}
	}()
	err := s.eachSealed(ctx, tally, func(key string) error {
		anew, err := s.reseal(ctx, key)
		if bucket.Unreadable(err) != nil {
			damaged <- key
			return nil
		}
		if anew {
			sealed.Add(1)
		}
		return err
	})
	close(damaged)
	<-collected
	done.Sealed = int(sealed.Load())
	return done, err
}

// reseal seals one object again, if it is not sealed with the current key.
func (s *Store) reseal(ctx context.Context, key string) (bool, error) {
	for {
		o, err := s.objects.Get(ctx, key)
		if errors.Is(err, bucket.ErrAbsent) {
			return false, nil
		}
		if err != nil {
			return false, bucket.Failed(err, "read "+key)
		}
		if id, named := seal.KeyOf(o.Data); named && id == s.ring.Keys().Current().ID() {
			return false, nil
		}
		box, context, err := s.layout.As(ctx, key)
		if err != nil {
			return false, err
		}
		plain, err := box.Open(o.Data, context)
		if err != nil {
			return false, err
		}
		_, err = s.objects.Put(ctx, key, box.Seal(plain, context), bucket.Condition{Tag: o.Tag})
		if errors.Is(err, bucket.ErrChanged) || errors.Is(err, bucket.ErrAbsent) {
			continue
		}
		return err == nil, bucket.Failed(err, "write "+key)
	}
}

// eachSealed calls f concurrently for the key of every sealed object, and tells the tally.
func (s *Store) eachSealed(ctx context.Context, tally Tally, f func(key string) error) error {
	l, err := s.objects.List(ctx, bucket.Query{})
	if err != nil {
		return bucket.Failed(err, "list the bucket")
	}
	var keys []string
	for _, key := range l.Keys {
		if s.layout.Sealed(key) && bucket.CheckKey(key) == nil {
			keys = append(keys, key)
		}
	}
	if tally == nil {
		return bucket.Each(keys, f)
	}
	var mu sync.Mutex
	done := 0
	return bucket.Each(keys, func(key string) error {
		err := f(key)
		mu.Lock()
		defer mu.Unlock()
		done++
		tally(done, len(keys))
		return err
	})
}
