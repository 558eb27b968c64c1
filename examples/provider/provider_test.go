package main

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/provider/providertest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// service is the zone's service, in memory.
type service struct {
	mu      sync.Mutex
	records map[string]record
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := strings.TrimPrefix(r.URL.Path, "/records/")
	have, exists := s.records[name]
	switch {
	case r.Method == http.MethodPut && exists && r.Header.Get("If-None-Match") == "*":
		w.WriteHeader(http.StatusPreconditionFailed)
	case r.Method == http.MethodPut:
		var next record
		_ = json.NewDecoder(r.Body).Decode(&next)
		s.records[name] = next
	case !exists:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(s.records, name)
	default:
		_ = json.NewEncoder(w).Encode(have)
	}
}

// things returns all records.
func (s *service) things() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := map[string]any{}
	for name, r := range s.records {
		all[name] = r
	}
	return all
}

// start starts an empty service, and says how the provider reaches it.
func start(t *testing.T, calls *providertest.Calls) providertest.Setup {
	s := &service{records: map[string]record{}}
	return providertest.Setup{
		Package: zone,
		Config:  providertest.Inputs{"endpoint": calls.Serve(t, s), "token": providertest.Secret("token of the zone")},
		Things:  s.things,
		Unmarked: func(in resource.PropertyMap) {
			s.records[in["name"].StringValue()] = record{Address: "198.51.100.1", TTL: 60}
		},
	}
}

func TestRecordsConverge(t *testing.T) {
	providertest.Run(t, start, providertest.Case{
		Type:    "zone:index:Record",
		Inputs:  providertest.Inputs{"address": "192.0.2.7"},
		Change:  providertest.Inputs{"address": "192.0.2.8", "ttl": 60},
		Replace: providertest.Inputs{"name": "other"},
	})
}

func TestARecordIsNotDoneWhileItsServiceCannotBeReached(t *testing.T) {
	away := &client{endpoint: "http://127.0.0.1:1"} // a port on which nothing listens
	err := away.put(t.Context(), "a", record{}, true)
	var notDone *provider.NotDone
	if !errors.As(err, &notDone) {
		t.Errorf("a create without a connection ends with %T: %v", err, err)
	}
}

// TestThePageShowsThisCode compares the Go blocks of docs/providers.md with this directory.
func TestThePageShowsThisCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	var code string
	for _, name := range []string{"main.go", "client.go", "provider_test.go", "../../provider/example_test.go",
		"../../provider/providertest/assigned_test.go"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		code += string(text)
	}
	blocks := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(string(page), -1)
	if len(blocks) == 0 {
		t.Fatal("the page shows no code")
	}
	for _, block := range blocks {
		if !strings.Contains(code, block[1]) {
			t.Errorf("this code of the page is not in the example:\n%s", block[1])
		}
	}
}
