package fakeprovider_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

func TestTheSchemaNamesEveryType(t *testing.T) {
	p := start(t)
	res, err := p.GetSchema(t.Context(), &rpc.GetSchemaRequest{})
	ok(t, err)
	var schema struct{ Resources, Functions map[string]any }
	ok(t, json.Unmarshal([]byte(res.Schema), &schema))
	if len(schema.Resources) != 11 || len(schema.Functions) != 3 {
		t.Errorf("schema: %s", res.Schema)
	}
	info, err := p.GetPluginInfo(t.Context(), &emptypb.Empty{})
	ok(t, err)
	if info.Version != "0.1.0" {
		t.Errorf("version %s", info.Version)
	}
}

func TestCheckReportsEveryFailureAtOnce(t *testing.T) {
	p := start(t)
	_, failures := p.check("Named", nil, props{"name": "", "size": -1, "zone": "nowhere", "blobSize": 1.5, "sise": 1})
	if got := strings.Join(failures, " "); got != "sise name size zone blobSize" {
		t.Errorf("failures of: %s", got)
	}
	_, failures = p.check("Named", nil, props{})
	if got := strings.Join(failures, " "); got != "name" {
		t.Errorf("failures of: %s", got)
	}
}

func TestCheckFillsInDefaultsKeepsUnknownsAndMarksSecrets(t *testing.T) {
	p := start(t)
	in, failures := p.check("Named", nil, props{"name": resource.Computed{Element: resource.NewProperty("")},
		"secretText": "hush"})
	if len(failures) > 0 {
		t.Fatalf("failures of %v", failures)
	}
	if !in["name"].IsComputed() || !in["secretText"].IsSecret() || in["size"].NumberValue() != 1 ||
		in["zone"].StringValue() != "a" {
		t.Errorf("checked: %v", in)
	}
}

func TestAutonamingFollowsTheSeedAndKeepsTheOldName(t *testing.T) {
	p := start(t)
	first := p.autoname([]byte("seed one"), nil, nil)
	if first != p.autoname([]byte("seed one"), nil, nil) || first == p.autoname([]byte("seed two"), nil, nil) {
		t.Errorf("the name %q does not follow the seed", first)
	}
	if !strings.HasPrefix(first, "res-") || len(first) != len("res-")+7 {
		t.Errorf("the name is %q", first)
	}
	if kept := p.autoname([]byte("seed two"), props{"name": first}, nil); kept != first {
		t.Errorf("%q became %q", first, kept)
	}
	proposal := &rpc.CheckRequest_AutonamingOptions{ProposedName: "ours"}
	if name := p.autoname([]byte("seed one"), nil, proposal); name != "ours" {
		t.Errorf("the proposed name became %q", name)
	}
}

func TestDiffTellsUpdatesFromReplacements(t *testing.T) {
	p := start(t)
	old := props{"name": "n", "size": 1, "zone": "a"}
	for _, c := range []struct {
		typ, name     string
		news          props
		diffs         []string
		replaces, dbr bool
	}{
		{"Named", "the same", props{"name": "n", "size": 1, "zone": "a"}, nil, false, false},
		{"Named", "a secret of the same value", props{"name": "n",
			"size": resource.MakeSecret(resource.NewProperty(1.0)), "zone": "a"}, nil, false, false},
		{"Named", "another size", props{"name": "n", "size": 2, "zone": "a"}, []string{"size"}, false, false},
		{"Named", "another zone", props{"name": "n", "size": 1, "zone": "b"}, []string{"zone"}, true, false},
		{"Named", "an unknown zone", props{"name": "n", "size": 1,
			"zone": resource.MakeComputed(resource.NewProperty(""))}, []string{"zone"}, true, false},
		{"Named", "another zone, deleting first", props{"name": "n", "size": 1, "zone": "b",
			"deleteBeforeReplace": true}, []string{"deleteBeforeReplace", "zone"}, true, true},
		{"Exclusive", "another zone of an Exclusive", props{"name": "n", "size": 1, "zone": "b"}, []string{"zone"},
			true, true},
		{"Exclusive", "another size of an Exclusive", props{"name": "n", "size": 2, "zone": "a"}, []string{"size"},
			false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := p.Diff(t.Context(), &rpc.DiffRequest{Id: "n", Urn: urn(c.typ), OldInputs: bag(t, old),
				Olds: bag(t, old), News: bag(t, c.news)})
			ok(t, err)
			slices.Sort(d.Diffs)
			if !slices.Equal(d.Diffs, c.diffs) || (len(d.Replaces) > 0) != c.replaces ||
				d.DeleteBeforeReplace != c.dbr {
				t.Errorf("diff: %v", d)
			}
		})
	}
}

