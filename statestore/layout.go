package statestore

import (
	"context"
	"path"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/access"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/identities"
	"github.com/deployctl/deployctl/statestore/keys"
	"github.com/deployctl/deployctl/statestore/organizations"
	"github.com/deployctl/deployctl/statestore/seal"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// layout tells the keys what the objects of the bucket are.
func (s *Store) layout() keys.Layout {
	return keys.Layout{Sealed: sealedKey, As: s.sealedAs, Kind: kindOf, Open: s.opens,
		InUse: []string{stackobjects.Folder, access.TokenFolder, access.MemberFolder, "blobs/", "removed/", identities.Folder,
			access.AuditFolder, organizations.Folder, organizations.ServiceFolder, organizations.QuotaFolder}}
}

// sealedKey reports whether what is stored under an object key is sealed: everything except heads, checkpoints, the
// keyring, and objects under removed/ and organizations/.
func sealedKey(key string) bool {
	folder, rest, ok := strings.Cut(key, "/")
	switch folder {
	case "removed", "keys", "organizations":
		return false
	case "stacks":
		parts := strings.SplitN(rest, "/", 4)
		return len(parts) == 4 && parts[3] != "head.json" && !strings.HasPrefix(parts[3], "checkpoints/")
	}
	return ok
}

// sealedAs returns the box and the context with which an object is sealed.
func (s *Store) sealedAs(ctx context.Context, key string) (*seal.Box, string, error) {
	parts := strings.Split(key, "/")
	switch {
	case parts[0] == "blobs" && len(parts) > 2:
		return s.ring(parts[1]).Box, "blob " + path.Base(key), nil
	case parts[0] != "stacks":
		return s.keys.Box(seal.PurposeStore), key, nil
	}
	name := deployments.StackName{Organization: parts[1], Project: parts[2], Stack: parts[3]}
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return nil, "", err
	}
	if len(parts) == 8 && parts[4] == "updates" && parts[6] == blobFolder {
		return r.Box, "blob " + path.Base(key), nil
	}
	return r.Box, stackobjects.Context(name, key), nil
}

// openAny opens a sealed object by its key alone.
func (s *Store) openAny(ctx context.Context, key string) ([]byte, error) {
	if !sealedKey(key) {
		return nil, deployments.Errorf(deployments.CodeNotFound, "%s is not sealed", key)
	}
	o, err := s.objects.Get(ctx, key)
	if err != nil {
		return nil, bucket.Failed(err, "read "+key)
	}
	box, context, err := s.sealedAs(ctx, key)
	if err != nil {
		return nil, err
	}
	return box.Open(o.Data, context)
}

// kindOf returns the kind of a sealed or authenticated object; empty for others.
func kindOf(key string) string {
	if bucket.CheckKey(key) != nil {
		return ""
	}
	folder, _, _ := strings.Cut(key, "/")
	switch {
	case headOf(key) != nil:
		return "heads"
	case sealedKey(key):
		return folder
	}
	return ""
}

// headOf returns the stack of a head's key; nil for other objects.
func headOf(key string) *deployments.StackName {
	parts := strings.Split(key, "/")
	if len(parts) != 5 || parts[0] != "stacks" || parts[4] != "head.json" {
		return nil
	}
	return &deployments.StackName{Organization: parts[1], Project: parts[2], Stack: parts[3]}
}

// opens reports why an object cannot be opened with the service's keys, or why a head's MAC is wrong.
func (s *Store) opens(ctx context.Context, key string) error {
	if name := headOf(key); name != nil {
		_, _, err := s.readHead(ctx, *name)
		return err
	}
	_, err := s.openAny(ctx, key)
	return err
}
