package fakecloud

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// refusal is why the cloud did not do what it was asked; it is also the body of an error reply.
type refusal struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (r *refusal) Error() string { return r.Message }

// store holds the objects and the log. All of it is guarded by mu; an effect is in the journal before it is in memory
// and in memory before anyone is told.
type store struct {
	mu         sync.Mutex
	objects    map[key]Object
	names      map[key]string // kind and name → id
	effects    []Effect
	operations map[string]bool
	requests   []Request
	journal    *journal // nil: memory only
}

func newStore(j *journal) *store {
	return &store{objects: map[key]Object{}, names: map[key]string{}, operations: map[string]bool{}, journal: j}
}

// create makes an object, or replaces one that stands under the same id when it is the outside that asks.
func (s *store) create(o Object, by caller, outside bool) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.ID == "" {
		o.ID = o.Kind + "-" + strings.ToLower(rand.Text()[:12])
	}
	if _, taken := s.objects[o.key()]; taken && !outside {
		return Object{}, &refusal{http.StatusConflict, "AlreadyExists",
			fmt.Sprintf("a %s with the id %q already exists", o.Kind, o.ID)}
	}
	if holder, taken := s.names[key{o.Kind, o.Name}]; o.Name != "" && taken && holder != o.ID {
		return Object{}, &refusal{http.StatusConflict, "AlreadyExists",
			fmt.Sprintf("a %s named %q already exists", o.Kind, o.Name)}
	}
	op := Create
	if _, stands := s.objects[o.key()]; stands {
		op = Update
	}
	o.Owner = by.owner
	return o, s.commit(op, o, by, outside)
}

func (s *store) read(k key) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[k]
	if !ok {
		return Object{}, absent(k)
	}
	return o, nil
}

// update replaces the properties and tags; the name and the owner stay what they were at creation.
func (s *store) update(k key, to Object, by caller) (Object, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[k]
	if !ok {
		return Object{}, absent(k)
	}
	o.Properties, o.Tags = to.Properties, to.Tags
	return o, s.commit(Update, o, by, false)
}

func (s *store) remove(k key, by caller, outside bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[k]
	if !ok {
		return absent(k)
	}
	return s.commit(Delete, o, by, outside)
}

// list gives the objects of a kind ("" for all) that keep wants, by kind and id.
func (s *store) list(kind string, keep func(Object) bool) []Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	found := []Object{}
	for _, o := range s.objects {
		if (kind == "" || o.Kind == kind) && keep(o) {
			found = append(found, o)
		}
	}
	slices.SortFunc(found, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.ID, b.ID))
	})
	return found
}

func (s *store) since(seq int) []Effect {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.effects[min(max(seq, 0), len(s.effects)):])
}

func (s *store) note(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.Time = time.Now().UTC()
	s.requests = append(s.requests, r)
}

func (s *store) asked() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request{}, s.requests...)
}

// commit journals an effect and then applies it. The caller holds mu.
func (s *store) commit(op Op, o Object, by caller, outside bool) error {
	e := Effect{
		Seq: len(s.effects) + 1, Time: time.Now().UTC(), Op: op, Kind: o.Kind, ID: o.ID, Name: o.Name,
		Owner:     cmp.Or(by.owner, o.Owner),
		Operation: by.operation, Repeat: s.operations[by.operation], Caller: by.process, Outside: outside,
	}
	if err := s.journal.append(entry{e, o}); err != nil {
		return &refusal{http.StatusInternalServerError, "JournalFailed", err.Error()}
	}
	s.apply(entry{e, o})
	return nil
}

// apply puts an effect that stands in the journal into memory.
func (s *store) apply(e entry) {
	s.effects = append(s.effects, e.Effect)
	if e.Effect.Operation != "" {
		s.operations[e.Effect.Operation] = true
	}
	k := e.Object.key()
	delete(s.names, key{k.kind, s.objects[k].Name})
	delete(s.objects, k)
	if e.Effect.Op == Delete {
		return
	}
	s.objects[k] = e.Object
	if e.Object.Name != "" {
		s.names[key{k.kind, e.Object.Name}] = k.id
	}
}

func absent(k key) error {
	return &refusal{http.StatusNotFound, "NotFound", fmt.Sprintf("there is no %s with the id %q", k.kind, k.id)}
}
