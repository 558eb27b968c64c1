package programs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"sort"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// digestPrefix is the start of a file's digest: the name of the hash.
const digestPrefix = "sha256:"

// Digest returns the digest that names a file or a manifest, "sha256:HEX".
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// Project files are stored by the month in which they were sent or last claimed: each month, a client sends again what
// it needs. So a past month is never added to, no new update relies on it, and Collect may remove it without
// coordination.

// Missing returns which of the manifest's files the stack does not have this month, sorted and without repeats.
// CodeQuota: they are larger than the stack's organization may upload.
func (s *Store) Missing(ctx context.Context, name deployments.StackName, m deployments.Manifest) ([]string, error) {
	if err := m.Validate(); err != nil {
		return nil, err
	}
	refused := make(chan error, 1)
	go func() { // the files are looked for meanwhile
		refused <- panics.Do("looking for the quota of "+name.Organization, func() error {
			return s.checkUpload(ctx, name.Organization, m.Bytes())
		})
	}()
	missing, err := s.unsent(ctx, name, m)
	if not := <-refused; not != nil {
		return nil, not
	}
	return missing, err
}

// unsent is Missing of a manifest that may have been sent before.
func (s *Store) unsent(ctx context.Context, name deployments.StackName, m deployments.Manifest) ([]string, error) {
	r, l, err := s.listMonth(ctx, name)
	if err != nil {
		return nil, err
	}
	month := s.month(r)
	there := make(map[string]bool, len(l.Keys))
	for _, key := range l.Keys {
		there[key] = true
	}
	var missing []string
	for _, f := range m.Files {
		if !there[month+fileHash(r, f.Digest)] {
			missing = append(missing, f.Digest)
		}
	}
	if len(missing) == 0 {
		if _, digest, err := encodeManifest(m); err == nil && there[month+fileHash(r, digest)] {
			s.bundles.note(month + fileHash(r, digest))
		}
	}
	sort.Strings(missing)
	return slices.Compact(missing), nil
}

// listMonth lists the files that a stack has this month. It lists those of the identity that the stack had when it was
// looked at last, while it finds out whether that is still the stack's.
func (s *Store) listMonth(
	ctx context.Context, name deployments.StackName,
) (r stackobjects.Stack, l bucket.Listing, err error) {
	list := func(ctx context.Context, r stackobjects.Stack) (bucket.Listing, error) {
		l, err := s.stacks.Sealed.Objects.List(ctx, bucket.Query{Prefix: s.month(r)})
		return l, bucket.Failed(err, "list the project files of "+name.String())
	}
	was, known := s.stacks.Last(name)
	if !known {
		if r, err = s.stacks.Of(ctx, name); err == nil {
			l, err = list(ctx, r)
		}
		return r, l, err
	}
	listing, lists := panics.NewGroup(ctx, "listing the project files of "+name.String())
	listing.Go(func() (err error) {
		r, err = s.stacks.Of(lists, name)
		return err
	})
	listing.Go(func() (err error) {
		l, err = list(lists, was)
		return err
	})
	if err = listing.Wait(); err == nil && r.ID != was.ID {
		l, err = list(ctx, r)
	}
	return r, l, err
}

// encodeManifest returns the content of a manifest as it is stored, and the digest of the bundle.
func encodeManifest(m deployments.Manifest) (content []byte, digest string, err error) {
	if content, err = json.Marshal(m); err != nil {
		return nil, "", deployments.Errorf(deployments.CodeInternal, "write the manifest: %w", err)
	}
	return content, Digest(content), nil
}

// largeFile is the size from which a file is sealed in place.
const largeFile = 16 << 20

// PutFile stores a file's content under its digest; CodeInvalid when the content has another one. PutFile takes
// ownership of the content: it overwrites a large one.
func (s *Store) PutFile(ctx context.Context, name deployments.StackName, digest string, content []byte) error {
	if got := Digest(content); got != digest {
		return deployments.Errorf(deployments.CodeInvalid, "the content that was sent for %s has the digest %s: it "+
			"changed while it was read; try again", digest, got)
	}
	if err := s.checkUpload(ctx, name.Organization, int64(len(content))); err != nil {
		return err
	}
	r, err := s.stacks.Of(ctx, name)
	if err != nil {
		return err
	}
	key := s.month(r) + fileHash(r, digest)
	if len(content) < largeFile {
		return s.stacks.PutBlob(ctx, r, key, content)
	}
	_, err = s.stacks.Sealed.Objects.Put(ctx, key, r.Box.SealOwned(content, "blob "+path.Base(key)), bucket.Condition{})
	return bucket.Failed(err, "write the file "+digest)
}

// month returns the folder of the files that are sent now.
func (s *Store) month(r stackobjects.Stack) string {
	return r.BlobKey("files", s.stacks.Sealed.Now().UTC().Format(monthForm), "")
}

const monthForm = "2006-01"

// Files returns the folder of the files of a stack, which has one for each month.
func Files(r stackobjects.Stack) string { return r.BlobKey("files", "") }

// EndOf returns when the month of a folder ended or will end; false if it is the folder of none.
func EndOf(folder string) (time.Time, bool) {
	month, err := time.Parse(monthForm, path.Base(folder))
	return month.AddDate(0, 1, 0), err == nil
}

