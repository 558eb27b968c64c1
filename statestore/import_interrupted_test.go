package statestore_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// beside is an object store that does something before an object is written.
type beside struct {
	bucket.Objects
	key string
	do  func()
}

func (b *beside) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	if b.do != nil && strings.HasSuffix(key, b.key) && moves(data) {
		do := b.do
		b.do = nil
		do()
	}
	return b.Objects.Put(ctx, key, data, c)
}

// moves tells of a head that it ends a claim; of anything else it is true.
func moves(data []byte) bool {
	var h statestore.Head
	return json.Unmarshal(data, &h) != nil || h.Active == nil
}

func TestAnImportWhoseClientLeavesIsCompleteOrReleasesTheStack(t *testing.T) {
	for _, c := range []struct {
		name, key string
		version   int
	}{
		{"before it is written", "checkpoints/1.json.zst", 0},
		{"once it is written", "head.json", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects := &beside{Objects: &bucket.Memory{}}
			s, stock := newStack(t, objects), golden(t, "stock.json")
			ctx, goAway := context.WithCancel(t.Context())
			objects.key, objects.do = c.key, goAway
			version, err := s.Import(ctx, statestore.Exchange{Stack: dev, Secrets: provider(t, stock)}, stock)
			if version != c.version || (version == 0) != errors.Is(err, context.Canceled) {
				t.Errorf("it gave %d, %v", version, err)
			}
			if h := headOf(t, s, dev); h.Version != c.version || h.Active != nil {
				t.Errorf("the head is %+v", h)
			}
		})
	}
}

// failing is an object store on which a write of a head that ends a claim goes wrong, once.
type failing struct {
	bucket.Objects
	failed bool
}

func (f *failing) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	if strings.HasSuffix(key, "head.json") && moves(data) && c.Tag != "" && !f.failed {
		f.failed = true
		return "", bucket.ErrTransient
	}
	return f.Objects.Put(ctx, key, data, c)
}

func TestAnImportThatCannotMoveTheHeadGivesTheStackBack(t *testing.T) {
	s, stock := newStack(t, &failing{Objects: &bucket.Memory{}}), golden(t, "stock.json")
	_, err := s.Import(t.Context(), statestore.Exchange{Stack: dev, Secrets: provider(t, stock)}, stock)
	if deployments.CodeOf(err) != deployments.CodeUnavailable {
		t.Errorf("got %v", err)
	}
	if h := headOf(t, s, dev); h.Version != 0 || h.Active != nil {
		t.Errorf("the head is %+v", h)
	}
}

func TestAnImportLeavesTheStackToAnUpdateThatWasFaster(t *testing.T) {
	s, stock := newStack(t, &bucket.Memory{}), golden(t, "stock.json")
	var update statestore.Claim
	reserve := func(context.Context, deployments.StackName) (int, error) {
		var err error
		update, err = s.Claim(t.Context(), statestore.Claimant{Update: deployments.UpdateName{StackName: dev,
			Version: "1"}, Writer: "w#1"})
		return 1, err
	}
	_, err := s.Import(t.Context(), statestore.Exchange{Stack: dev, Secrets: provider(t, stock), Reserve: reserve},
		stock)
	if deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("got %v", err)
	}
	if err := s.Holds(t.Context(), update); err != nil {
		t.Error(err)
	}
}

func TestAnImportThatLostTheStackSaysSo(t *testing.T) {
	objects := &beside{Objects: &bucket.Memory{}}
	s, stock := newStack(t, objects), golden(t, "stock.json")
	objects.key, objects.do = "checkpoints/1.json.zst", func() {
		claim, err := s.ClaimOf(t.Context(), deployments.UpdateName{StackName: dev, Version: "1"})
		if !strings.HasPrefix(claim.Writer, "#") {
			t.Errorf("%q may be taken for a worker's", claim.Writer)
		}
		if err == nil {
			err = s.Commit(t.Context(), claim, statestore.Written{})
		}
		if err != nil {
			t.Error(err)
		}
	}
	_, err := s.Import(t.Context(), statestore.Exchange{Stack: dev, Secrets: provider(t, stock)}, stock)
	if deployments.CodeOf(err) != deployments.CodeConflict || !strings.Contains(err.Error(), "do it again") {
		t.Errorf("got %v", err)
	}
	if h := headOf(t, s, dev); h.Version != 0 || h.Active != nil {
		t.Errorf("the head is %+v", h)
	}
}
