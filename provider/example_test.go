package provider_test

import (
	"context"
	"fmt"
	"maps"

	"github.com/deployctl/deployctl/provider"
)

// zone is a service whose records have tags.
type zone map[string]map[string]string

func (z zone) tags(_ context.Context, record string) (map[string]string, error) {
	return maps.Clone(z[record]), nil
}

func (z zone) setTags(_ context.Context, record string, tags map[string]string) error {
	z[record] = tags
	return nil
}

// syncTags is what a Reconcile does about the tags of a record that exists.
func syncTags(ctx context.Context, api zone, name string, want map[string]string) error {
	tags := provider.Aspect[map[string]string]{
		Name: "tags of records", Want: want,
		Observe: func(ctx context.Context) (map[string]string, error) { return api.tags(ctx, name) },
		Set:     func(ctx context.Context, _ map[string]string) error { return api.setTags(ctx, name, want) },
	}
	return tags.Sync(ctx)
}

func ExampleAspect() {
	api := zone{"www": {"team": "web"}}
	err := syncTags(context.Background(), api, "www", map[string]string{"team": "shop"})
	fmt.Println(api["www"]["team"], err)
	// Output: shop <nil>
}
