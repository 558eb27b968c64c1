package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// service is the zone's service, in memory.
type service struct {
	mu      sync.Mutex
	records map[string]record
	writes  int
	lose    bool // the next write is made, and not answered
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
		s.writes++
		if s.lose {
			s.lose = false
			panic(http.ErrAbortHandler) // hangs up
		}
	case !exists:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodDelete:
		delete(s.records, name)
	default:
		_ = json.NewEncoder(w).Encode(have)
	}
}

// start returns the service and the provider, configured for it, over the protocol that engines speak.
func start(t *testing.T) (*service, pulumirpc.ResourceProviderClient) {
	t.Helper()
	s := &service{records: map[string]record{}}
	web := httptest.NewServer(s)
	t.Cleanup(web.Close)
	c, stop, err := provider.Client(provider.Server(zone()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	configuration := bag(t, resource.PropertyMap{"endpoint": resource.NewProperty(web.URL)})
	if _, err := c.Configure(t.Context(), &pulumirpc.ConfigureRequest{Args: configuration}); err != nil {
		t.Fatal(err)
	}
	return s, c
}

func bag(t *testing.T, m resource.PropertyMap) *structpb.Struct {
	t.Helper()
	s, err := plugin.MarshalProperties(m, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const urn = "urn:pulumi:dev::site::zone:index:Record::www"

// checked returns the inputs of www as the provider completes them: with a name made of the seed.
func checked(t *testing.T, c pulumirpc.ResourceProviderClient) *structpb.Struct {
	t.Helper()
	inputs := bag(t, resource.PropertyMap{"address": resource.NewProperty("192.0.2.7")})
	resp, err := c.Check(t.Context(), &pulumirpc.CheckRequest{Urn: urn, News: inputs, RandomSeed: []byte("seed")})
	if err != nil || len(resp.GetFailures()) > 0 {
		t.Fatal(resp.GetFailures(), err)
	}
	return resp.GetInputs()
}

func TestACreateWhoseAnswerWasLostFindsWhatItMade(t *testing.T) {
	s, c := start(t)
	s.lose = true
	create := &pulumirpc.CreateRequest{Urn: urn, Properties: checked(t, c)}
	if _, err := c.Create(t.Context(), create); status.Code(err) != codes.Unavailable {
		t.Fatalf("the lost answer is %v, not unknown", err)
	}
	again, err := c.Create(t.Context(), create)
	if err != nil {
		t.Fatal(err)
	}
	if _, made := s.records[again.GetId()]; !made || len(s.records) != 1 || s.writes != 1 {
		t.Errorf("%d writes made %v, and the id is %q", s.writes, s.records, again.GetId())
	}
}

func TestARecordOfAnotherResourceIsLeftAlone(t *testing.T) {
	s, c := start(t)
	inputs := checked(t, c)
	name := inputs.GetFields()["name"].GetStringValue()
	s.records[name] = record{Address: "198.51.100.1", Owner: "somebody"}
	_, err := c.Create(t.Context(), &pulumirpc.CreateRequest{Urn: urn, Properties: inputs})
	if status.Code(err) != codes.AlreadyExists || s.writes != 0 {
		t.Errorf("%v after %d writes", err, s.writes)
	}
}

func TestADeleteOfWhatIsGoneSucceeds(t *testing.T) {
	_, c := start(t)
	inputs := checked(t, c)
	_, err := c.Delete(t.Context(), &pulumirpc.DeleteRequest{Urn: urn, Id: "www", OldInputs: inputs, Properties: inputs})
	if err != nil {
		t.Error(err)
	}
}

// TestThePageShowsThisCode compares the Go blocks of docs/providers.md with this directory.
func TestThePageShowsThisCode(t *testing.T) {
	page, err := os.ReadFile("../../docs/providers.md")
	if err != nil {
		t.Fatal(err)
	}
	var code string
	for _, name := range []string{"main.go", "client.go"} {
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
