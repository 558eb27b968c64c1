package statestore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"sort"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// digestPrefix begins the digest of a file: the hash's name.
const digestPrefix = "sha256:"

// Digest gives the digest by which a file or a manifest is known, "sha256:HEX".
func Digest(content []byte) string {
	sum := sha256.Sum256(content)
	return digestPrefix + hex.EncodeToString(sum[:])
}

// Missing answers which of the manifest's files the stack does not have yet, sorted and each once.
func (s *Store) Missing(ctx context.Context, name deployments.StackName, m deployments.Manifest) ([]string, error) {
	if err := checkManifest(m); err != nil {
		return nil, err
	}
	r, err := s.ringOf(ctx, name)
	if err != nil {
		return nil, err
	}
	l, err := s.objects.List(ctx, Query{Prefix: blobKey(r, "file-")})
	if err != nil {
		return nil, failed(err, "list the project files of "+name.String())
	}
	there := make(map[string]bool, len(l.Keys))
	for _, key := range l.Keys {
		there[key] = true
	}
	var missing []string
	for _, f := range m.Files {
		if !there[blobKey(r, fileHash(r, f.Digest))] {
			missing = append(missing, f.Digest)
		}
	}
	sort.Strings(missing)
	return slices.Compact(missing), nil
}

// PutFile stores a file's content under its digest; CodeInvalid when the content has another one.
func (s *Store) PutFile(ctx context.Context, name deployments.StackName, digest string, content []byte) error {
	if got := Digest(content); got != digest {
		return deployments.Errorf(deployments.CodeInvalid, "the content that was sent for %s has the digest %s: it changed while it was read; try again", digest, got)
	}
	r, err := s.ringOf(ctx, name)
	if err != nil {
		return err
	}
	return s.putBlob(ctx, r, fileHash(r, digest), content)
}

// File gives a file's content; CodeFormat when what is stored does not match the digest.
func (s *Store) File(ctx context.Context, name deployments.StackName, digest string) ([]byte, error) {
	r, err := s.ringOf(ctx, name)
	if err != nil {
		return nil, err
	}
	content, err := s.getBlob(ctx, r, fileHash(r, digest))
	if err != nil {
		return nil, err
	}
	if got := Digest(content); got != digest {
		return nil, deployments.Errorf(deployments.CodeFormat, "the stored file %s has the digest %s: the store is damaged", digest, got)
	}
	return content, nil
}

// PutManifest stores a manifest and returns the bundle's digest; CodeInvalid when one of its files is missing.
func (s *Store) PutManifest(ctx context.Context, name deployments.StackName, m deployments.Manifest) (string, error) {
	missing, err := s.Missing(ctx, name, m)
	if err != nil {
		return "", err
	}
	if len(missing) > 0 {
		return "", deployments.Errorf(deployments.CodeInvalid, "%s of the project are not uploaded yet, %s among them", plural(len(missing), "file"), missing[0])
	}
	r, err := s.ringOf(ctx, name)
	if err != nil {
		return "", err
	}
	content, err := json.Marshal(m)
	if err != nil {
		return "", deployments.Errorf(deployments.CodeInternal, "write the manifest: %w", err)
	}
	digest := Digest(content)
	return digest, s.putBlob(ctx, r, fileHash(r, digest), content)
}

// Bundle gives the manifest of a bundle. Its files are read with File.
func (s *Store) Bundle(ctx context.Context, name deployments.StackName, digest string) (deployments.Manifest, error) {
	var m deployments.Manifest
	content, err := s.File(ctx, name, digest)
	if err != nil {
		return m, err
	}
	if err := json.Unmarshal(content, &m); err != nil {
		return m, damaged(digest, err)
	}
	return m, checkManifest(m)
}

// fileHash names a file in the store. It is keyed, so that the names do not tell whether a known file is there.
func fileHash(r *ring, digest string) string {
	return fmt.Sprintf("file-%x", r.box.Digest([]byte(digest)))
}

// checkManifest refuses paths that would leave the directory that a bundle is unpacked in.
func checkManifest(m deployments.Manifest) error {
	for i, f := range m.Files {
		hash, ok := strings.CutPrefix(f.Digest, digestPrefix)
		switch {
		case !localPath(f.Path):
			return deployments.Errorf(deployments.CodeInvalid, "%q is not a path inside the project", f.Path)
		case !ok || len(hash) != 2*sha256.Size:
			return deployments.Errorf(deployments.CodeInvalid, "%q is not the digest of %s; write sha256:HEX", f.Digest, f.Path)
		case i > 0 && m.Files[i-1].Path >= f.Path:
			return deployments.Errorf(deployments.CodeInvalid, "the manifest's files are not sorted by path: %s comes after %s", f.Path, m.Files[i-1].Path)
		}
	}
	if m.Dir != "" && !localPath(m.Dir) {
		return deployments.Errorf(deployments.CodeInvalid, "%q is not a directory inside the project", m.Dir)
	}
	return nil
}

func localPath(p string) bool {
	return p != "" && p != ".." && path.Clean(p) == p && !path.IsAbs(p) && !strings.HasPrefix(p, "../") &&
		!strings.ContainsAny(p, "\\\x00")
}
