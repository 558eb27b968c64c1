// Package programs keeps what workers need to run programs: the bundles of their files, and the archives of plugins
// that workers have downloaded.
//
// The layout, under the bucket's prefix:
//
//	blobs/STACK-ID/files/MONTH/HASH                    project files and manifests of one stack
//	plugins/ORG/{archives/HASH/{index,N},downloads/HASH,versions/HASH}
//	                                                   plugins that its workers have downloaded
//
// Everything is sealed. All methods may be called concurrently, by any number of processes. Errors are
// *deployments.Error or end with the context.
package programs

import (
	"context"

	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Store is the typed store of bundles and plugins. See the package's description.
type Store struct {
	stacks  *stackobjects.Objects
	bundles recentBundles
	// checkUpload reports, as CodeQuota, that an organization may not upload so many bytes.
	checkUpload func(ctx context.Context, organization string, bytes int64) error
}

// New returns the store over the objects of stacks. CheckUpload reports, as CodeQuota, that an organization may not
// upload so many bytes. A process has one for a bucket, because it remembers bundles.
func New(
	stacks *stackobjects.Objects, checkUpload func(ctx context.Context, organization string, bytes int64) error,
) (*Store, error) {
	bundles, err := newRecentBundles(stacks.Sealed.Now)
	return &Store{stacks, bundles, checkUpload}, err
}