func TestAThingIsCreatedReadUpdatedAndDeleted(t *testing.T) {
	for _, typ := range []string{"Named", "Exclusive", "Fleet", "Auto", "Tagged", "Server"} {
		t.Run(typ, func(t *testing.T) {
			p := start(t)
			given := props{"secretText": "hush", "blobSize": 100}
			if typ != "Server" && typ != "Tagged" {
				given["name"] = "n"
			}
			in, _ := p.check(typ, nil, given)
			made, err := p.create(typ, in)
			ok(t, err)
			out := unbag(t, made.Properties)
			if made.Id == "" || out["generation"].NumberValue() != 1 || !out["accessKey"].IsSecret() ||
				!out["secretText"].IsSecret() || len(out["blob"].StringValue()) != 100 {
				t.Errorf("created %s: %v", made.Id, out)
			}
			read, err := p.Read(t.Context(), &rpc.ReadRequest{Id: made.Id, Urn: urn(typ), Inputs: bag(t, in),
				Properties: made.Properties})
			ok(t, err)
			if !unbag(t, read.Properties).DeepEquals(out) || !unbag(t, read.Inputs).DeepEquals(in) {
				t.Errorf("read %v\nof %v", read, made)
			}
			news := in.Copy()
			news["size"] = resource.NewProperty(5.0)
			updated, err := p.Update(t.Context(), &rpc.UpdateRequest{Id: made.Id, Urn: urn(typ), Olds: made.Properties,
				News: bag(t, news)})
			ok(t, err)
			if out := unbag(t, updated.Properties); out["generation"].NumberValue() != 2 ||
				out["size"].NumberValue() != 5 {
				t.Errorf("updated: %v", out)
			}
			for range 2 {
				_, err = p.Delete(t.Context(), &rpc.DeleteRequest{Id: made.Id, Urn: urn(typ)})
				ok(t, err)
			}
			gone, err := p.Read(t.Context(), &rpc.ReadRequest{Id: made.Id, Urn: urn(typ)})
			ok(t, err)
			if gone.Id != "" {
				t.Errorf("still there: %v", gone)
			}
		})
	}
}

func TestAPreviewKnowsWhatStaysAndTouchesNothing(t *testing.T) {
	p := start(t)
	in, _ := p.check("Named", nil, props{"name": "n"})
	planned, err := p.Create(t.Context(), &rpc.CreateRequest{Urn: urn("Named"), Properties: bag(t, in), Preview: true})
	ok(t, err)
	if out := unbag(t, planned.Properties); planned.Id != "" || !out["arn"].IsComputed() ||
		out["size"].NumberValue() != 1 {
		t.Errorf("planned: %v", out)
	}
	made, err := p.create("Named", in)
	ok(t, err)
	news := in.Copy()
	news["size"] = resource.NewProperty(5.0)
	changed, err := p.Update(t.Context(), &rpc.UpdateRequest{Id: "n", Urn: urn("Named"), Olds: made.Properties,
		News: bag(t, news), Preview: true})
	ok(t, err)
	if out := unbag(t, changed.Properties); out["arn"].StringValue() != "fake:named:n" ||
		!out["generation"].IsComputed() {
		t.Errorf("planned: %v", out)
	}
}

