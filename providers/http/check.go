package http

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

const maxWithin = 24 * 60 * 60

// checker collects failures.
type checker struct {
	provider.Inputs[ResourceIn]
	failures []provider.Failure
}

func (c *checker) fail(property, reason string) {
	if reason != "" {
		c.failures = append(c.failures, provider.Failure{Property: property, Reason: reason})
	}
}

// Check judges templates, paths, and what goes together.
func (r *Resource) Check(_ context.Context, in provider.Inputs[ResourceIn]) []provider.Failure {
	c := &checker{Inputs: in}
	if opened, err := r.conn.get(); in.Known("endpoint") {
		switch {
		case in.Value.Endpoint != "":
			c.fail("endpoint", wrongEndpoint(in.Value.Endpoint))
		case err == nil && opened.endpoint == "":
			c.fail("endpoint", "must be given, here or as deployctl:httpEndpoint in the configuration")
		}
	}
	c.fail("headers", wrongHeaders(in.Value.Headers))
	if in.Value.Name == "" && in.Known("name") {
		c.fail("name", "may not be empty")
	}
	if _, err := json.Marshal(in.Value.Properties); err != nil || !isJSON(in.Value.Properties) {
		c.fail("properties", "must be JSON: strings, numbers, true, false, null, lists and objects")
	}
	c.requests()
	c.lookup()
	c.paths()
	c.mark()
	c.wait()
	c.expect()
	return c.failures
}

// isJSON says whether there is no asset in a value.
func isJSON(value any) bool {
	switch v := value.(type) {
	case nil, string, bool, float64:
		return true
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(item any) bool { return !isJSON(item) })
	case []any:
		return !slices.ContainsFunc(v, func(item any) bool { return !isJSON(item) })
	}
	return false
}

// requests checks create, read, update and delete. Before a create, there is no ID that the server assigns.
func (c *checker) requests() {
	first := []string{"id", "name", "owner", "properties"}
	if c.Value.IDPath != "" {
		first = first[1:]
	}
	known, later := []string{"id", "name", "owner", "properties"}, []string{"observed"}
	changing := []string{http.MethodPost, http.MethodPut, http.MethodPatch}
	c.request("create", c.Value.Create.V, changing, first, nil)
	c.request("read", c.Value.Read.V, []string{http.MethodGet}, known, nil)
	c.request("update", c.Value.Update.V, changing, append(known, later...), []string{"changes"})
	c.request("delete", c.Value.Delete.V, append(changing, http.MethodDelete), append(known, later...), nil)
	if read := c.Value.Read.V; read != nil && read.Body != nil {
		c.fail("read.body", "may not be given: a GET has none")
	}
}

func (c *checker) request(name string, r *Request, methods, roots, inBody []string) {
	if r == nil {
		return
	}
	if r.Method != "" && !slices.Contains(methods, r.Method) {
		c.fail(name+".method", fmt.Sprintf("must be %s, not %q", strings.Join(methods, " or "), r.Method))
	}
	c.fail(name+".path", wrongPath(r.Path, roots))
	c.fail(name+".headers", wrongHeaders(r.Headers))
	c.fail(name+".body", wrongTemplates(r.Body, slices.Concat(roots, inBody)...))
}

func wrongPath(template string, roots []string) string {
	if !strings.HasPrefix(template, "/") || strings.Contains(template, "#") {
		return fmt.Sprintf("must begin with a slash and have no #, as /users/{id}, and is %q", template)
	}
	return wrongTemplate(template, roots...)
}

