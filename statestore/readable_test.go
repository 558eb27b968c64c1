package statestore_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// removed returns a bucket that has had the stacks dev, three times, and prod, once.
func removed(t *testing.T, objects bucket.Objects) *statestore.Store {
	t.Helper()
	s := opened(t, objects, statestore.Options{})
	for _, name := range []deployments.StackName{dev, dev, dev, other} {
		if err := s.CreateStack(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Import(t.Context(), statestore.Exchange{Stack: name}, deployment([]string{}, nil)); err != nil {
			t.Fatal(err)
		}
		if err := s.RemoveStack(t.Context(), name, true); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// other is another stack than dev.
var other = deployments.StackName{Organization: dev.Organization, Project: dev.Project, Stack: "other"}

func removedObject(name deployments.StackName) string {
	return "removed/" + name.Organization + "/" + name.Project + "/" + name.Stack + ".json"
}

func TestWhatRemainsOfAStackIsBelievedOnlyIfTheServiceWroteIt(t *testing.T) {
	for name, forge := range map[string]func(right, foreign []byte) []byte{
		"an earlier version":      func(right, _ []byte) []byte { return bytes.Replace(right, []byte("4"), []byte("1"), 1) },
		"no MAC":                  func([]byte, []byte) []byte { return []byte(`{"next":1}`) },
		"that of another name":    func(_, foreign []byte) []byte { return foreign },
		"nothing":                 func([]byte, []byte) []byte { return nil },
		"a frame that is a bomb":  func([]byte, []byte) []byte { return []byte{0x28, 0xb5, 0x2f, 0xfd, 0xff} },
		"a version that is large": func([]byte, []byte) []byte { return []byte(`{"next":2147483647,"mac":""}`) },
	} {
		t.Run(name, func(t *testing.T) {
			objects := &bucket.Memory{}
			s := removed(t, objects)
			right := get(t, objects, removedObject(dev))
			if !strings.Contains(string(right), `"next":4`) {
				t.Fatalf("what remains is %s", right)
			}
			put(t, objects, removedObject(dev), forge(bytes.Clone(right), get(t, objects, removedObject(other))))
			if err := s.CreateStack(t.Context(), dev, nil); deployments.CodeOf(err) != deployments.CodeFormat ||
				!strings.Contains(err.Error(), removedObject(dev)) {
				t.Errorf("a stack of the name is created: %v", err)
			}
			put(t, objects, removedObject(dev), right)
			if err := s.CreateStack(t.Context(), dev, nil); err != nil {
				t.Fatal(err)
			}
			if h, err := s.Head(t.Context(), dev); err != nil || h.Next != 4 {
				t.Errorf("the head is %+v, %v", h, err)
			}
		})
	}
}

func TestWhatRemainsWhereNoStackWasIsNotBelieved(t *testing.T) {
	objects := &bucket.Memory{}
	s := opened(t, objects, statestore.Options{})
	put(t, objects, removedObject(dev), []byte(`{"next":9}`))
	if err := s.CreateStack(t.Context(), dev, nil); deployments.CodeOf(err) != deployments.CodeFormat {
		t.Errorf("a stack of the name is created: %v", err)
	}
}

func TestAnOrganizationHasWorkersOfItsOwnOnlyIfTheServiceSaysSo(t *testing.T) {
	objects := &bucket.Memory{}
	s := opened(t, objects, statestore.Options{})
	if err := s.Organizations.Dedicate(t.Context(), "globex"); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"nothing": nil, "no MAC": []byte(`{"since":"2026-01-02T03:04:05Z"}`),
		"that of another organization": get(t, objects, "organizations/globex"),
	} {
		put(t, objects, "organizations/acme", content)
		if queue, err := s.Organizations.TaskQueue(t.Context(), "acme"); deployments.CodeOf(err) != deployments.CodeFormat {
			t.Errorf("%s: the queue is %q, %v", name, queue, err)
		}
		list, err := s.Organizations.ListDedicated(t.Context())
		if err != nil || len(list) != 1 || list[0].Organization != "globex" {
			t.Errorf("%s: the list is %v, %v", name, list, err)
		}
	}
}
