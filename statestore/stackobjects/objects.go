// Package stackobjects reads and writes the sealed objects of stacks, by the names that stacks have now. What each of
// them is sealed for is its place in the folder of its stack, so that none counts in the place of another, nor in
// another stack; a rename of the stack changes none.
package stackobjects

import (
	"context"
	"encoding/json"
	"errors"
	"path"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// Folder has a folder for each organization.
const Folder = "stacks/"

// Folders returns the folders of the stacks of a project, or of an organization, sorted; an empty project or
// organization means all. Some may have been left by an interrupted removal.
func Folders(ctx context.Context, objects bucket.Objects, organization, project string) ([]string, error) {
	folders := []string{Folder}
	for _, part := range []string{organization, project, ""} {
		var err error
		if folders, err = bucket.Folders(ctx, objects, folders, part); err != nil {
			return nil, err
		}
	}
	return folders, nil
}

// TextOf returns the name of the stack of a folder as a text, whether or not a stack can have it.
func TextOf(folder string) string { return strings.Trim(strings.TrimPrefix(folder, Folder), "/") }

// NameOf returns the name of the stack of a folder, or why no stack can have it.
func NameOf(folder string) (deployments.StackName, error) {
	return deployments.ParseStackName(TextOf(folder), deployments.StackName{})
}

// Key returns the key of a stack's object, in the folder of the stack.
func Key(name deployments.StackName, segments ...string) string {
	return bucket.Key(append([]string{"stacks", name.Organization, name.Project, name.Stack}, segments...)...)
}

// UpdateKey returns the key of an update's object.
func UpdateKey(u deployments.UpdateName, segments ...string) string {
	return Key(u.StackName, append([]string{"updates", u.Version}, segments...)...)
}

// Context returns the context with which a stack's object is sealed: its key without the stack's name, which may
// change.
func Context(name deployments.StackName, key string) string { return key[len(Key(name, "")):] }

// Stack is a stack, whatever its name is by now.
type Stack struct {
	ID  string    // its identity
	Box *seal.Box // for its objects
}

// BlobKey returns the key of an object that all names of a stack share.
func (s Stack) BlobKey(segments ...string) string {
	return bucket.Key(append([]string{"blobs", s.ID}, segments...)...)
}

// Objects are the sealed objects of all stacks.
type Objects struct {
	Sealed *bucket.Sealed // of the bucket, and of the service as a whole
	// Of returns the stack with a name, which may be of some seconds ago; Now as its head says now. CodeNotFound when
	// there is none.
	Of, Now func(context.Context, deployments.StackName) (Stack, error)
	// ByID returns the stack of an identity.
	ByID func(id string) Stack
	// Last returns the stack that had a name when that was looked at last, however long ago; false if it never was.
	Last func(deployments.StackName) (Stack, bool)
}

// Put seals a value and writes it.
func (o *Objects) Put(ctx context.Context, name deployments.StackName, key string, plain []byte) error {
	s, err := o.Of(ctx, name)
	if err != nil {
		return err
	}
	_, err = o.Sealed.Objects.Put(ctx, key, s.Box.Seal(plain, Context(name, key)), bucket.Condition{})
	return bucket.Failed(err, "write "+key)
}

// PutJSON is Put of a value as JSON.
func (o *Objects) PutJSON(ctx context.Context, name deployments.StackName, key string, v any) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write %s: %w", key, err)
	}
	return o.Put(ctx, name, key, plain)
}

// PutIf is PutJSON under a condition; the error about one that does not hold wraps bucket.ErrChanged.
func (o *Objects) PutIf(ctx context.Context, name deployments.StackName, key string, v any, c bucket.Condition) error {
	s, err := o.Of(ctx, name)
	if err != nil {
		return err
	}
	return o.PutIn(ctx, s, name, key, v, c)
}

// PutIn is PutIf in a stack that is known.
func (o *Objects) PutIn(
	ctx context.Context, s Stack, name deployments.StackName, key string, v any, c bucket.Condition,
) error {
	plain, err := json.Marshal(v)
	if err != nil {
		return deployments.Errorf(deployments.CodeInternal, "write %s: %w", key, err)
	}
	_, err = o.Sealed.Objects.Put(ctx, key, s.Box.Seal(plain, Context(name, key)), c)
	if errors.Is(err, bucket.ErrChanged) {
		return err
	}
	return bucket.Failed(err, "write "+key)
}

// Get reads a sealed value, and returns the object's tag; bucket.ErrAbsent when there is none. What it decompresses
// takes memory before, as what it reads does.
func (o *Objects) Get(
	ctx context.Context, name deployments.StackName, key string,
) (plain []byte, tag string, err error) {
	s, err := o.Of(ctx, name)
	if err != nil {
		return nil, "", err
	}
	plain, tag, err = o.getIn(ctx, s, name, key)
	if deployments.CodeOf(err) != deployments.CodeFormat {
		return plain, tag, err
	}
	now, nowErr := o.Now(ctx, name) // another stack may have got the name
	if nowErr != nil || now.ID == s.ID {
		return nil, "", err
	}
	return o.getIn(ctx, now, name, key)
}

// getIn is Get in a stack that is known. Nobody has what was read any more when it is decompressed.
func (o *Objects) getIn(
	ctx context.Context, s Stack, name deployments.StackName, key string,
) (plain []byte, tag string, err error) {
	read, err := o.Sealed.Objects.Get(ctx, key)
	if err != nil {
		return nil, "", bucket.Failed(err, "read "+key)
	}
	tag = read.Tag
	plain, err = o.Sealed.OpenWithin(s.Box, read.Data, key, Context(name, key), roomIn(ctx))
	return plain, tag, err
}

// GetJSON is Get of a value that was written as JSON.
func (o *Objects) GetJSON(ctx context.Context, name deployments.StackName, key string, v any) (tag string, err error) {
	plain, tag, err := o.Get(ctx, name, key)
	if err != nil {
		return "", err
	}
	if err := json.Unmarshal(plain, v); err != nil {
		return "", bucket.Damaged(key, err)
	}
	return tag, nil
}

// roomIn returns what takes the memory of a value from the claim of a context. A call reads many small ones in turn.
func roomIn(ctx context.Context) func(size int64) error {
	return func(size int64) error {
		if size < mempool.Step {
			return nil
		}
		return mempool.Take(ctx, size)
	}
}

// PutBlob writes content of a stack that is known, sealed with the last part of its key as context.
func (o *Objects) PutBlob(ctx context.Context, s Stack, key string, data []byte) error {
	_, err := o.Sealed.Objects.Put(ctx, key, s.Box.Seal(data, "blob "+path.Base(key)), bucket.Condition{})
	return bucket.Failed(err, "write a blob of "+strconv.Itoa(len(data))+" bytes")
}

// GetBlob reads what PutBlob wrote; bucket.ErrAbsent when there is none.
func (o *Objects) GetBlob(ctx context.Context, s Stack, key string) ([]byte, error) {
	read, err := o.Sealed.Objects.Get(ctx, key)
	if err != nil {
		return nil, bucket.Failed(err, "read the blob "+path.Base(key))
	}
	return o.Sealed.Open(s.Box, read.Data, key, "blob "+path.Base(key))
}
