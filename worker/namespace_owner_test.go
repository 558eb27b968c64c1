package worker

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// keys are those of all objects.
func (s *objectServer) keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

func TestAStoreOfAnotherNamespaceIsRejectedAndNotWritten(t *testing.T) {
	master := slices.Repeat([]byte{0}, 32)
	// earlier sets up the store of a time before there were identities, with a stack.
	earlier := func(t *testing.T, c Config, stack string) {
		c.S3.Prefix = strings.TrimSuffix(c.S3.Prefix, "/") + "/"
		objects, err := bucket.OpenS3(t.Context(), c.S3)
		must(t, err)
		store, err := statestore.New(objects, statestore.Options{Master: master})
		must(t, err)
		must(t, store.CreateStack(t.Context(), deployments.StackName{Organization: "o", Project: "p", Stack: stack},
			nil))
		keeper, err := seal.NewMasterKeeper(master)
		must(t, err)
		_, err = OpenStore(t.Context(), Config{S3: c.S3, Keepers: []seal.Keeper{keeper}, Adopt: true, Patience: ample})
		must(t, err)
	}
	for _, c := range []struct {
		name   string
		setUp  bool                             // it is a serve
		begun  []string                         // workflows of the namespace
		queue  string                           // of those
		own    bool                             // earlier ones are of this store
		before func(t *testing.T, stray Config) // what was done with the prefix
		says   []string                         // why it does not start; nil: it does
	}{
		{name: "a worker in an empty part of the bucket, the namespace is as empty",
			says: []string{"prefix stray/ is empty", "deployctl serve", "s3.prefix"}},
		{name: "a worker in an empty part of the bucket", begun: []string{"update/o/p/s/8"}, queue: "deployctl-store-1",
			says: []string{"prefix stray/ is empty"}},
		{name: "a serve in an empty part of the bucket, the namespace is as empty", setUp: true},
		{name: "a serve in an empty part of the bucket", setUp: true, begun: []string{"update/o/p/s/8"},
			queue: "deployctl-store-1",
			says: []string{"namespace ours has workflows of another store", "bucket b at http://", "prefix stray/",
				"update/o/p/s/8", "temporal.namespace"}},
		{name: "a serve in an empty part of the bucket, whose namespace is of a store without identity", setUp: true,
			begun: []string{"stack/o/p/s"}, queue: "deployctl",
			says: []string{"another store", "stack/o/p/s"}},
		{name: "a worker in another store", begun: []string{"update/o/p/s/8"}, queue: "deployctl-store-1/o",
			says:   []string{"another store"},
			before: func(t *testing.T, stray Config) { _, err := OpenStore(t.Context(), stray); must(t, err) }},
		{name: "a worker in its own store, beside workflows that were begun on a queue of nobody",
			begun: []string{"update/o/p/s/8"}, queue: "evil",
			before: func(t *testing.T, stray Config) { _, err := OpenStore(t.Context(), stray); must(t, err) }},
		{name: "a worker in its own store, beside as many workflows of another as are looked at",
			begun: []string{"update/o/p/s/8"}, queue: "deployctl-store-1", own: true,
			before: func(t *testing.T, stray Config) { _, err := OpenStore(t.Context(), stray); must(t, err) }},
		{name: "a worker in another store without identity", begun: []string{"update/o/p/s/8"}, queue: "deployctl",
			says:   []string{"another store"},
			before: func(t *testing.T, stray Config) { earlier(t, stray, "other") }},
		{name: "a worker in a store without identity", begun: []string{"update/o/p/gone/8", "stack/o/p/s"},
			queue:  "deployctl",
			before: func(t *testing.T, stray Config) { earlier(t, stray, "s") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster := &whole{version: "1.30.0", attributes: keywords(deployments.SearchAttributes...),
				updates: c.begun, queue: c.queue, own: c.own}
			objects := &objectServer{objects: map[string][]byte{}}
			patience := ample
			if slices.Contains(c.says, "prefix stray/ is empty") {
				patience = time.Second // it waits for a serve that sets the store up
			}
			config := Temporal{Address: cluster.serve(t), Namespace: "ours"}.config(objects.serve(t), patience)
			config.S3.Prefix = "stray/"
			if c.before != nil {
				c.before(t, config)
			}
			config.SetUp = c.setUp
			for _, look := range []bool{true, false} {
				before := objects.keys()
				config.ReadOnly = look
				connection, found := Examine(t.Context(), config)
				if connection != nil {
					connection.Close()
				}
				if (connection != nil) != (c.says == nil) {
					t.Errorf("it starts: %t; %v", connection != nil, Fatal(found))
				}
				for _, says := range c.says {
					if !strings.Contains(fmt.Sprint(Fatal(found)), says) {
						t.Errorf("%v does not say %q", Fatal(found), says)
					}
				}
				if after := objects.keys(); (look || c.says != nil) && !slices.Equal(before, after) {
					t.Errorf("look %t: there were %q and are %q", look, before, after)
				}
			}
		})
	}
}

func TestStoresInOneNamespaceHaveNoTaskQueueInCommon(t *testing.T) {
	objects := &objectServer{objects: map[string][]byte{}}
	config := Temporal{}.config(objects.serve(t), ample)
	queues := map[string]bool{}
	for _, prefix := range []string{"one/", "two/"} {
		config.S3.Prefix = prefix
		store, err := OpenStore(t.Context(), config)
		must(t, err)
		again, err := OpenStore(t.Context(), config)
		must(t, err)
		if store.Keys.Identity() == "" || store.Keys.Identity() != again.Keys.Identity() {
			t.Errorf("opened twice it is %q and %q", store.Keys.Identity(), again.Keys.Identity())
		}
		_, err = store.Keys.Rotate(t.Context())
		must(t, err)
		own := store.Organizations.OrganizationTaskQueue("acme")
		for _, queue := range []string{store.Organizations.SharedTaskQueue(), own,
			deployments.ScheduledTaskQueue(store.Organizations.SharedTaskQueue()), deployments.ScheduledTaskQueue(own)} {
			if queues[queue] {
				t.Errorf("%s is the queue of two", queue)
			}
			queues[queue] = true
		}
	}
	if len(queues) != 8 {
		t.Errorf("the queues are %v", queues)
	}
}
