package http

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// maxPages bounds a lookup.
const maxPages = 100

// candidate is what a lookup has found.
type candidate struct {
	id   string
	ours bool // by its mark
}

// lookup finds the ID of the resource, and leaves it empty if there is none.
func (s *session) lookup(ctx context.Context) error {
	l := s.in.Lookup.V
	if l == nil {
		return errors.New("lookup must be given with idPath")
	}
	values := s.scope(nil)
	match, err := values.json(anyMap(l.Match))
	if err != nil {
		return errors.New(s.redact("lookup.match: " + err.Error()))
	}
	path, err := values.url(l.Path)
	if err != nil {
		return errors.New(s.redact("lookup.path: " + err.Error()))
	}
	var found []candidate
	next := s.endpoint + path
	for page := 0; next != ""; page++ {
		if page == maxPages {
			return fmt.Errorf("the lookup %s has more than %d pages: name the resource in its path", s.redact(l.Path), maxPages)
		}
		items, after, err := s.page(ctx, *l, next)
		if err != nil {
			return err
		}
		for _, item := range items {
			if c, ok := s.matches(item, match.(map[string]any)); ok {
				found = append(found, c)
			}
		}
		next = after
	}
	return s.choose(found)
}

func anyMap(m map[string]any) any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// matches says whether an item of the list is meant.
func (s *session) matches(item any, match map[string]any) (candidate, bool) {
	for where, want := range match {
		if have, _ := at(item, where); !covers(have, want) {
			return candidate{}, false
		}
	}
	mark, _ := at(item, s.in.Mark)
	ours := s.in.Mark != "" && mark == s.owner
	if len(match) == 0 && !ours {
		return candidate{}, false
	}
	value, _ := at(item, s.in.IDPath)
	id, _ := text(value)
	return candidate{id, ours}, id != ""
}

// choose takes the one that has the mark, or the only one.
func (s *session) choose(found []candidate) error {
	var ours []candidate
	for _, c := range found {
		if c.ours {
			ours = append(ours, c)
		}
	}
	if len(ours) > 0 {
		found = ours
	}
	switch {
	case len(found) > 1 && (s.in.Mark == "" || len(ours) > 0):
		ids := make([]string, len(found))
		for i, c := range found {
			ids[i] = c.id
		}
		return fmt.Errorf("the lookup finds %d resources, with the IDs %s: delete those that are not needed, or make "+
			"lookup.match tell them apart", len(found), s.redact(strings.Join(ids, ", ")))
	case len(found) > 0:
		s.id = found[0].id
	}
	return nil
}

// page returns the items of one page, and the URL of the next one.
func (s *session) page(ctx context.Context, l Lookup, at string) (items []any, next string, err error) {
	r := Request{Method: http.MethodGet, Path: l.Path, Headers: l.Headers}
	got, err := s.ask(ctx, r, at, nil)
	if err != nil {
		return nil, "", err
	}
	if !s.success(got.code) {
		return nil, "", s.refused(r, at, got)
	}
	value, err := got.json()
	if err == nil {
		items, err = itemsOf(value, l.Items)
	}
	if err == nil {
		next, err = s.nextPage(got, value, l.Next, at)
	}
	if err != nil {
		return nil, "", fmt.Errorf("%s: %w", s.redact("GET "+at), err)
	}
	return items, next, nil
}

func itemsOf(value any, where string) ([]any, error) {
	list, _ := at(value, where)
	items, ok := list.([]any)
	if !ok && list != nil {
		return nil, fmt.Errorf("the answer has no list at lookup.items %q", where)
	}
	if list == nil && where != "" {
		if _, there := at(value, where); !there {
			return nil, fmt.Errorf("the answer has nothing at lookup.items %q", where)
		}
	}
	return items, nil
}

// nextLink is the next page in a header Link.
var nextLink = regexp.MustCompile(`<([^>]*)>[^,]*;\s*rel="?next"?(?:[;,\s]|$)`)

// nextPage returns the URL of the next page, which is on the same server: it gets the headers.
func (s *session) nextPage(got answer, value any, where, from string) (string, error) {
	link := ""
	if where != "" {
		there, _ := at(value, where)
		link, _ = text(there)
	} else if m := nextLink.FindStringSubmatch(strings.Join(got.header.Values("Link"), ", ")); m != nil {
		link = m[1]
	}
	if link == "" {
		return "", nil
	}
	here, err := url.Parse(from)
	if err != nil {
		return "", err
	}
	next, err := here.Parse(link)
	if err != nil || !sameOrigin(here, next) {
		return "", fmt.Errorf("the next page must be on the same server, and is %q", s.redact(link))
	}
	return next.String(), nil
}
