package http_test

import (
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/provider/providertest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// engine plays an engine's part against the provider.
type engine struct {
	t *testing.T
	pulumirpc.ResourceProviderClient
}

const urn = "urn:pulumi:dev::web::deployctl:http:Resource::it"

func open(t *testing.T, config providertest.Inputs) engine {
	t.Helper()
	client, stop, err := provider.Client(provider.Server(pkg()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if _, err := client.Configure(t.Context(), &pulumirpc.ConfigureRequest{Args: wire(t, config)}); err != nil {
		t.Fatal(err)
	}
	return engine{t, client}
}

// serve starts an API and an engine for it.
func serve(t *testing.T) (*api, engine) {
	t.Helper()
	a := newAPI()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	return a, open(t, providertest.Inputs{"httpEndpoint": server.URL})
}

func wire(t *testing.T, in providertest.Inputs) *structpb.Struct {
	t.Helper()
	bag := resource.PropertyMap{}
	for name, v := range in {
		bag[resource.PropertyKey(name)] = resource.NewPropertyValue(v)
	}
	s, err := plugin.MarshalProperties(bag, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func unwire(t *testing.T, s *structpb.Struct) resource.PropertyMap {
	t.Helper()
	m, err := plugin.UnmarshalProperties(s, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (e engine) create(in providertest.Inputs) (string, *structpb.Struct, error) {
	resp, err := e.Create(e.t.Context(), &pulumirpc.CreateRequest{Urn: urn, Properties: wire(e.t, in)})
	return resp.GetId(), resp.GetProperties(), err
}

func (e engine) mustCreate(in providertest.Inputs) (string, *structpb.Struct) {
	e.t.Helper()
	id, out, err := e.create(in)
	if err != nil {
		e.t.Fatal(err)
	}
	return id, out
}

func (e engine) update(id string, olds providertest.Inputs, out *structpb.Struct, news providertest.Inputs) error {
	_, err := e.Update(e.t.Context(), &pulumirpc.UpdateRequest{Urn: urn, Id: id, OldInputs: wire(e.t, olds), Olds: out,
		News: wire(e.t, news)})
	return err
}

func (e engine) remove(id string, in providertest.Inputs, out *structpb.Struct) error {
	_, err := e.Delete(e.t.Context(), &pulumirpc.DeleteRequest{Urn: urn, Id: id, OldInputs: wire(e.t, in),
		Properties: out})
	return err
}

func (e engine) read(id string, in providertest.Inputs, out *structpb.Struct) (string, resource.PropertyMap) {
	e.t.Helper()
	var trailer metadata.MD
	resp, err := e.Read(e.t.Context(), &pulumirpc.ReadRequest{Urn: urn, Id: id, Inputs: wire(e.t, in), Properties: out},
		grpc.Trailer(&trailer))
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.Join(trailer.Get(provider.OwnershipTrailer), ","), unwire(e.t, resp.GetInputs())
}

// over returns inputs with others in their place.
func over(in, others providertest.Inputs) providertest.Inputs {
	all := maps.Clone(in)
	maps.Copy(all, others)
	return all
}

func TestOnlyTheDifferenceIsSentAndNothingIfThereIsNone(t *testing.T) {
	a, e := serve(t)
	was := record("records", providertest.Inputs{"name": "it", "properties": map[string]any{
		"size": 1, "note": "x", "labels": map[string]any{"team": "web", "tier": "1"}}})
	id, out := e.mustCreate(was)
	a.mu.Lock()
	a.records["/records/it"]["added"] = "by the server"
	var sent string
	a.answer = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodPatch {
			body, _ := io.ReadAll(r.Body)
			sent = string(body)
			r.Body = io.NopCloser(strings.NewReader(sent))
		}
		return false
	}
	a.mu.Unlock()
	a.made()
	if err := e.update(id, was, out, was); err != nil {
		t.Fatal(err)
	}
	if made := a.made(); !slices.Equal(made, []string{"GET /records/it"}) {
		t.Errorf("without a difference the requests are %q", made)
	}
	now := over(was, providertest.Inputs{"properties": map[string]any{
		"size": 1, "labels": map[string]any{"team": "ops", "tier": "1"}}})
	if err := e.update(id, was, out, now); err != nil {
		t.Fatal(err)
	}
	if want := `{"labels":{"team":"ops"},"note":null}`; sent != want {
		t.Errorf("the update sends %s, not %s", sent, want)
	}
	if left := a.things()["/records/it"].(map[string]any); left["added"] == nil || left["note"] != nil {
		t.Errorf("the API has %v", left)
	}
}

func TestWhatIsReadIsReportedAsFarAsItIsDeclared(t *testing.T) {
	a, e := serve(t)
	in := record("records", providertest.Inputs{"name": "it", "properties": map[string]any{
		"size": 1, "gone": true, "none": []any{}, "empty": map[string]any{}, "list": []any{map[string]any{"a": 1}}}})
	id, out := e.mustCreate(in)
	a.records["/records/it"] = map[string]any{"size": 7, "added": true,
		"list": []any{map[string]any{"a": 1, "b": 2}, map[string]any{"c": 3}}}
	ownership, found := e.read(id, in, out)
	want := `{"empty":{},"list":[{"a":1},{"c":3}],"none":[],"size":7}`
	if got, _ := json.Marshal(found["properties"].Mappable()); ownership != "owned" || string(got) != want {
		t.Errorf("it is %s with %s, not %s", ownership, got, want)
	}
	delete(a.records, "/records/it")
	if ownership, _ := e.read(id, in, out); ownership != "absent" {
		t.Errorf("what is gone is %q", ownership)
	}
}

func TestPreviewsAndReadsSendNothingButGET(t *testing.T) {
	a, e := serve(t)
	for _, in := range []providertest.Inputs{
		record("records", providertest.Inputs{"name": "it", "properties": map[string]any{"size": 1}}),
		user(providertest.Inputs{"name": "it", "properties": map[string]any{"login": "me"}}),
	} {
		if _, err := e.Create(t.Context(), &pulumirpc.CreateRequest{Urn: urn, Properties: wire(t, in),
			Preview: true}); err != nil {
			t.Fatal(err)
		}
		if made := a.made(); len(made) > 0 {
			t.Errorf("a preview sends %q", made)
		}
		e.read("", in, nil)
		for _, request := range a.made() {
			if !strings.HasPrefix(request, "GET ") {
				t.Errorf("a read sends %q", request)
			}
		}
	}
}

func TestWithoutAMarkALostCreateIsKnownByWhatItHasMade(t *testing.T) {
	_, e := serve(t)
	in := user(providertest.Inputs{"name": "it", "mark": nil, "properties": map[string]any{"login": "me", "size": 1}})
	id, out := e.mustCreate(in)
	if again, _ := e.mustCreate(in); again != id {
		t.Errorf("the second attempt made %s, not %s", again, id)
	}
	if ownership, _ := e.read("", in, nil); ownership != "undecidable" {
		t.Errorf("before a create it is %s", ownership)
	}
	other := over(in, providertest.Inputs{"properties": map[string]any{"login": "me", "size": 2}})
	_, _, err := e.create(other)
	if status.Code(err) != codes.AlreadyExists || !strings.Contains(err.Error(), "import: "+id) {
		t.Errorf("what is there and is otherwise: %v", err)
	}
	if err := e.update(id, in, out, other); err != nil {
		t.Errorf("an update with its ID: %v", err)
	}
}

func TestWithoutAnUpdateAChangeReplacesAndTheOldOneIsDeletedFirst(t *testing.T) {
	_, e := serve(t)
	in := record("records", providertest.Inputs{"name": "it", "properties": map[string]any{"size": 1}})
	fixed := over(in, providertest.Inputs{"update": nil})
	unknown := resource.MakeComputed(resource.NewProperty(""))
	cases := map[string]struct {
		was, is  providertest.Inputs
		replaces []string
	}{
		"an update": {in, over(in, providertest.Inputs{"properties": map[string]any{"size": 2}}), nil},
		"no update": {fixed, over(fixed, providertest.Inputs{"properties": map[string]any{"size": 2}}),
			[]string{"properties"}},
		"a name":     {in, over(in, providertest.Inputs{"name": "other"}), []string{"name"}},
		"an output":  {fixed, over(fixed, providertest.Inputs{"outputs": map[string]any{"a": "b"}}), nil},
		"an unknown": {fixed, over(fixed, providertest.Inputs{"properties": unknown}), []string{"properties"}},
	}
	for name, c := range cases {
		d, err := e.Diff(t.Context(), &pulumirpc.DiffRequest{Urn: urn, Id: "it", OldInputs: wire(t, c.was),
			News: wire(t, c.is)})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(d.GetReplaces(), c.replaces) || d.GetDeleteBeforeReplace() != (c.replaces != nil) ||
			len(d.GetDiffs()) != 1 {
			t.Errorf("%s: %v", name, d)
		}
	}
}

func TestAnIDIsTakenDigitByDigitAndTheLookupFindsItWhereTheAnswerHasNone(t *testing.T) {
	const id = "9007199254740993"
	made := false
	e := answering(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			made = true
			w.WriteHeader(http.StatusCreated)
		case r.URL.Path == "/users" && made:
			w.Header().Set("Link", `</users?page=2>; rel="prev", </others>; rel="next"`)
			_, _ = io.WriteString(w, `[{"id":1,"login":"you"}]`)
		case r.URL.Path == "/others":
			_, _ = io.WriteString(w, `[{"id":`+id+`,"login":"me"}]`)
		case r.URL.Path == "/users":
			_, _ = io.WriteString(w, `[]`)
		default:
			_, _ = io.WriteString(w, `{"id":`+id+`,"login":"me"}`)
		}
	})
	in := user(providertest.Inputs{"name": "it", "mark": nil, "envelope": nil, "properties": map[string]any{"login": "me"},
		"lookup": map[string]any{"path": "/users", "match": map[string]any{"login": "me"}}})
	if got, _ := e.mustCreate(in); got != id {
		t.Errorf("the ID is %s, not %s", got, id)
	}
}

func TestOutputsAreWhatTheirPathsLeadToWithItsType(t *testing.T) {
	a, e := serve(t)
	in := record("records", providertest.Inputs{"name": "it", "outputs": map[string]any{
		"first": "list[0].a", "dotted": `labels["a.b"]`, "on": "on", "whole": "list", "none": "x.y", "beyond": "list[9]",
		"no list": "labels[0]", "no object": "list.a", "of a text": "text.a"}})
	a.records["/records/it"] = map[string]any{"list": []any{map[string]any{"a": 1.5}}, "on": true, "text": "t",
		"labels": map[string]any{"a.b": "c"}}
	_, out := e.mustCreate(in)
	got, _ := json.Marshal(unwire(t, out)["result"].Mappable())
	if want := `{"dotted":"c","first":1.5,"on":true,"whole":[{"a":1.5}]}`; string(got) != want {
		t.Errorf("the outputs are %s, not %s", got, want)
	}
}

func TestAnImportNeedsTheDeclarationAndTakesTheNameFromTheID(t *testing.T) {
	a, e := serve(t)
	a.records["/records/old"] = map[string]any{"size": 1}
	if _, err := e.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urn, Id: "old"}); err == nil ||
		!strings.Contains(err.Error(), "declare it in the program") {
		t.Errorf("without a declaration: %v", err)
	}
	in := record("records", providertest.Inputs{"name": "it", "properties": map[string]any{"size": 2}})
	ownership, found := e.read("old", in, nil)
	if name := found["name"].StringValue(); ownership != "owned" || name != "old" {
		t.Errorf("%q is %s", name, ownership)
	}
}

func TestAnEnvelopeWithNullHasNothing(t *testing.T) {
	e := answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"data":null}`) })
	in := record("records", providertest.Inputs{"name": "it", "envelope": "data"})
	if ownership, _ := e.read("it", in, nil); ownership != "absent" {
		t.Errorf("it is %s", ownership)
	}
	e = answering(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, `{"error":"no"}`) })
	if _, _, err := e.create(in); err == nil || !strings.Contains(err.Error(), `nothing at envelope "data"`) {
		t.Errorf("without an envelope: %v", err)
	}
}

func TestACreateWhoseIDIsNotFoundIsUnknownAndOneOfWhatExistsAlreadySaysWhatTheServerSays(t *testing.T) {
	code := http.StatusCreated
	e := answering(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, `{"data":{"said":"the mail is taken"}}`)
			return
		}
		_, _ = io.WriteString(w, `{"items":[],"page":{}}`)
	})
	in := user(providertest.Inputs{"name": "it", "properties": map[string]any{"login": "me"}})
	_, _, err := e.create(in)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), `no ID at "id"`) {
		t.Errorf("without an ID: %v", err)
	}
	code = http.StatusConflict
	_, _, err = e.create(in)
	if status.Code(err) != codes.Unknown || !strings.Contains(err.Error(), "the mail is taken") {
		t.Errorf("what exists otherwise: %v", err)
	}
}

// answering starts a server and an engine for it.
func answering(t *testing.T, handler http.HandlerFunc) engine {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return open(t, providertest.Inputs{"httpEndpoint": server.URL,
		"httpHeaders": providertest.Secret(`{"Authorization": "Bearer token-of-the-api"}`)}) // as a setting is
}
