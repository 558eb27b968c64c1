package http

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"strings"

	"github.com/deployctl/deployctl/provider"
)

// session is one resource at its server, for one call of the engine.
type session struct {
	*opened
	in       ResourceIn
	endpoint string
	headers  map[string]string
	redact   func(string) string
	owner    string // the mark that it shall have
	id       string // empty while it is not known

	declared any    // the properties with the mark, if the resource can keep one
	before   any    // the properties of the last success
	again    bool   // there was one
	lastMark string // that of the last success, empty when nothing is remembered

	there bool // the last read has found it
	seen  any  // what that has found
	last  answer
}

func (r *Resource) session(
	in ResourceIn, who provider.Identity, id string, out *ResourceOut, redact func(string) string,
) (*session, error) {
	opened, err := r.conn.get()
	if err != nil {
		return nil, err
	}
	s := &session{opened: opened, in: in, endpoint: in.Endpoint, headers: in.Headers, owner: who.Owner(), id: id}
	s.redact = func(text string) string { return opened.redactor.Replace(redact(text)) }
	if in.Endpoint == "" {
		s.endpoint, s.headers = opened.endpoint, maps.Clone(opened.headers)
		if s.headers == nil {
			s.headers = map[string]string{}
		}
		maps.Copy(s.headers, in.Headers)
	}
	if s.endpoint == "" {
		return nil, errors.New("endpoint must be given, here or as deployctl:httpEndpoint in the configuration")
	}
	if in.Create.V == nil || in.Read.V == nil {
		return nil, errors.New("create and read must be given")
	}
	s.endpoint = strings.TrimRight(s.endpoint, "/")
	if out != nil {
		s.lastMark = out.Owner
	}
	s.declared = in.Properties
	if p, err := parsePath(in.Mark); err == nil && len(p) > 0 {
		s.declared = with(in.Properties, p, s.owner)
	}
	if in.IDPath == "" {
		s.id = cmp.Or(id, in.Name)
		s.in.Name = s.id
	}
	return s, nil
}

// scope are the values of placeholders; changes is nil but for an update.
func (s *session) scope(changes any) scope {
	all := scope{"name": s.in.Name, "owner": s.owner, "properties": s.declared}
	if s.id != "" {
		all["id"] = s.id
	}
	if s.there {
		all["observed"] = s.seen
	}
	if changes != nil {
		all["changes"] = changes
	}
	return all
}

// reply is a request that was answered.
type reply struct {
	answer
	request Request
	url     string
}

// send expands a request and sends it.
func (s *session) send(ctx context.Context, template Request, method, body string, changes any) (reply, error) {
	r, values := template, s.scope(changes)
	if r.Method == "" {
		r.Method = method
	}
	if r.Body == nil && body != "" {
		r.Body = "{" + body + "}"
	}
	path, err := values.url(r.Path)
	if err != nil {
		return reply{}, errors.New(s.redact(fmt.Sprintf("the path %s: %v", r.Path, err)))
	}
	content, err := values.json(r.Body)
	if err != nil {
		return reply{}, errors.New(s.redact(fmt.Sprintf("the body of %s %s: %v", r.Method, r.Path, err)))
	}
	got := reply{request: r, url: s.endpoint + path}
	got.answer, err = s.ask(ctx, r, got.url, content)
	s.last = got.answer
	return got, err
}

// resource returns the resource in an answer.
func (s *session) resource(a answer) (any, error) {
	value, err := a.json()
	if err != nil {
		return nil, err
	}
	inside, ok := at(value, s.in.Envelope)
	if !ok {
		return nil, fmt.Errorf("the answer has nothing at envelope %q", s.in.Envelope)
	}
	return inside, nil
}

// read looks whether the resource with the known ID is there, and what it is. An envelope with null in it has none.
func (s *session) read(ctx context.Context) error {
	s.there, s.seen = false, nil
	got, err := s.send(ctx, *s.in.Read.V, http.MethodGet, "", nil)
	switch {
	case err != nil:
		return err
	case s.gone(got.code):
		return nil
	case !s.success(got.code):
		return s.refused(got.request, got.url, got.answer)
	}
	if s.seen, err = s.resource(got.answer); err != nil {
		return fmt.Errorf("%s: %w", s.redact("GET "+got.url), err)
	}
	s.there = s.seen != nil || s.in.Envelope == ""
	return nil
}

// find looks whether the resource is there: by its ID, or by the lookup.
func (s *session) find(ctx context.Context) error {
	s.there = false
	if s.id == "" {
		if err := s.lookup(ctx); err != nil || s.id == "" {
			return err
		}
	}
	return s.read(ctx)
}

// mark is the mark that was seen, empty if there is none or no place for one.
func (s *session) mark() string {
	if s.in.Mark == "" {
		return ""
	}
	value, _ := at(s.seen, s.in.Mark)
	mark, _ := value.(string)
	return mark
}

// ownership says whose what was seen is. Known says that its ID is that of the state.
func (s *session) ownership(known bool) provider.Ownership {
	mark := s.mark()
	switch {
	case !s.there:
		return provider.Absent
	case s.in.Mark == "" && known:
		return provider.Owned
	case s.in.Mark == "" && s.isAsDeclared():
		return provider.Undecidable // it may be what a lost create has made
	case mark != "" && (mark == s.owner || known && mark == s.lastMark):
		return provider.Owned
	}
	return provider.Unowned
}

// isAsDeclared says whether what was seen is what a create of these inputs makes.
func (s *session) isAsDeclared() bool {
	_, paths := s.difference()
	return len(paths) == 0
}

// lost says whether another owner has taken over what the state knows.
func (s *session) lost() bool {
	return s.mark() != "" && s.lastMark != "" && s.ownership(true) == provider.Unowned
}

// refuses says whether what was seen may not be changed: a create leaves alone what is not its own, and an update what
// another owner has taken over.
func (s *session) refuses(known bool) error {
	if known && !s.lost() || !known && s.ownership(false) != provider.Unowned {
		return nil
	}
	return &provider.Foreign{Thing: s.redact("resource " + s.id), ID: s.redact(s.id)}
}

// difference is what has to change, as a JSON merge patch, and the paths of that: nothing if nothing is declared.
func (s *session) difference() (patch any, paths []string) {
	if s.declared == nil {
		return nil, nil
	}
	return s.comparison().difference(s.before, s.declared, s.seen, nil)
}

func (s *session) comparison() comparison {
	c := comparison{unseen: map[string]bool{}, again: s.again, taken: s.in.Mark != "" && s.mark() != s.owner}
	for _, text := range s.in.WriteOnly {
		if p, err := parsePath(text); err == nil {
			c.unseen[p.String()] = true
		}
	}
	return c
}

// out are the outputs of what was seen.
func (s *session) out() ResourceOut {
	out := ResourceOut{Name: s.in.Name, Owner: s.owner, Result: map[string]any{}}
	for name, where := range s.in.Outputs {
		if value, ok := at(s.seen, where); ok {
			out.Result[name] = plain(value)
		}
	}
	return out
}
