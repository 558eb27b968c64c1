package programs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// PluginArchives are the archives of plugins that the workers of an organization have downloaded. Organizations share
// none: each object is sealed for its key, which names the organization.
//
// An archive is stored in parts, and its index is written last. It is a cache: what is missing is downloaded again.
// That which address served which archive is never forgotten.
type PluginArchives struct {
	sealed       *bucket.Sealed
	organization string
	box          *seal.Box
}

const (
	// maxPluginParts bounds what an index may say.
	maxPluginParts = 1 << 10
	// usedAgain is the age from which the index of an archive that is used is written again.
	usedAgain = 24 * time.Hour
)

// pluginIndex says how an archive is stored.
type pluginIndex struct {
	Parts int       `json:"parts"`
	Used  time.Time `json:"used"` // at about this time, last
}

// PluginArchives returns the archives of an organization.
func (s *Store) PluginArchives(organization string) *PluginArchives {
	return &PluginArchives{s.stacks.Sealed, organization, s.stacks.Sealed.Keys.Box(seal.PurposeStore)}
}

func (p *PluginArchives) key(segments ...string) string {
	return bucket.Key(append([]string{"plugins", p.organization}, segments...)...)
}

// sumKey is the key of the digest that was recorded for a download. Its name is keyed, so that it does not reveal the
// download.
func (p *PluginArchives) sumKey(key string) string {
	return p.key("downloads", fmt.Sprintf("%x", p.box.Digest([]byte(p.organization+"\n"+key))))
}

// archiveKey is the key of an object of an archive.
func (p *PluginArchives) archiveKey(sum, object string) string {
	return p.key("archives", fmt.Sprintf("%x", p.box.Digest([]byte(p.organization+"\n"+sum))), object)
}

func (p *PluginArchives) indexKey(sum string) string { return p.archiveKey(sum, "index") }

// Sum returns the digest of the archive that was downloaded first for a key; "" if none was.
func (p *PluginArchives) Sum(ctx context.Context, key string) (string, error) {
	sum, err := p.get(ctx, p.sumKey(key))
	if errors.Is(err, bucket.ErrAbsent) {
		return "", nil
	}
	return string(sum), err
}

// Read writes the archive with a digest to w; false if it is not stored, after parts of it may have been written.
func (p *PluginArchives) Read(ctx context.Context, sum string, w io.Writer) (bool, error) {
	var index pluginIndex
	text, err := p.get(ctx, p.indexKey(sum))
	if err == nil && (json.Unmarshal(text, &index) != nil || index.Parts > maxPluginParts) {
		err = bucket.Damaged(p.indexKey(sum), errors.New("it is no index of an archive"))
	}
	for i := 0; err == nil && i < index.Parts; i++ {
		var part []byte
		if part, err = p.get(ctx, p.archiveKey(sum, strconv.Itoa(i))); err == nil {
			_, err = w.Write(part)
		}
	}
	switch {
	case errors.Is(err, bucket.ErrAbsent):
		return false, nil
	case err == nil && p.sealed.Now().Sub(index.Used) > usedAgain:
		err = p.putIndex(ctx, sum, index.Parts)
	}
	return err == nil, err
}

// Write stores an archive. It first records its digest for the key, unless one is recorded, and returns the recorded
// one; if that is another one, the archive is not stored. For an empty key, nothing is recorded.
func (p *PluginArchives) Write(ctx context.Context, key, sum string, archive io.Reader) (string, error) {
	if key != "" {
		recorded, err := p.record(ctx, key, sum)
		if err != nil || recorded != sum {
			return recorded, err
		}
	}
	parts := 0
	for ; ; parts++ {
		part := make([]byte, bucket.PluginPart, bucket.PluginPart+64) // with room for what sealing adds
		n, err := io.ReadFull(archive, part)
		if n > 0 {
			object := p.archiveKey(sum, strconv.Itoa(parts))
			if _, err := p.sealed.Objects.Put(ctx, object, p.box.SealOwned(part[:n], object), bucket.Condition{}); err != nil {
				return "", bucket.Failed(err, "write "+object)
			}
		}
		switch {
		case errors.Is(err, io.ErrUnexpectedEOF):
			return sum, p.putIndex(ctx, sum, parts+1)
		case errors.Is(err, io.EOF):
			return sum, p.putIndex(ctx, sum, parts)
		case err != nil:
			return "", err
		}
	}
}

func (p *PluginArchives) putIndex(ctx context.Context, sum string, parts int) error {
	text, err := json.Marshal(pluginIndex{Parts: parts, Used: p.sealed.Now().UTC()})
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write the index of an archive: %w", err)
	}
	return p.put(ctx, p.indexKey(sum), text, bucket.Condition{})
}

// pluginVersion is a version that was recorded.
type pluginVersion struct {
	Version string    `json:"version"`
	At      time.Time `json:"at"`
}

func (p *PluginArchives) versionKey(key string) string {
	return p.key("versions", fmt.Sprintf("%x", p.box.Digest([]byte(p.organization+"\n"+key))))
}

// Version returns the version that was recorded last for a key, and when; "" if none was.
func (p *PluginArchives) Version(ctx context.Context, key string) (string, time.Time, error) {
	var v pluginVersion
	text, err := p.get(ctx, p.versionKey(key))
	switch {
	case errors.Is(err, bucket.ErrAbsent):
		return "", time.Time{}, nil
	case err == nil && json.Unmarshal(text, &v) != nil:
		err = bucket.Damaged(p.versionKey(key), errors.New("it is no version"))
	}
	return v.Version, v.At, err
}

// SetVersion records a version for a key.
func (p *PluginArchives) SetVersion(ctx context.Context, key, version string) error {
	text, err := json.Marshal(pluginVersion{Version: version, At: p.sealed.Now().UTC()})
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write a version: %w", err)
	}
	return p.put(ctx, p.versionKey(key), text, bucket.Condition{})
}

// record records the digest for a key. The first one stays.
func (p *PluginArchives) record(ctx context.Context, key, sum string) (string, error) {
	err := p.put(ctx, p.sumKey(key), []byte(sum), bucket.Condition{Absent: true})
	if errors.Is(err, bucket.ErrChanged) {
		return p.Sum(ctx, key)
	}
	return sum, err
}

func (p *PluginArchives) put(ctx context.Context, key string, plain []byte, c bucket.Condition) error {
	_, err := p.sealed.Objects.Put(ctx, key, p.box.Seal(plain, key), c)
	return bucket.Failed(err, "write "+key)
}

func (p *PluginArchives) get(ctx context.Context, key string) ([]byte, error) {
	o, err := p.sealed.Objects.Get(ctx, key)
	if err != nil {
		return nil, bucket.Failed(err, "read "+key)
	}
	return p.sealed.Open(p.box, o.Data, key, key)
}

// Collect removes the archives that were not read for an age.
func (p *PluginArchives) Collect(ctx context.Context, age time.Duration) error {
	folder := p.key("archives", "")
	l, err := p.sealed.Objects.List(ctx, bucket.Query{Prefix: folder, Fold: true})
	if err != nil {
		return bucket.Failed(err, "list "+folder)
	}
	before := p.sealed.Now().Add(-max(age, bucket.MinAge) - usedAgain)
	return bucket.Each(l.Keys, func(archive string) error {
		objects, err := p.sealed.Objects.List(ctx, bucket.Query{Prefix: archive})
		if err != nil {
			return bucket.Failed(err, "list "+archive)
		}
		for _, written := range objects.Written {
			if written.After(before) { // its index, or a part of one that is being stored
				return nil
			}
		}
		return p.sealed.DeleteAll(ctx, archive)
	})
}
