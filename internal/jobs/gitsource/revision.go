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

// revision fetches what the order calls a commit: one by all its digits, or the first of them, a tag, or a branch. A
// commit goes before a tag or a branch that somebody has given the name of its digits. The server is asked for that
// alone, except for a commit that it does not give by itself or of which only the first digits are known: then for all
// branches and tags.
func (f *fetcher) revision(ctx context.Context, options []client.Option) (*git.Repository, plumbing.Hash, error) {
	digits := strings.ToLower(f.order.Commit)
	if plumbing.IsHash(digits) {
		repository, err := f.only(ctx, options, digits, "refs/heads/deployed")
		if err == nil {
			return repository, plumbing.NewHash(digits), nil
		}
	}
	if len(digits) >= leastDigits && isHex(digits) {
		repository, hash, err := f.begunWith(ctx, options, digits)
		if err != nil || !hash.IsZero() {
			return repository, hash, err
		}
	}
	for _, kind := range []string{"refs/tags/", "refs/heads/"} {
		repository, hash, err := f.named(ctx, options, plumbing.ReferenceName(kind+f.order.Commit))
		if !absentRef(err) {
			return repository, hash, err
		}
	}
	return nil, plumbing.ZeroHash, f.noRevision()
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

// begunWith fetches all branches and tags, and returns the commit whose digits begin with these; the zero hash when
// there is none. It is an error that there is more than one.
func (f *fetcher) begunWith(
	ctx context.Context, options []client.Option, digits string,
) (*git.Repository, plumbing.Hash, error) {
	if err := os.RemoveAll(f.order.Dir); err != nil { // of an attempt before
		return nil, plumbing.ZeroHash, err
	}
	repository, err := git.PlainCloneContext(ctx, f.order.Dir, &git.CloneOptions{URL: f.url.String(),
		ClientOptions: options, Tags: git.AllTags, NoCheckout: true, Progress: f.said})
	if errors.Is(err, transport.ErrEmptyRemoteRepository) {
		return nil, plumbing.ZeroHash, nil
	}
	if err != nil {
		return nil, plumbing.ZeroHash, err
	}
	whole, err := hex.DecodeString(digits[:len(digits)&^1])
	known, ok := repository.Storer.(interface {
		HashesWithPrefix(prefix []byte) ([]plumbing.Hash, error)
	})
	if err != nil || !ok {
		return nil, plumbing.ZeroHash, err
	}
	candidates, err := known.HashesWithPrefix(whole)
	if err != nil {
		return nil, plumbing.ZeroHash, err
	}
	found := map[plumbing.Hash]bool{}
	for _, hash := range candidates {
		if _, err := repository.CommitObject(hash); err == nil && strings.HasPrefix(hash.String(), digits) {
			found[hash] = true
		}
	}
	if len(found) > 1 {
		return nil, plumbing.ZeroHash, deployments.Errorf(deployments.CodeInvalid, "%d commits of the repository %s begin "+
			"with %q: give more of its digits", len(found), outbound.Shown(f.url), f.order.Commit)
	}
	for hash := range found {
		return repository, hash, nil
	}
	return repository, plumbing.ZeroHash, nil
}

// noRevision returns the error about what is neither a commit, nor a tag or a branch.
func (f *fetcher) noRevision() error {
	return deployments.Errorf(deployments.CodeInvalid, "the repository %s has no commit %q on its branches and tags, and "+
		"no tag or branch of this name: give a tag, a branch, or a commit by its 40 digits or the first of them",
		outbound.Shown(f.url), f.order.Commit)
}