func TestAFailedInitialisationLeavesTheThing(t *testing.T) {
	p := start(t)
	in, _ := p.check("Named", nil, props{"name": "n", "failInit": true})
	_, err := p.create("Named", in)
	partial := detail[*rpc.ErrorResourceInitFailed](err)
	if partial == nil || partial.Id != "n" || len(partial.Reasons) != 2 ||
		unbag(t, partial.Properties)["arn"].StringValue() != "fake:named:n" {
		t.Fatalf("the error is %v with %v", err, partial)
	}
	delete(in, "failInit")
	_, err = p.Update(t.Context(), &rpc.UpdateRequest{Id: "n", Urn: urn("Named"), Olds: partial.Properties,
		News: bag(t, in)})
	ok(t, err)
}

func TestErrorsSayWhetherTheRequestWasCarriedOut(t *testing.T) {
	for _, c := range []struct {
		name, fault string
		code        codes.Code
		reason      string
		retry       bool
	}{
		{"a 429 is refused", `{"do":"fail","status":429}`, codes.ResourceExhausted, "Injected", false},
		{"a 503 with Retry-After is refused", `{"do":"fail","status":503,"retryAfter":3}`, codes.Unavailable,
			"Injected", true},
		{"a 503 without leaves it open", `{"do":"fail","status":503}`, codes.Unavailable, "Injected", false},
		{"a 500 leaves it open", `{"do":"fail","status":500}`, codes.Internal, "Injected", false},
		{"a 400 is an error", `{"do":"fail","status":400}`, codes.InvalidArgument, "Injected", false},
		{"a dropped connection leaves it open", `{"do":"crash","at":"after"}`, codes.Unavailable, "CONNECTION_LOST",
			false},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := start(t)
			p.admin("PUT", "faults/f", c.fault)
			in, _ := p.check("Named", nil, props{"name": "n"})
			_, err := p.create("Named", in)
			info, retry := detail[*errdetails.ErrorInfo](err), detail[*errdetails.RetryInfo](err)
			if status.Code(err) != c.code || info.GetReason() != c.reason || (retry != nil) != c.retry {
				t.Errorf("%v with %v and %v", err, info, retry)
			}
		})
	}
}

func TestARefusedConnectionMayBeRetried(t *testing.T) {
	p := start(t)
	p.configure(props{"endpoint": "http://127.0.0.1:1"})
	in, _ := p.check("Named", nil, props{"name": "n"})
	_, err := p.create("Named", in)
	if status.Code(err) != codes.Unavailable || detail[*errdetails.ErrorInfo](
		err).GetReason() != "CONNECTION_REFUSED" || detail[*errdetails.RetryInfo](err) == nil {
		t.Errorf("the error is %v", err)
	}
}

func TestATakenNameIsAnError(t *testing.T) {
	p := start(t)
	in, _ := p.check("Named", nil, props{"name": "n"})
	_, err := p.create("Named", in)
	ok(t, err)
	if _, err = p.create("Named", in); status.Code(err) != codes.AlreadyExists {
		t.Errorf("the error is %v", err)
	}
}

func TestACustomTimeoutEndsACreate(t *testing.T) {
	p := start(t)
	p.admin("PUT", "faults/f", `{"do":"hang"}`)
	in, _ := p.check("Named", nil, props{"name": "n"})
	_, err := p.Create(t.Context(), &rpc.CreateRequest{Urn: urn("Named"), Properties: bag(t, in), Timeout: 0.1})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("the error is %v", err)
	}
}

