package pulumiapi

import (
	"encoding/csv"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// endpoint is one call of the stock CLI's client, as listed from its source.
type endpoint struct{ name, method, path string }

// endpoints reads the list of all calls of the clients of v3.259 to v3.274.1.
func endpoints(t *testing.T) []endpoint {
	t.Helper()
	f, err := os.Open("testdata/endpoints.tsv")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	r := csv.NewReader(f)
	r.Comma, r.LazyQuotes = '\t', true
	rows, err := r.ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var all []endpoint
	for _, row := range rows {
		all = append(all, endpoint{row[0], row[1], row[2]})
	}
	return all
}

// named are the names of what a path names, as routes have them.
var named = strings.NewReplacer("/scheduleID", "/{schedule}", "/webhookName", "/{webhook}", "/eventID", "/{event}",
	"/deploymentID/cancel", "/{deployment}/{part}")

// partOf are the paths of calls about deployments.
var partOf = map[string]string{
	"": "", "/": "", "/id": "/{deployment}", "/version/version": "/{deployment}/{part}",
	"/id/logs":    "/{deployment}/{part}",
	"/id/updates": "/{deployment}/{part}",
}

// pathOf returns the path of a call as a route has it; "" when the list does not say.
func pathOf(e endpoint) string {
	kind, rest, _ := strings.Cut(e.path, ":")
	below := strings.TrimSuffix("/"+strings.ReplaceAll(rest, ",", "/"), "/")
	below = named.Replace(below)
	switch {
	case kind == "Stack" && rest == "endpoint":
		return stackPath + "/update"
	case kind == "Stack":
		return stackPath + below
	case kind == "Deployment":
		return stackPath + "/deployments" + partOf[below]
	case kind == "Update":
		return updatePath + below
	case kind == "Project":
		return "/api/stacks/{org}/{project}"
	}
	return e.path
}

var placeholder = regexp.MustCompile(`\{[^}]+\}`)

// unnamed returns a path without the names of its values, as the list has it.
func unnamed(path string) string { return placeholder.ReplaceAllString(path, "%s") }

func TestEachCallOfTheStockCLIIsServedOrRefusedWithAReason(t *testing.T) {
	known := map[string]bool{}
	for _, e := range endpoints(t) {
		known[e.name] = true
		answers := func(r route) bool { return slices.Contains(r.calls, e.name) }
		i := slices.IndexFunc(routes(), func(r route) bool { return answers(r) && unnamed(r.path) == unnamed(pathOf(e)) })
		if i < 0 {
			i = slices.IndexFunc(routes(), answers)
		}
		switch why, no := refused[e.name]; {
		case i < 0 && !no:
			t.Errorf("%s %s (%s) is neither served nor refused", e.method, e.path, e.name)
		case i >= 0 && no:
			t.Errorf("%s is served, and refused because %s", e.name, why)
		case i >= 0 && !strings.HasPrefix(unnamed(routes()[i].path), unnamed(pathOf(e))):
			t.Errorf("%s is served at %s, and the client calls %s", e.name, routes()[i].path, pathOf(e))
		case i >= 0 && routes()[i].method != e.method:
			t.Errorf("%s is served as %s, and the client calls %s", e.name, routes()[i].method, e.method)
		}
	}
	for _, r := range routes() {
		for _, name := range r.calls {
			if !known[name] {
				t.Errorf("the route %s %s is for a call %s, which the client does not have", r.method, r.path, name)
			}
		}
	}
	for name := range refused {
		if !known[name] {
			t.Errorf("%s is refused, and the client does not have it", name)
		}
	}
}

func TestEachRefusedCallIsAnsweredWithItsReason(t *testing.T) {
	for _, e := range endpoints(t) {
		path := strings.NewReplacer("{org}", "acme", "{project}", "shop", "{stack}", "dev", "%s", "x").Replace(pathOf(e))
		why, no := refused[e.name]
		if !no || why == elsewhere || strings.Contains(path, " ") || strings.Count(path, "/") < 4 {
			continue // the list does not say the path
		}
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if err := notServed(r); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s (%s): %v", e.name, path, err)
		}
	}
}

func TestEachRouteFollowsTheRuleOfAMethod(t *testing.T) {
	for _, r := range routes() {
		if err := r.resolve(); err != nil {
			t.Error(err)
		}
		if r.by == byLease && !strings.HasPrefix(r.path, updatePath+"/") {
			t.Errorf("%s takes a lease and is not about an update", r.path)
		}
	}
}
