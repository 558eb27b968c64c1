package statestore_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

var open, opened, put, get = storetest.Open, storetest.Opened, storetest.Put, storetest.Get

const ringObject = "keys/ring.json"

func up(n int) deployments.UpdateName {
	return deployments.UpdateName{StackName: dev, Version: fmt.Sprint(n)}
}

func TestEveryChangedByteOfAHeadOrACheckpointIsNoticed(t *testing.T) {
	objects := &bucket.Memory{}
	s := opened(t, objects, statestore.Options{})
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Import(t.Context(), statestore.Exchange{Stack: dev},
		deployment([]string{rootState, thingState}, nil)); err != nil {
		t.Fatal(err)
	}
	for key, read := range map[string]func(*statestore.Store) (any, error){
		"stacks/organization/web/dev/head.json": func(s *statestore.Store) (any,
			error) {
			return s.Head(t.Context(), dev)
		},
		"stacks/organization/web/dev/checkpoints/1.json.zst": func(s *statestore.Store) (any, error) {
			c, err := s.Checkpoint(t.Context(), dev, 1, deployments.SecretsProvider{})
			if err != nil {
				return nil, err
			}
			return c.States(), nil
		},
	} {
		good := get(t, objects, key)
		want, err := read(opened(t, objects, statestore.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		for i := range good {
			changed := bytes.Clone(good)
			changed[i] ^= 1
			put(t, objects, key, changed)
			got, err := read(opened(t, objects, statestore.Options{}))
			if err == nil && fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
				t.Errorf("byte %d of %s may be %q: %+v", i, key, changed[i], got)
			}
			if err != nil && deployments.CodeOf(err) != deployments.CodeFormat {
				t.Errorf("byte %d of %s: %v", i, key, err)
			}
		}
		put(t, objects, key, good)
	}
}

func TestTheHeadOfAnotherStackIsNoticed(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	prod := deployments.StackName{Organization: "organization", Project: "web", Stack: "prod"}
	if err := s.CreateStack(t.Context(), prod, nil); err != nil {
		t.Fatal(err)
	}
	put(t, objects, "stacks/organization/web/dev/head.json", get(t, objects, "stacks/organization/web/prod/head.json"))
	if _, err := s.Head(t.Context(), dev); deployments.CodeOf(err) != deployments.CodeFormat ||
		!strings.Contains(err.Error(), "key adopt") {
		t.Errorf("got %v", err)
	}
	if err := s.AdoptStack(t.Context(), dev); err != nil {
		t.Error(err)
	}
	if _, err := s.Head(t.Context(), dev); err != nil {
		t.Error(err)
	}
}

func TestABucketOfTheTimeBeforeItHadKeysIsAdoptedOnceAndOnRequest(t *testing.T) {
	objects := &bucket.Memory{}
	before := newStack(t, objects) // not checked: as an older deployctl
	if err := before.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: up(1)}); err != nil {
		t.Fatal(err)
	}
	const head = "stacks/organization/web/dev/head.json"
	old := withoutMAC(t, get(t, objects, head))
	put(t, objects, head, old)
	if _, err := open(t, objects, statestore.Options{}); deployments.CodeOf(err) != deployments.CodeInvalid ||
		!strings.Contains(err.Error(), "deployctl key adopt") {
		t.Errorf("taken over in silence: %v", err)
	}
	if _, err := open(t, objects, statestore.Options{Adopt: true, Master: bytes.Repeat([]byte{9},
		32)}); deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Errorf("adopted with another key: %v", err)
	}
	s := opened(t, objects, statestore.Options{Adopt: true})
	if _, err := s.Updates.Info(t.Context(), up(1)); err != nil {
		t.Error(err)
	}
	if _, err := opened(t, objects, statestore.Options{}).Head(t.Context(), dev); err != nil {
		t.Error(err)
	}
	put(t, objects, head, old)
	if _, err := opened(t, objects, statestore.Options{Adopt: true}).Head(t.Context(),
		dev); deployments.CodeOf(err) != deployments.CodeFormat {
		t.Errorf("a head without MAC is taken later, too: %v", err)
	}
}

func withoutMAC(t *testing.T, head []byte) []byte {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(head, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "mac")
	data, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
