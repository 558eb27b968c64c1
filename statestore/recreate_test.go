package statestore

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

func named(t *testing.T, text string) deployments.StackName {
	t.Helper()
	name, err := deployments.ParseStackName(text, deployments.StackName{})
	if err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAStackIsMadeAgainWithTheIdentityOfOneThatIsGone(t *testing.T) {
	const old = "o/p/old"
	made := func(s *Store, name string) {
		t.Helper()
		identity(t, s, named(t, name))
	}
	renamed := func(s *Store, from, to string) {
		t.Helper()
		if err := s.RenameStack(t.Context(), named(t, from), named(t, to)); err != nil {
			t.Fatal(err)
		}
	}
	removed := func(s *Store, name string) {
		t.Helper()
		if err := s.RemoveStack(t.Context(), named(t, name), true); err != nil {
			t.Fatal(err)
		}
	}
	recreated := func(s *Store, name string) {
		t.Helper()
		if err := s.RecreateStack(t.Context(), named(t, name), old, false); err != nil {
			t.Fatal(err)
		}
	}
	left := func(s *Store) { made(s, old); renamed(s, old, "q/p/x"); removed(s, "q/p/x") }
	for what, c := range map[string]struct {
		before   func(*Store)
		anywhere bool
		code     deployments.Code
		next     string // the identity of the next stack of the old name; "": there is one
	}{
		"of which nothing is known":  {before: func(*Store) {}, next: "o/p/old#2"},
		"that was removed":           {before: func(s *Store) { made(s, old); removed(s, old) }, next: "o/p/old#2"},
		"that is there":              {before: func(s *Store) { made(s, old) }, code: deployments.CodeConflict},
		"that is there, for anybody": {func(s *Store) { made(s, old) }, true, deployments.CodeConflict, ""},
		"that has another name": {before: func(s *Store) { made(s, old); renamed(s, old, "o/p/x") },
			code: deployments.CodeConflict},
		"that is in another place": {before: func(s *Store) { made(s, old); renamed(s, old, "q/p/x") },
			code: deployments.CodeConflict},
		"that was renamed, and is gone": {before: func(s *Store) {
			made(s, old)
			renamed(s, old, "o/p/x")
			removed(s, "o/p/x")
		}, next: "o/p/old#2"},
		"that had left":                  {before: left, code: deployments.CodeForbidden},
		"that had left, for an operator": {before: left, anywhere: true, next: "o/p/old#2"},
		"that had left later": {before: func(s *Store) {
			made(s, old)
			renamed(s, old, "o/p/x")
			renamed(s, "o/p/x", "o/p/y")
			renamed(s, "o/p/y", "q/p/x")
			removed(s, "q/p/x")
		}, code: deployments.CodeForbidden},
		"that had gone to and fro": {before: func(s *Store) {
			made(s, old)
			renamed(s, old, "o/p/x")
			renamed(s, "o/p/x", old)
			renamed(s, old, "o/p/x")
			removed(s, "o/p/x")
		}, next: "o/p/old#2"},
		"that was given away, and is gone again": {before: func(s *Store) { recreated(s, "o/p/z"); removed(s, "o/p/z") },
			next: "o/p/old#2"},
		"that was given away, and left then": {before: func(s *Store) {
			recreated(s, "o/p/z")
			renamed(s, "o/p/z", "q/p/z")
			removed(s, "q/p/z")
		}, code: deployments.CodeForbidden},
		"that was given away": {before: func(s *Store) { recreated(s, "o/p/z") }, code: deployments.CodeConflict},
		"whose way nobody knows": {before: func(s *Store) {
			if err := s.sealed.PutReadable(t.Context(), removedKey(named(t, old)), tombstone{Next: 1, Moved: []string{old}},
				bucket.Condition{Absent: true}); err != nil {
				t.Fatal(err)
			}
		}, code: deployments.CodeForbidden},
	} {
		t.Run(what, func(t *testing.T) {
			s := service(t, 1)
			want := identity(t, service(t, 1), named(t, old))
			c.before(s)
			name := named(t, "o/p/new")
			err := s.RecreateStack(t.Context(), name, old, c.anywhere)
			if deployments.CodeOf(err) != c.code && (err != nil || c.code != "") {
				t.Fatalf("it ends with %v", err)
			}
			if c.code != "" {
				if _, err := s.Head(t.Context(), name); deployments.CodeOf(err) != deployments.CodeNotFound {
					t.Errorf("it is there all the same: %v", err)
				}
				return
			}
			if got := identity(t, s, name); got.Text != old || got.Owner != want.Owner {
				t.Errorf("it has %+v", got)
			}
			if next := identity(t, s, named(t, old)); next.Text != c.next {
				t.Errorf("the next stack of the name has %q", next.Text)
			}
			if err := s.RecreateStack(t.Context(), name, old, c.anywhere); deployments.CodeOf(err) != deployments.CodeExists {
				t.Errorf("once more: %v", err)
			}
		})
	}
}

func TestTheFirstNameGetsItsOwnIdentityAsAnyNewStackDoes(t *testing.T) {
	s, name := service(t, 1), named(t, "o/p/old")
	if err := s.RecreateStack(t.Context(), name, "o/p/old", false); err != nil {
		t.Fatal(err)
	}
	if err := s.RemoveStack(t.Context(), name, true); err != nil {
		t.Fatal(err)
	}
	if again := identity(t, s, name); again.Text != "o/p/old" {
		t.Errorf("the next has %q", again.Text)
	}
}

// A stack that cannot be read may have the identity. It is not named: it may be another organization's.
func TestNoIdentityIsGivenAwayWhileAStackCannotBeRead(t *testing.T) {
	s := service(t, 1)
	identity(t, s, named(t, "secretive/p/dev"))
	if _, err := s.objects.Put(t.Context(), stackobjects.Key(named(t, "secretive/p/dev"), "head.json"), []byte("{"),
		bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	err := s.RecreateStack(t.Context(), named(t, "o/p/new"), "o/p/old", true)
	if deployments.CodeOf(err) != deployments.CodeFormat || strings.Contains(err.Error(), "secretive") {
		t.Errorf("it ends with %v", err)
	}
}

// interposed plays something once, before a certain write.
type interposed struct {
	bucket.Objects
	before string // the end of the key
	once   sync.Once
	play   func()
}

func (o *interposed) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	if o.play != nil && strings.HasSuffix(key, o.before) {
		o.once.Do(o.play)
	}
	return o.Objects.Put(ctx, key, data, c)
}

// TestTwoStacksNeverGetOneIdentity plays another call at the worst moment of one.
func TestTwoStacksNeverGetOneIdentity(t *testing.T) {
	const old = "o/p/old"
	create := func(s *Store) error { return s.CreateStack(t.Context(), named(t, old), nil) }
	recreate := func(as string) func(*Store) error {
		return func(s *Store) error { return s.RecreateStack(t.Context(), named(t, as), old, true) }
	}
	for what, c := range map[string]struct {
		one, other func(*Store) error
		before     string
	}{
		"a create, whose head comes after the other has looked": {create, recreate("o/p/new"), "old/head.json"},
		"a create in the middle of the other":                   {recreate("o/p/new"), create, "new/head.json"},
		"a create before the other's note":                      {recreate("o/p/new"), create, "old.json"},
		"two that give it away":                                 {recreate("o/p/new"), recreate("o/p/more"), "new/head.json"},
	} {
		t.Run(what, func(t *testing.T) {
			objects := &interposed{Objects: &bucket.Memory{}, before: c.before}
			opened := func() *Store {
				s, err := New(objects, Options{Master: make([]byte, 32)})
				if err == nil {
					err = s.Check(t.Context())
				}
				if err == nil {
					err = s.Keys.SetUp(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			s := opened()
			played, another := false, opened() // another process
			objects.play = func() { played = true; _ = c.other(another) }
			_ = c.one(s)
			if !played {
				t.Fatal("the other was not played")
			}
			holders := 0
			for _, name := range []string{old, "o/p/new", "o/p/more"} {
				if h, err := s.Head(t.Context(), named(t, name)); err == nil && h.Identity == old {
					holders++
				}
			}
			if holders > 1 {
				t.Errorf("%d stacks have it", holders)
			}
		})
	}
}

// noting tells of each write that was made.
type noting struct {
	bucket.Objects
	put func(key string)
}

func (o *noting) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	tag, err := o.Objects.Put(ctx, key, data, c)
	if err == nil {
		o.put(key)
	}
	return tag, err
}

func TestNothingIsMadeWithAnIdentityBeforeItIsKnownThatNoOtherStackHasIt(t *testing.T) {
	name := named(t, "o/p/new")
	claim := Claimant{Update: deployments.UpdateName{StackName: name, Version: "1"}, Writer: "w"}
	var s *Store
	var early []error
	objects := &noting{Objects: &bucket.Memory{}, put: func(key string) {
		if len(early) == 0 && strings.HasSuffix(key, "new/head.json") {
			_, err := s.Claim(t.Context(), claim)
			early = append(early, err)
		}
	}}
	s, err := New(objects, Options{Master: make([]byte, 32)})
	if err == nil {
		err = s.Check(t.Context())
	}
	if err == nil {
		err = s.Keys.SetUp(t.Context())
	}
	if err == nil {
		err = s.RecreateStack(t.Context(), name, "o/p/old", true)
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(early) != 1 || deployments.CodeOf(early[0]) != deployments.CodeConflict {
		t.Errorf("an update meanwhile comes to %v", early)
	}
	if _, err := s.Claim(t.Context(), claim); err != nil {
		t.Errorf("the first update comes to %v", err)
	}
}
