package programs

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/deployctl/deployctl/deployments"
)

const (
	// bundleKnownFor is how long it is believed that a bundle is complete, which nothing changes before its month ends.
	bundleKnownFor = 10 * time.Minute
	// maxBundles limits the bundles of which something is remembered, and maxKeptFiles the files of a manifest that is.
	maxBundles, maxKeptFiles = 512, 2000
)

// recentBundles are bundles that were just found complete, by the keys of their manifests, which name the month: a
// client asks whether its files are there right before it stores the manifest, and most updates have the program of the
// last one. Nothing removes a bundle of this month, and a manifest is named by its content. It is safe for concurrent
// use.
type recentBundles struct {
	known *lru.Cache[string, recentBundle]
	now   func() time.Time
}

type recentBundle struct {
	at       time.Time
	manifest *deployments.Manifest // nil: it was not read
}

func newRecentBundles(now func() time.Time) (recentBundles, error) {
	known, err := lru.New[string, recentBundle](maxBundles)
	return recentBundles{known, now}, err
}

func (b recentBundles) get(key string) (recentBundle, bool) {
	found, ok := b.known.Get(key)
	age := b.now().Sub(found.at)
	return found, ok && age >= 0 && age <= bundleKnownFor
}

// complete reports whether a bundle was just found complete.
func (b recentBundles) complete(key string) bool {
	_, ok := b.get(key)
	return ok
}

// note notes that a bundle is complete.
func (b recentBundles) note(key string) {
	found, _ := b.get(key)
	b.known.Add(key, recentBundle{b.now(), found.manifest})
}

// keep notes that a bundle is complete, and what its manifest is, which nobody may change.
func (b recentBundles) keep(key string, m deployments.Manifest) {
	found := recentBundle{at: b.now()}
	if len(m.Files) <= maxKeptFiles {
		found.manifest = &m
	}
	b.known.Add(key, found)
}

// manifest returns the manifest of a bundle that was just read.
func (b recentBundles) manifest(key string) (deployments.Manifest, bool) {
	found, ok := b.get(key)
	if !ok || found.manifest == nil {
		return deployments.Manifest{}, false
	}
	return *found.manifest, true
}