func (c *checker) lookup() {
	l := c.Value.Lookup.V
	switch {
	case !c.Known("lookup", "idPath", "mark"):
	case l == nil && c.Value.IDPath != "":
		c.fail("lookup", "must be given with idPath: without it, a create whose answer was lost would make a second one")
	case l == nil:
	case c.Value.IDPath == "":
		c.fail("lookup", "is of use only with idPath: without one, the ID is the name")
	case len(l.Match) == 0 && c.Value.Mark == "":
		c.fail("lookup.match", "must be given, unless mark is: it says which of the list is meant")
	}
	if l == nil {
		return
	}
	roots := []string{"name", "owner", "properties"}
	c.fail("lookup.path", wrongPath(l.Path, roots))
	c.fail("lookup.headers", wrongHeaders(l.Headers))
	c.path("lookup.items", l.Items)
	c.path("lookup.next", l.Next)
	for _, where := range slices.Sorted(maps.Keys(l.Match)) {
		c.path("lookup.match", where)
		c.fail("lookup.match", wrongTemplates(l.Match[where], roots...))
	}
}

func (c *checker) path(property, text string) {
	if _, err := parsePath(text); err != nil {
		c.fail(property, err.Error())
	}
}

func (c *checker) paths() {
	c.path("idPath", c.Value.IDPath)
	c.path("envelope", c.Value.Envelope)
	for _, text := range c.Value.WriteOnly {
		c.path("writeOnly", text)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Value.Outputs)) {
		c.path(fmt.Sprintf("outputs[%q]", name), c.Value.Outputs[name])
	}
}

// mark wants a place for the mark that is not declared otherwise.
func (c *checker) mark() {
	p, err := parsePath(c.Value.Mark)
	if err != nil {
		c.fail("mark", err.Error())
		return
	}
	if len(p) == 0 || !c.Known("properties") {
		return
	}
	here := c.Value.Properties
	for i, step := range p {
		key, ok := step.(string)
		object, isObject := here.(map[string]any)
		switch {
		case !ok:
			c.fail("mark", "may not lead into a list")
		case here != nil && !isObject:
			c.fail("mark", fmt.Sprintf("leads into %s of properties, which is no object", describePath(p[:i])))
		case i == len(p)-1 && object[key] != nil:
			c.fail("mark", "is where properties has another value: deployctl sets it")
		}
		here = object[key]
	}
}

func describePath(p resource.PropertyPath) string {
	if len(p) == 0 {
		return "the whole"
	}
	return p.String()
}

func (c *checker) wait() {
	w := c.Value.WaitUntil.V
	if w == nil {
		return
	}
	c.path("waitUntil.path", w.Path)
	if (w.Equals == nil) == (len(w.OneOf) == 0) {
		c.fail("waitUntil", "must have either equals or oneOf")
	}
	if w.Within < 0 || w.Within > maxWithin {
		c.fail("waitUntil.within", fmt.Sprintf("must be 1 to %d seconds", maxWithin))
	}
}

func (c *checker) expect() {
	e := c.Value.Expect.V
	if e == nil {
		return
	}
	seen := map[int]bool{}
	for _, code := range slices.Concat(e.Success, e.Gone, e.Exists) {
		if code < 200 || code > 599 {
			c.fail("expect", fmt.Sprintf("has %d, which is no status code of an answer", code))
		} else if seen[code] {
			c.fail("expect", fmt.Sprintf("has %d twice", code))
		}
		seen[code] = true
	}
}

func wrongEndpoint(endpoint string) string {
	u, err := url.Parse(endpoint)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "must be a URL such as https://api.example.com/v1"
	case u.User != nil:
		return "may have no user and password: put them into headers"
	case u.RawQuery != "" || u.Fragment != "":
		return "may have no query and no fragment"
	}
	return ""
}

var headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")

// wrongHeaders does not repeat values, which may be secret.
func wrongHeaders(headers map[string]string) string {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch canonical := http.CanonicalHeaderKey(name); {
		case !headerName.MatchString(name):
			return fmt.Sprintf("%q is not the name of a header", name)
		case slices.Contains([]string{"Host", "Content-Length", "Transfer-Encoding", "Connection"}, canonical):
			return fmt.Sprintf("may not have %s, which the connection sets", canonical)
		case strings.ContainsFunc(headers[name], func(r rune) bool { return r < ' ' && r != '\t' || r == 127 }):
			return fmt.Sprintf("has a control character, such as a newline, in %s", canonical)
		}
	}
	return ""
}
