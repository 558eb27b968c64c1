package http_test

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/provider/providertest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

func TestBadInputsFailWithThePropertyAndWhatItMustBe(t *testing.T) {
	_, e := serve(t)
	text, err := asset.FromText("x")
	if err != nil {
		t.Fatal(err)
	}
	at := func(path string) map[string]any { return map[string]any{"path": path} }
	cases := []struct {
		others           providertest.Inputs
		property, reason string
	}{
		{providertest.Inputs{"endpoint": "api.example.com"}, "endpoint", "must be a URL such as"},
		{providertest.Inputs{"endpoint": "https://me:word@api.example.com"}, "endpoint", "put them into headers"},
		{providertest.Inputs{"endpoint": "https://api.example.com?a=b"}, "endpoint", "no query"},
		{providertest.Inputs{"headers": map[string]any{"a b": "c"}}, "headers", "is not the name of a header"},
		{providertest.Inputs{"headers": map[string]any{"A": "b\r\nC: d"}}, "headers", "has a control character"},
		{providertest.Inputs{"headers": map[string]any{"host": "b"}}, "headers", "may not have Host"},
		{providertest.Inputs{"name": ""}, "name", "may not be empty"},
		{providertest.Inputs{"create": nil}, "create", "is required"},
		{providertest.Inputs{"create": "POST /users"}, "create", "must be an object, not a string"},
		{providertest.Inputs{"create": map[string]any{"path": "/a", "verb": "PUT"}}, "create", `has an unknown field "verb"`},
		{providertest.Inputs{"create": map[string]any{"path": 1}}, "create", "has a path that is a number"},
		{providertest.Inputs{"create": map[string]any{"path": "/a", "method": "GET"}}, "create.method", "must be POST"},
		{providertest.Inputs{"create": at("users")}, "create.path", "must begin with a slash"},
		{providertest.Inputs{"create": at("/a/{mane}")}, "create.path", "has the placeholder {mane}: here can be {id}"},
		{providertest.Inputs{"create": at("/a/{id")}, "create.path", "a brace is written {{"},
		{providertest.Inputs{"create": at("/a/{observed.x}")}, "create.path", "has the placeholder {observed.x}"},
		{providertest.Inputs{"create": map[string]any{"path": "/a", "body": []any{"{changes}"}}}, "create.body",
			"has the placeholder {changes}"},
		{providertest.Inputs{"read": map[string]any{"path": "/a", "method": "POST"}}, "read.method", "must be GET"},
		{providertest.Inputs{"read": map[string]any{"path": "/a", "body": "x"}}, "read.body", "may not be given"},
		{providertest.Inputs{"update": map[string]any{"path": "/a", "headers": map[string]any{"": ""}}}, "update.headers",
			"is not the name"},
		{providertest.Inputs{"delete": map[string]any{"path": "/a", "method": "delete"}}, "delete.method", "DELETE"},
		{providertest.Inputs{"idPath": "id", "create": at("/a")}, "lookup", "would make a second one"},
		{providertest.Inputs{"idPath": "id", "create": at("/a/{id}")}, "create.path", "has the placeholder {id}"},
		{providertest.Inputs{"idPath": "id", "lookup": at("/a")}, "lookup.match", "unless mark is"},
		{providertest.Inputs{"lookup": at("/a")}, "lookup", "only with idPath"},
		{providertest.Inputs{"idPath": "[", "lookup": at("/a")}, "idPath", "is not a path such as data.id"},
		{providertest.Inputs{"envelope": "a["}, "envelope", "is not a path"},
		{providertest.Inputs{"outputs": map[string]any{"x": "a["}}, `outputs["x"]`, "is not a path"},
		{providertest.Inputs{"writeOnly": []any{"a["}}, "writeOnly", "is not a path"},
		{providertest.Inputs{"properties": map[string]any{"a": text}}, "properties", "must be JSON"},
		{providertest.Inputs{"properties": map[string]any{"owner": "me"}, "mark": "owner"}, "mark", "deployctl sets it"},
		{providertest.Inputs{"properties": map[string]any{"a": "b"}, "mark": "a.owner"}, "mark", "leads into a of"},
		{providertest.Inputs{"properties": "text", "mark": "owner"}, "mark", "which is no object"},
		{providertest.Inputs{"mark": "list[0]"}, "mark", "may not lead into a list"},
		{providertest.Inputs{"waitUntil": map[string]any{"path": "a"}}, "waitUntil", "either equals or oneOf"},
		{providertest.Inputs{"waitUntil": map[string]any{"path": "a", "equals": 1, "within": -1}}, "waitUntil.within",
			"must be 1 to"},
		{providertest.Inputs{"expect": map[string]any{"gone": []any{99}}}, "expect", "is no status code"},
		{providertest.Inputs{"expect": map[string]any{"gone": []any{404}, "success": []any{404}}}, "expect", "twice"},
	}
	for _, c := range cases {
		in := record("records", over(providertest.Inputs{"name": "it"}, c.others))
		resp, err := e.Check(t.Context(), &pulumirpc.CheckRequest{Urn: urn, News: wire(t, in)})
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, f := range resp.GetFailures() {
			found = found || f.GetProperty() == c.property && strings.Contains(f.GetReason(), c.reason)
		}
		if !found {
			t.Errorf("%v: there is no failure of %s that says %q, but %v", c.others, c.property, c.reason, resp.GetFailures())
		}
	}
}

func TestWhatIsNotKnownInAPreviewIsNotJudged(t *testing.T) {
	_, e := serve(t)
	unknown := resource.MakeComputed(resource.NewProperty(""))
	for _, in := range []providertest.Inputs{
		record("records", nil),
		record("records", providertest.Inputs{"properties": map[string]any{"a": unknown}, "mark": "owner"}),
		record("records", providertest.Inputs{"endpoint": unknown, "name": unknown, "mark": unknown}),
		user(providertest.Inputs{"lookup": unknown, "create": unknown}),
		user(providertest.Inputs{"lookup": map[string]any{"path": "/a", "match": map[string]any{"a": unknown}}}),
	} {
		resp, err := e.Check(t.Context(), &pulumirpc.CheckRequest{Urn: urn, News: wire(t, in)})
		if err != nil || len(resp.GetFailures()) > 0 {
			t.Errorf("%v: %v, %v", in, resp.GetFailures(), err)
		}
	}
}

func TestAnEndpointIsGivenByTheResourceOrTheConfiguration(t *testing.T) {
	e := open(t, nil)
	in := record("records", providertest.Inputs{"name": "it"})
	resp, err := e.Check(t.Context(), &pulumirpc.CheckRequest{Urn: urn, News: wire(t, in)})
	if err != nil || len(resp.GetFailures()) != 1 || resp.GetFailures()[0].GetProperty() != "endpoint" {
		t.Errorf("neither: %v, %v", resp.GetFailures(), err)
	}
	for name, config := range map[string]providertest.Inputs{
		"httpEndpoint": {"httpEndpoint": "ftp://x"},
		"httpHeaders":  {"httpEndpoint": "http://x", "httpHeaders": map[string]any{"A": "secret\n"}},
		"not set":      {"httpHeaders": map[string]any{"A": "secret"}},
	} {
		_, err := e.Configure(t.Context(), &pulumirpc.ConfigureRequest{Args: wire(t, config)})
		if err == nil || !strings.Contains(err.Error(), name) || strings.Contains(err.Error(), "secret\n") {
			t.Errorf("%v: %v", config, err)
		}
	}
}
