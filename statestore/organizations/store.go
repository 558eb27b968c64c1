// Package organizations keeps what operators say of organizations: which have workers of their own, their quotas with
// what is used of them, and, for all organizations, the mode of the service.
//
// The layout, under the bucket's prefix:
//
//	organizations/ORG                   the organization has its own workers; has a MAC
//	quotas/ORG/{limits,places,minutes}  what the organization may use, what is about to be made or to run within that,
//	                                    and how long workers hosted its updates by day
//	service/mode                        maintenance or read-only mode, until when
//
// Everything is sealed but what has a MAC. All methods may be called concurrently, by any number of processes. Errors
// are *deployments.Error or end with the context.
package organizations

import (
	"context"
	"path"
	"slices"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Store is the typed store of organizations. See the package's description.
type Store struct {
	sealed *bucket.Sealed
	of     Stacks
	mode   lastMode
	quotas *lru.Cache[string, *lastQuota] // by organization
}

// Stacks tells what the store of stacks knows.
type Stacks struct {
	// Head returns what the head of a stack says; CodeNotFound when there is no such stack.
	Head func(context.Context, deployments.StackName) (Stack, error)
	// Identity returns the identity of the store.
	Identity func() string
}

// Stack is what counts of a stack.
type Stack struct {
	Resources int
	// Update is the version of the update that has the stack; empty when none has.
	Update string
	// Next is the next version of the stack.
	Next int
}

// New returns the store over a bucket. A process has one for a bucket, because it remembers quotas and the mode.
func New(sealed *bucket.Sealed, of Stacks) (*Store, error) {
	quotas, err := lru.New[string, *lastQuota](quotasKept)
	if err != nil {
		return nil, err
	}
	return &Store{sealed: sealed, of: of, quotas: quotas}, nil
}

// List returns the names of the organizations that have stacks, or had some whose removal was interrupted.
func (s *Store) List(ctx context.Context) (names []string, err error) {
	folders, err := bucket.Folders(ctx, s.sealed.Objects, []string{stackobjects.Folder}, "")
	for _, folder := range folders {
		name := path.Base(folder)
		if deployments.ValidateName("organization", name) == nil {
			names = append(names, name)
		}
	}
	return names, err
}

// StackNames returns the names of the stacks of a project or an organization, sorted; an empty one means all. Some may
// have been left by an interrupted removal.
func (s *Store) StackNames(ctx context.Context, organization, project string) ([]deployments.StackName, error) {
	folders, err := stackobjects.Folders(ctx, s.sealed.Objects, organization, project)
	if err != nil {
		return nil, err
	}
	var names []deployments.StackName
	for _, folder := range folders {
		name, err := stackobjects.NameOf(folder)
		if err == nil { // else no stack can have this name
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b deployments.StackName) int { return strings.Compare(a.String(), b.String()) })
	return names, nil
}
