package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/deployctl/deployctl/provider"
)

const (
	// settling is how long what was written may be told otherwise: servers may read what is older for a moment.
	settling      = 6 * time.Second
	defaultWithin = 300 * time.Second
	briefest      = 10 * time.Millisecond
	firstPause    = 100 * time.Millisecond
	longestPause  = 10 * time.Second
)

// ensure makes sure that the resource exists and may be changed. The ID stays empty if it does not.
func (s *session) ensure(ctx context.Context, known bool) error {
	if err := s.find(ctx); err != nil {
		return err
	}
	if s.there {
		return s.refuses(known)
	}
	if known && s.in.IDPath != "" {
		return fmt.Errorf("resource %s is gone: run `deployctl refresh`, and the next update creates it again",
			s.redact(s.id))
	}
	return s.create(ctx)
}

// create sends the create. If the resource exists already, another attempt may have made it.
func (s *session) create(ctx context.Context) error {
	if s.in.IDPath != "" {
		s.id = ""
	}
	got, err := s.send(ctx, *s.in.Create.V, http.MethodPost, s.body(), nil)
	switch {
	case err != nil:
		return err
	case s.success(got.code):
		return s.identify(ctx, got.answer)
	case !s.exists(got.code):
		return s.refused(got.request, got.url, got.answer)
	}
	if err := s.find(ctx); err != nil {
		return err
	}
	if !s.there {
		// What is there under another name, or was there a moment ago.
		return s.refused(got.request, got.url, got.answer)
	}
	return s.refuses(false)
}

// body is what a create sends by default.
func (s *session) body() string {
	if s.declared == nil {
		return ""
	}
	return "properties"
}

// identify finds the ID that the server has assigned: in the answer, or by the lookup.
func (s *session) identify(ctx context.Context, a answer) error {
	if s.in.IDPath == "" {
		return nil
	}
	if made, err := s.resource(a); err == nil {
		value, _ := at(made, s.in.IDPath)
		if s.id, _ = text(value); s.id != "" {
			return nil
		}
	}
	err := s.lookup(ctx)
	if err == nil && s.id == "" {
		err = fmt.Errorf("the answer to the create has no ID at %q, and the lookup does not find what it has made: correct "+
			"idPath or lookup", s.in.IDPath)
	}
	if err != nil {
		return &provider.Unknown{Err: err}
	}
	return nil
}

// converge brings the resource, which exists, to what is declared.
func (s *session) converge(ctx context.Context) error {
	if err := s.await(ctx, s.ready); err != nil {
		return err
	}
	changes, paths := s.difference()
	if len(paths) == 0 {
		return nil
	}
	if s.in.Update.V == nil {
		return s.otherwise()
	}
	if err := s.update(ctx, changes); err != nil {
		return err
	}
	s.there, s.before, s.again = false, nil, false // what only the declaration tells is written
	return s.await(ctx, func() bool { return s.ready() && s.isAsDeclared() })
}

func (s *session) update(ctx context.Context, changes any) error {
	template, body := *s.in.Update.V, "properties"
	if template.Method == "" || template.Method == http.MethodPatch {
		body = "changes"
	}
	got, err := s.send(ctx, template, http.MethodPatch, body, changes)
	if err != nil {
		return err
	}
	if !s.success(got.code) {
		return s.refused(got.request, got.url, got.answer)
	}
	return nil
}

// errPatience is that something has not come about in time.
var errPatience = errors.New("it takes too long")

// await waits until the resource is there and more has come about, as long as it may take.
func (s *session) await(ctx context.Context, done func() bool) error {
	if s.there && done() {
		return nil
	}
	within := settling
	if w := s.in.WaitUntil.V; w != nil {
		if within = time.Duration(w.Within) * time.Second; within == 0 {
			within = defaultWithin
		}
	}
	err := s.poll(ctx, within, func() bool { return s.there && done() })
	switch {
	case !errors.Is(err, errPatience):
		return err
	case !s.there:
		return fmt.Errorf("resource %s was written, and reading it does not find it: see whether read.path is right",
			s.redact(s.id))
	case !s.ready():
		return s.notReady(within)
	}
	return s.otherwise()
}

func (s *session) notReady(within time.Duration) error {
	where := s.in.WaitUntil.V.Path
	value, _ := at(s.seen, where)
	is, ok := text(value)
	if !ok {
		is = "no text, number, true or false"
	}
	return fmt.Errorf("resource %s exists and is not ready after %s: %s is %s; the next update waits again",
		s.redact(s.id), within, where, s.redact(is))
}

// otherwise says that the resource is not as declared.
func (s *session) otherwise() error {
	_, paths := s.difference()
	for i, path := range paths {
		if path == "" {
			paths[i] = "the whole"
		}
	}
	return fmt.Errorf("resource %s has other properties than declared (%s), and no request changes that: declare what "+
		"the server keeps, give update, or name what it does not tell in writeOnly", s.redact(s.id),
		s.redact(strings.Join(paths, ", ")))
}

// ready says whether the resource has what waitUntil says.
func (s *session) ready() bool {
	return s.in.WaitUntil.V == nil || s.has(*s.in.WaitUntil.V)
}

// has says whether the resource has what is waited for.
func (s *session) has(w Wait) bool {
	value, _ := at(s.seen, w.Path)
	if w.Equals != nil {
		return covers(value, w.Equals)
	}
	for _, one := range w.OneOf {
		if covers(value, one) {
			return true
		}
	}
	return false
}

// poll reads until something has come about, with growing pauses, or those that the server asks for. A read that may
// succeed later is repeated.
func (s *session) poll(ctx context.Context, within time.Duration, done func() bool) error {
	end := time.Now().Add(within)
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		var notDone *provider.NotDone
		err := s.read(ctx)
		switch {
		case err != nil && !errors.As(err, &notDone):
			return err
		case err == nil && done():
			return nil
		}
		wait := pause
		if asked, ok := s.last.delay(); ok {
			wait = max(asked, briefest)
		}
		if time.Now().Add(wait).After(end) {
			if err == nil {
				err = errPatience
			}
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// remove deletes the resource, which is there, and waits until it is gone if the server says that it has begun to.
func (s *session) remove(ctx context.Context) error {
	got, err := s.send(ctx, *s.in.Delete.V, http.MethodDelete, "", nil)
	switch {
	case err != nil:
		return err
	case s.gone(got.code):
		return nil
	case !s.success(got.code):
		return s.refused(got.request, got.url, got.answer)
	case got.code != http.StatusAccepted:
		return nil
	}
	err = s.poll(ctx, defaultWithin, func() bool { return !s.there })
	if errors.Is(err, errPatience) {
		return fmt.Errorf("resource %s is still there after %s; the next update deletes it again", s.redact(s.id),
			defaultWithin)
	}
	return err
}