// find returns a stored file: of this month, else of the latest month that has it, else one that an older release
// stored without a month.
func (s *Store) find(
	ctx context.Context, r stackobjects.Stack, hash string,
) (o bucket.Object, thisMonth bool, err error) {
	o, err = s.stacks.Sealed.Objects.Get(ctx, s.month(r)+hash)
	if !errors.Is(err, bucket.ErrAbsent) {
		return o, true, err
	}
	l, err := s.stacks.Sealed.Objects.List(ctx, bucket.Query{Prefix: Files(r), Fold: true})
	if err != nil {
		return bucket.Object{}, false, err
	}
	for _, folder := range slices.Backward(append([]string{r.BlobKey("")}, l.Keys...)) {
		if o, err = s.stacks.Sealed.Objects.Get(ctx, folder+hash); !errors.Is(err, bucket.ErrAbsent) {
			break
		}
	}
	return o, false, err
}

// File returns a file's content; CodeFormat when what is stored does not match the digest.
func (s *Store) File(ctx context.Context, name deployments.StackName, digest string) ([]byte, error) {
	r, err := s.stacks.Of(ctx, name)
	if err != nil {
		return nil, err
	}
	content, _, err := s.file(ctx, r, digest)
	return content, err
}

// file is File that also returns whether the file was sent, or claimed, in this month.
func (s *Store) file(
	ctx context.Context, r stackobjects.Stack, digest string,
) (content []byte, thisMonth bool, err error) {
	hash := fileHash(r, digest)
	o, thisMonth, err := s.find(ctx, r, hash)
	if errors.Is(err, bucket.ErrAbsent) {
		return nil, false, deployments.Errorf(deployments.CodeNotFound,
			"the project file %s is not kept any more: %w; send the project again with `deployctl up`", digest, err)
	}
	if err != nil {
		return nil, false, bucket.Failed(err, "read the file "+digest)
	}
	content, err = s.stacks.Sealed.Open(r.Box, o.Data, "the project file "+digest, "blob "+hash)
	if err != nil {
		return nil, false, err
	}
	if got := Digest(content); got != digest {
		return nil, false, deployments.Errorf(deployments.CodeFormat, "the stored file %s has the digest %s: the store is "+
			"damaged", digest, got)
	}
	return content, thisMonth, nil
}

// PutManifest stores a manifest and returns the bundle's digest; CodeInvalid when one of its files is missing.
func (s *Store) PutManifest(ctx context.Context, name deployments.StackName, m deployments.Manifest) (string, error) {
	r, err := s.stacks.Of(ctx, name)
	if err != nil {
		return "", err
	}
	content, digest, err := encodeManifest(m)
	if err != nil {
		return "", err
	}
	key := s.month(r) + fileHash(r, digest)
	if s.bundles.complete(key) && m.Validate() == nil {
		return digest, nil
	}
	missing, err := s.Missing(ctx, name, m)
	if err != nil || s.bundles.complete(key) {
		return digest, err
	}
	if err := s.copyToMonth(ctx, r, missing); err != nil { // the month may have ended since they were sent
		return "", err
	}
	if err := s.stacks.PutBlob(ctx, r, key, content); err != nil {
		return "", err
	}
	s.bundles.note(key)
	return digest, nil
}

// copyToMonth copies files of earlier months into this one; CodeInvalid when one was never sent.
func (s *Store) copyToMonth(ctx context.Context, r stackobjects.Stack, digests []string) error {
	return bucket.Each(digests, func(digest string) error {
		hash := fileHash(r, digest)
		o, _, err := s.find(ctx, r, hash)
		if errors.Is(err, bucket.ErrAbsent) {
			return deployments.Errorf(deployments.CodeInvalid, "%s of the project are not uploaded yet, %s among them",
				deployments.Plural(len(digests), "file"), digest)
		}
		if err == nil {
			_, err = s.stacks.Sealed.Objects.Put(ctx, s.month(r)+hash, o.Data, bucket.Condition{})
		}
		return bucket.Failed(err, "keep the file "+digest)
	})
}

// KeepBundle keeps a bundle for as long as one that is sent now: an update may begin long after its bundle was sent.
func (s *Store) KeepBundle(ctx context.Context, name deployments.StackName, digest string) error {
	r, err := s.stacks.Of(ctx, name)
	if err != nil {
		return err
	}
	key := s.month(r) + fileHash(r, digest)
	if s.bundles.complete(key) {
		return nil
	}
	if _, err := s.stacks.Sealed.Objects.Tag(ctx, key); !errors.Is(err, bucket.ErrAbsent) {
		return bucket.Failed(err, "find the bundle "+digest)
	}
	m, err := s.Bundle(ctx, name, digest)
	if err != nil {
		return err
	}
	missing, err := s.unsent(ctx, name, m)
	if err != nil {
		return err
	}
	if err := s.copyToMonth(ctx, r, missing); err != nil {
		return err
	}
	return s.copyToMonth(ctx, r, []string{digest}) // last: it marks that the files are complete
}

// Bundle returns the manifest of a bundle. Its files are read with File.
func (s *Store) Bundle(ctx context.Context, name deployments.StackName, digest string) (deployments.Manifest, error) {
	r, err := s.stacks.Of(ctx, name)
	if err != nil {
		return deployments.Manifest{}, err
	}
	key := s.month(r) + fileHash(r, digest)
	if m, known := s.bundles.manifest(key); known {
		return m, nil
	}
	var m deployments.Manifest
	content, thisMonth, err := s.file(ctx, r, digest)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return m, bucket.Damaged(digest, err)
	}
	if err = m.Validate(); err == nil && thisMonth {
		s.bundles.keep(key, m)
	}
	return m, err
}

// fileHash returns the stored name of a file. It is keyed, so that names do not reveal whether a known file is stored.
func fileHash(r stackobjects.Stack, digest string) string {
	return fmt.Sprintf("file-%x", r.Box.Digest([]byte(digest)))
}
