package gitsource

import (
	"context"
	"encoding/hex"
	"errors"
	"os"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/outbound"
	"github.com/go-git/go-git/v6"
	"github.com/go-git/go-git/v6/config"
	"github.com/go-git/go-git/v6/plumbing"
	"github.com/go-git/go-git/v6/plumbing/client"
	"github.com/go-git/go-git/v6/plumbing/transport"
)

// leastDigits is how many digits a commit is abbreviated to at least, as for git.
const leastDigits = 4

// revision fetches what the order calls a commit: one by all its digits, a tag, a branch, or one by its first digits.
// The server is asked for that alone, except for a commit that it does not give by itself or of which only the first
// digits are known: then for all branches and tags.
func (f *fetcher) revision(ctx context.Context, options []client.Option) (*git.Repository, plumbing.Hash, error) {
	digits := strings.ToLower(f.order.Commit)
	if plumbing.IsHash(digits) {
		repository, err := f.only(ctx, options, digits, "refs/heads/deployed")
		if err == nil {
			return repository, plumbing.NewHash(digits), nil
		}
	} else {
		for _, kind := range []string{"refs/tags/", "refs/heads/"} {
			repository, hash, err := f.named(ctx, options, plumbing.ReferenceName(kind+f.order.Commit))
			if !absentRef(err) {
				return repository, hash, err
			}
		}
		if len(digits) < leastDigits || !isHex(digits) {
			return nil, plumbing.ZeroHash, f.noRevision()
		}
	}
	if err := os.RemoveAll(f.order.Dir); err != nil {
		return nil, plumbing.ZeroHash, err
	}
	repository, err := git.PlainCloneContext(ctx, f.order.Dir, &git.CloneOptions{URL: f.url.String(),
		ClientOptions: options, Tags: git.AllTags, NoCheckout: true, Progress: f.said})
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		err = f.noRevision()
	}
	if err != nil {
		return nil, plumbing.ZeroHash, err
	}
	hash, err := f.begunWith(repository, digits)
	return repository, hash, err
}

func isHex(digits string) bool { return strings.Trim(digits, "0123456789abcdef") == "" }

// named fetches nothing but a tag or a branch. An absentRef says that there is none.
func (f *fetcher) named(
	ctx context.Context, options []client.Option, name plumbing.ReferenceName,
) (*git.Repository, plumbing.Hash, error) {
	if name.Validate() != nil {
		return nil, plumbing.ZeroHash, git.ErrRemoteRefNotFound
	}
	const fetched = "refs/tags/deployed" // which may be a tag object
	repository, err := f.only(ctx, options, name.String(), fetched)
	if err != nil {
		return nil, plumbing.ZeroHash, err
	}
	hash, err := repository.ResolveRevision(fetched)
	if err != nil {
		return nil, plumbing.ZeroHash, deployments.Errorf(deployments.CodeInvalid, "%q is no commit of the repository %s",
			f.order.Commit, outbound.Shown(f.url))
	}
	return repository, *hash, nil
}

// absentRef reports whether an error says that the server has no such tag or branch.
func absentRef(err error) bool {
	return errors.Is(err, git.ErrRemoteRefNotFound) || errors.Is(err, transport.ErrEmptyRemoteRepository)
}

// only fetches nothing but what the server has under a name, or a commit, to a name in a new repository.
func (f *fetcher) only(ctx context.Context, options []client.Option, what, to string) (*git.Repository, error) {
	if err := os.RemoveAll(f.order.Dir); err != nil { // of an attempt before
		return nil, err
	}
	repository, err := git.PlainInit(f.order.Dir, false)
	if err != nil {
		return nil, err
	}
	remote, err := repository.CreateRemote(&config.RemoteConfig{Name: git.DefaultRemoteName,
		URLs: []string{f.url.String()}})
	if err != nil {
		return nil, err
	}
	return repository, remote.FetchContext(ctx, &git.FetchOptions{ClientOptions: options, Depth: 1, Tags: git.NoTags,
		Progress: f.said, RefSpecs: []config.RefSpec{config.RefSpec(what + ":" + to)}})
}

// begunWith returns the commit of a repository whose digits begin with these. It is an error that there is none, or
// more than one.
func (f *fetcher) begunWith(repository *git.Repository, digits string) (plumbing.Hash, error) {
	if plumbing.IsHash(digits) {
		hash := plumbing.NewHash(digits)
		if _, err := repository.CommitObject(hash); err != nil {
			return hash, f.noRevision()
		}
		return hash, nil
	}
	known, ok := repository.Storer.(interface {
		HashesWithPrefix(prefix []byte) ([]plumbing.Hash, error)
	})
	if !ok {
		return plumbing.ZeroHash, f.noRevision()
	}
	whole, err := hex.DecodeString(digits[:len(digits)&^1])
	if err != nil {
		return plumbing.ZeroHash, f.noRevision()
	}
	candidates, err := known.HashesWithPrefix(whole)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	found := map[plumbing.Hash]bool{}
	for _, hash := range candidates {
		if _, err := repository.CommitObject(hash); err == nil && strings.HasPrefix(hash.String(), digits) {
			found[hash] = true
		}
	}
	switch len(found) {
	case 0:
		return plumbing.ZeroHash, f.noRevision()
	case 1:
		for hash := range found {
			return hash, nil
		}
	}
	return plumbing.ZeroHash, deployments.Errorf(deployments.CodeInvalid, "%d commits of the repository %s begin with "+
		"%q: give more of its digits", len(found), outbound.Shown(f.url), f.order.Commit)
}

// noRevision returns the error about what is neither a commit, nor a tag or a branch.
func (f *fetcher) noRevision() error {
	return deployments.Errorf(deployments.CodeInvalid, "the repository %s has no commit %q on its branches and tags, and "+
		"no tag or branch of this name: give a tag, a branch, or a commit by its 40 digits or the first of them",
		outbound.Shown(f.url), f.order.Commit)
}
