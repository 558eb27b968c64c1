package http_test

import (
	"maps"
	"testing"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/provider/providertest"
	"github.com/deployctl/deployctl/providers/http"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func pkg() provider.Package {
	return provider.Package{Name: "deployctl", Version: "0.0.1", Modules: []provider.Module{http.Module()}}
}

// record declares one of the things whose names the client gives; kind is records or jobs.
func record(kind string, others providertest.Inputs) providertest.Inputs {
	all := providertest.Inputs{
		"create": map[string]any{"method": "PUT", "path": "/" + kind + "/{name}",
			"headers": map[string]any{"If-None-Match": "*"}},
		"read":   map[string]any{"path": "/" + kind + "/{id}"},
		"update": map[string]any{"path": "/" + kind + "/{id}"},
		"delete": map[string]any{"path": "/" + kind + "/{id}"},
	}
	maps.Copy(all, others)
	return all
}

// user declares one of the things whose IDs the server assigns.
func user(others providertest.Inputs) providertest.Inputs {
	all := providertest.Inputs{
		"create": map[string]any{"path": "/users"},
		"read":   map[string]any{"path": "/users/{id}"},
		"update": map[string]any{"path": "/users/{id}"},
		"delete": map[string]any{"path": "/users/{id}"},
		"lookup": map[string]any{"path": "/users", "items": "items", "next": "page.next",
			"match": map[string]any{"login": "{properties.login}"}},
		"idPath": "id", "envelope": "data", "mark": "labels.owner",
	}
	maps.Copy(all, others)
	return all
}

func start(t *testing.T, calls *providertest.Calls) providertest.Setup {
	t.Helper()
	a := newAPI()
	for _, login := range []string{"one", "two", "three"} { // of others, so that there are two pages
		a.assigned++
		a.users = append(a.users, map[string]any{"login": login, "id": a.assigned})
	}
	return providertest.Setup{
		Package: pkg,
		Config: providertest.Inputs{"httpEndpoint": calls.Serve(t, a),
			"httpHeaders": providertest.Secret(map[string]any{"Authorization": "Bearer token-of-the-api"})},
		Things: a.things,
		Unmarked: func(in resource.PropertyMap) {
			properties, _ := in["properties"].Mappable().(map[string]any)
			if login := properties["login"]; login != nil {
				a.assigned++
				a.users = append(a.users, map[string]any{"login": login, "size": 9, "id": a.assigned})
				return
			}
			path := in["read"].ObjectValue()["path"].StringValue()
			path = path[:len(path)-len("{id}")] + in["name"].StringValue()
			a.records[path] = map[string]any{"size": 9}
		},
	}
}

func TestResourcesOfAPIsConverge(t *testing.T) {
	declared := map[string]any{"size": 1, "labels": map[string]any{"team": "web"}, "list": []any{"a"}}
	changed := map[string]any{"size": 2, "labels": map[string]any{"team": "ops"}, "list": []any{"a", "b"}}
	needed := []string{"envelope", "idPath", "lookup", "mark", "properties", "update", "delete", "writeOnly"}
	person := map[string]any{"login": "me", "size": 1, "password": providertest.Secret("password of me")}
	providertest.Run(t, start,
		providertest.Case{
			Name: "names of the client", Type: "deployctl:http:Resource",
			Inputs: record("records", providertest.Inputs{"properties": declared, "mark": "labels.owner",
				"outputs": map[string]any{"tag": "etag"}}),
			Change:  providertest.Inputs{"properties": changed},
			Replace: providertest.Inputs{"name": "other"},
			Needed:  needed,
		},
		providertest.Case{
			Name: "IDs of the server", Type: "deployctl:http:Resource",
			Inputs: user(providertest.Inputs{"properties": person, "writeOnly": []any{"password"},
				"outputs": map[string]any{"since": "created"}}),
			Change: providertest.Inputs{"properties": map[string]any{"login": "me", "size": 2,
				"password": providertest.Secret("password of me")}},
			Replace: providertest.Inputs{"name": "other"},
			Needed:  needed,
		},
		providertest.Case{
			Name: "ready after a while", Type: "deployctl:http:Resource",
			Inputs: record("jobs", providertest.Inputs{"properties": declared, "mark": "owner",
				"waitUntil": map[string]any{"path": "status", "equals": "running"},
				"outputs":   map[string]any{"status": "status"}}),
			Change: providertest.Inputs{"properties": changed},
			Needed: needed,
		},
	)
}