func TestCancelEndsWhatIsUnderWay(t *testing.T) {
	p := start(t)
	p.admin("PUT", "faults/f", `{"do":"hang"}`)
	in, _ := p.check("Named", nil, props{"name": "n"})
	failed := make(chan error, 1)
	go func() { _, err := p.create("Named", in); failed <- err }()
	p.admin("GET", "faults/f/wait?times=1", "")
	_, err := p.Cancel(t.Context(), &emptypb.Empty{})
	ok(t, err)
	if err := <-failed; status.Code(err) != codes.Canceled {
		t.Errorf("the error is %v", err)
	}
}

func TestFunctionsFindThings(t *testing.T) {
	p := start(t)
	in, _ := p.check("Named", nil, props{"name": "n", "size": 3})
	_, err := p.create("Named", in)
	ok(t, err)
	in, _ = p.check("Tagged", nil, props{})
	made, err := p.create("Tagged", in)
	ok(t, err)

	found, err := p.Invoke(t.Context(), &rpc.InvokeRequest{Tok: "fake:index:lookup", Args: bag(t, props{"name": "n"})})
	ok(t, err)
	if out := unbag(t, found.Return); out["id"].StringValue() != "n" || out["size"].NumberValue() != 3 {
		t.Errorf("looked up %v", out)
	}
	missing, err := p.Invoke(t.Context(), &rpc.InvokeRequest{Tok: "fake:index:lookup",
		Args: bag(t, props{"name": "m"})})
	ok(t, err)
	if len(missing.Failures) != 1 || missing.Failures[0].Property != "name" {
		t.Errorf("failures %v", missing.Failures)
	}
	tagged, err := p.Invoke(t.Context(), &rpc.InvokeRequest{Tok: "fake:index:find",
		Args: bag(t, props{"urn": urn("Tagged")})})
	ok(t, err)
	if ids := unbag(t, tagged.Return)["ids"].ArrayValue(); len(ids) != 1 || ids[0].StringValue() != made.Id {
		t.Errorf("found %v", ids)
	}
	stream, err := p.List(t.Context(), &rpc.ListRequest{Token: "fake:index:Tagged",
		Query: bag(t, props{"urn": urn("Tagged")})})
	ok(t, err)
	listed, err := stream.Recv()
	ok(t, err)
	if listed.GetResult().GetId() != made.Id {
		t.Errorf("listed %v", listed)
	}
}

func TestTheTokenIsASecretThatTheCloudMayAskFor(t *testing.T) {
	t.Setenv("FAKECLOUD_TOKEN", "hush")
	p := start(t)
	in, _ := p.check("Named", nil, props{"name": "n"})
	if _, err := p.create("Named", in); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without the token: %v", err)
	}
	checked := p.configure(props{"endpoint": p.cloud, "token": "hush"})
	if !checked["token"].IsSecret() {
		t.Errorf("configuration: %v", checked)
	}
	_, err := p.create("Named", in)
	ok(t, err)
}

func TestAnExtensionAddsItsTypeToTheProcessOnce(t *testing.T) {
	p := start(t)
	check := &rpc.CheckRequest{Urn: "urn:pulumi:dev::proj::fake:index:Gate::g"}
	if _, err := p.Check(t.Context(), check); status.Code(err) != codes.NotFound {
		t.Errorf("before the extension: %v", err)
	}
	extend := func(value string) error {
		_, err := p.Parameterize(t.Context(), &rpc.ParameterizeRequest{Parameters: &rpc.ParameterizeRequest_Value{
			Value: &rpc.ParameterizeRequest_ParametersValue{Name: "gates", Version: "1.0.0", Value: []byte(value)},
		}})
		return err
	}
	ok(t, extend("Gate"))
	if _, err := p.Check(t.Context(), check); err != nil {
		t.Errorf("after the extension: %v", err)
	}
	for value, code := range map[string]codes.Code{"Gate": codes.AlreadyExists, "": codes.InvalidArgument} {
		if err := extend(value); status.Code(err) != code {
			t.Errorf("the extension %q: %v", value, err)
		}
	}
}
