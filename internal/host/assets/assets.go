// Package assets sets the hashes of assets and archives that a program leaves to its engine. What they name is opened
// by a process in the sandbox of the program's update (package digest): this one learns hashes.
package assets

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"

	"github.com/deployctl/deployctl/internal/host/assets/digest"
)

// Hash sets the missing hashes in values of a program.
func (h *Hasher) Hash(ctx context.Context, values resource.PropertyMap) error {
	for key, v := range values {
		if err := h.value(ctx, v); err != nil {
			return fmt.Errorf("the hash of the asset in %q cannot be computed: %w", key, err)
		}
	}
	return nil
}

func (h *Hasher) value(ctx context.Context, v resource.PropertyValue) error {
	switch {
	case v.IsAsset():
		return h.asset(ctx, v.AssetValue())
	case v.IsArchive():
		return h.missing(ctx, v.ArchiveValue())
	case v.IsSecret():
		return h.value(ctx, v.SecretValue().Element)
	case v.IsOutput():
		return h.value(ctx, v.OutputValue().Element)
	case v.IsArray():
		for _, e := range v.ArrayValue() {
			if err := h.value(ctx, e); err != nil {
				return err
			}
		}
	case v.IsObject():
		for _, e := range v.ObjectValue() {
			if err := h.value(ctx, e); err != nil {
				return err
			}
		}
	}
	return nil
}

// asset hashes a text here: it names nothing.
func (h *Hasher) asset(ctx context.Context, a *asset.Asset) error {
	if a.Hash != "" || !a.IsText() {
		return h.missing(ctx, a)
	}
	sum := sha256.Sum256([]byte(a.Text))
	a.Hash = hex.EncodeToString(sum[:])
	return nil
}

// missing sets the missing hashes of an asset or an archive, and of what that is made of.
func (h *Hasher) missing(ctx context.Context, v any) error {
	var missing []*string
	item := described(v, &missing)
	if len(missing) == 0 {
		return nil
	}
	hashes, err := h.ask(ctx, item, len(missing))
	for i, hash := range hashes {
		*missing[i] = hash
	}
	return err
}

// described returns an asset or an archive as the process gets it, and appends where each of its missing hashes
// belongs, in the order of digest.Item.Missing; nil if it is neither.
func described(v any, missing *[]*string) *digest.Item {
	var item *digest.Item
	var hash *string
	switch v := v.(type) {
	case *asset.Asset:
		item, hash = &digest.Item{Path: v.Path, URI: v.URI}, &v.Hash
		if v.IsText() {
			item.Text = &v.Text
		}
	case *archive.Archive:
		item, hash = &digest.Item{Archive: true, Path: v.Path, URI: v.URI}, &v.Hash
		if !v.IsAssets() {
			break
		}
		item.Members = map[string]*digest.Item{}
		for _, name := range slices.Sorted(maps.Keys(v.Assets)) {
			if member := described(v.Assets[name], missing); member != nil {
				item.Members[name] = member
			}
		}
	default:
		return nil
	}
	if item.Hash = *hash; item.Hash == "" {
		*missing = append(*missing, hash)
	}
	return item
}
