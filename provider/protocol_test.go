package provider_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// box is a product with everything: it keeps what it makes in memory.
type box struct {
	mu      sync.Mutex
	region  string
	made    map[string]boxIn
	next    error // what the next Reconcile fails with
	nextID  string
	entered chan struct{} // closed when a Reconcile that waits has begun
	olds    *boxIn // of the last Reconcile
}

type boxConfig struct {
	Region string `pulumi:"region,optional"`
	Limit  int    `pulumi:"limit,optional"`
	Token  string `pulumi:"token,optional,secret"`
}

type boxIn struct {
	Name   string            `pulumi:"name,autoname,replace" doc:"Its name."`
	Size   int               `pulumi:"size"`
	Color  string            `pulumi:"color" default:"red"`
	Labels map[string]string `pulumi:"labels,optional"`
	Key    string            `pulumi:"key,optional,secret"`
	Wait   bool              `pulumi:"wait,optional"`
}

type boxOut struct {
	boxIn
	Place  string `pulumi:"place,stable"`
	Weight int    `pulumi:"weight"`
	Log    string `pulumi:"log,inherit"`
}

func (b *box) Naming() provider.Naming {
	return provider.Naming{MaxLen: 20, Alphabet: "abcdefghijklmnopqrstuvwxyz0123456789-"}
}

func (b *box) Check(_ context.Context, in provider.Inputs[boxIn]) []provider.Failure {
	if in.Known("size") && in.Value.Size < 0 {
		return []provider.Failure{{Property: "size", Reason: "must not be negative"}}
	}
	return nil
}

func (b *box) Reconcile(ctx context.Context, r provider.Request[boxIn, boxOut]) (string, boxOut, error) {
	if r.News.Wait {
		close(b.entered)
		<-ctx.Done()
		return "", boxOut{}, ctx.Err()
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		return b.nextID, boxOut{boxIn: r.News, Place: "half"}, b.next
	}
	b.made[r.News.Name], b.olds = r.News, r.Olds
	return r.News.Name, boxOut{boxIn: r.News, Place: b.region, Weight: r.News.Size * 2, Log: "made"}, nil
}

func (b *box) Read(_ context.Context, l provider.Lookup[boxIn, boxOut]) (provider.Found[boxIn, boxOut], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	in, ok := b.made[l.ID]
	if !ok {
		return provider.Found[boxIn, boxOut]{Ownership: provider.Absent}, nil
	}
	ownership := provider.Owned
	if l.Name() != "crate" {
		ownership = provider.Unowned
	}
	return provider.Found[boxIn, boxOut]{Ownership: ownership, ID: l.ID, Inputs: in,
		Output: boxOut{boxIn: in, Place: b.region}}, nil
}

func (b *box) Delete(_ context.Context, e provider.Existing[boxIn, boxOut]) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.made, e.ID)
	return nil
}

func boxPackage(b *box) provider.Package {
	return provider.Package{Name: "toy", Version: "1.2.3", Modules: []provider.Module{{
		Config: provider.Configured(func(_ context.Context, c boxConfig) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.region = c.Region
			return nil
		}),
		Resources: []provider.Resource{provider.NewResource("toy:box:Box", b)},
		Functions: []provider.Function{provider.NewFunction("toy:box:double", "Doubles.",
			func(_ context.Context, in struct {
				N int `pulumi:"n"`
			}) (struct {
				N int `pulumi:"n"`
			}, error) {
				in.N *= 2
				return in, nil
			})},
	}}}
}

const urnText = "urn:pulumi:dev::proj::toy:box:Box::crate"

func start(t *testing.T) (*box, pulumirpc.ResourceProviderClient) {
	t.Helper()
	b := &box{made: map[string]boxIn{}, entered: make(chan struct{})}
	client, stop, err := provider.Client(provider.Server(boxPackage(b)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if _, err := client.Handshake(t.Context(), &pulumirpc.ProviderHandshakeRequest{}); err != nil {
		t.Fatal(err)
	}
	_, err = client.Configure(t.Context(), &pulumirpc.ConfigureRequest{
		Args: bag(t, resource.PropertyMap{"region": str("moon")})})
	if err != nil {
		t.Fatal(err)
	}
	return b, client
}

func str(s string) resource.PropertyValue  { return resource.NewProperty(s) }
func num(n float64) resource.PropertyValue { return resource.NewProperty(n) }

var unknown = resource.MakeComputed(resource.NewProperty(""))

func bag(t *testing.T, m resource.PropertyMap) *structpb.Struct {
	t.Helper()
	s, err := plugin.MarshalProperties(m, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func unbag(t *testing.T, s *structpb.Struct) resource.PropertyMap {
	t.Helper()
	m, err := plugin.UnmarshalProperties(s, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func check(
	t *testing.T, c pulumirpc.ResourceProviderClient, olds, news resource.PropertyMap,
) (resource.PropertyMap, []string) {
	t.Helper()
	req := &pulumirpc.CheckRequest{Urn: urnText, News: bag(t, news), RandomSeed: []byte("seed")}
	if olds != nil {
		req.Olds = bag(t, olds)
	}
	resp, err := c.Check(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, f := range resp.GetFailures() {
		failed = append(failed, f.GetProperty())
	}
	return unbag(t, resp.GetInputs()), failed
}

func TestCheckNamesByTheSeedAndFillsDefaultsAndMarksSecrets(t *testing.T) {
	_, c := start(t)
	news := resource.PropertyMap{"size": num(1), "key": str("k")}
	got, failed := check(t, c, nil, news)
	again, _ := check(t, c, nil, news)
	name := got["name"].StringValue()
	if len(failed) > 0 || !strings.HasPrefix(name, "crate-") || again["name"].StringValue() != name {
		t.Errorf("name %q, then %q; failures %v", name, again["name"], failed)
	}
	if got["color"].StringValue() != "red" || !got["key"].IsSecret() {
		t.Errorf("checked inputs are %v", got)
	}
	kept, _ := check(t, c, resource.PropertyMap{"name": str("was")}, news)
	if kept["name"].StringValue() != "was" {
		t.Errorf("a resource that has a name got another: %v", kept["name"])
	}
}

func TestCheckReportsEveryViolationAtOnce(t *testing.T) {
	_, c := start(t)
	_, failed := check(t, c, nil, resource.PropertyMap{"Color": str("x"), "labels": num(1), "name": num(2)})
	slices.Sort(failed)
	if want := []string{"Color", "labels", "name", "size"}; !slices.Equal(failed, want) {
		t.Errorf("failures %v, want %v", failed, want)
	}
	if _, failed := check(t, c, nil, resource.PropertyMap{"size": num(-1)}); !slices.Equal(failed, []string{"size"}) {
		t.Errorf("failures %v", failed)
	}
	if _, failed := check(t, c, nil, resource.PropertyMap{"size": unknown}); failed != nil {
		t.Errorf("an unknown value was judged: %v", failed)
	}
}

func TestAutomaticNamesFollowTheEngineWhereItHasAnOpinion(t *testing.T) {
	_, c := start(t)
	req := &pulumirpc.CheckRequest{Urn: urnText, News: bag(t, resource.PropertyMap{"size": num(1)}),
		Autonaming: &pulumirpc.CheckRequest_AutonamingOptions{
			Mode: pulumirpc.CheckRequest_AutonamingOptions_ENFORCE, ProposedName: "exactly"}}
	resp, err := c.Check(t.Context(), req)
	if err != nil || unbag(t, resp.GetInputs())["name"].StringValue() != "exactly" {
		t.Errorf("%v %v", resp, err)
	}
	req.Autonaming = &pulumirpc.CheckRequest_AutonamingOptions{Mode: pulumirpc.CheckRequest_AutonamingOptions_DISABLE}
	resp, err = c.Check(t.Context(), req)
	if err != nil || len(resp.GetFailures()) != 1 {
		t.Errorf("%v %v", resp, err)
	}
}

func TestDiffTellsUpdatesFromReplacementsDownToThePath(t *testing.T) {
	_, c := start(t)
	base := resource.PropertyMap{"name": str("a"), "size": num(1),
		"labels": resource.NewProperty(resource.PropertyMap{"k": str("1")})}
	cases := map[string]struct {
		change   resource.PropertyMap
		detailed map[string]pulumirpc.PropertyDiff_Kind
		replaces []string
	}{
		"nothing": {resource.PropertyMap{}, map[string]pulumirpc.PropertyDiff_Kind{}, nil},
		"only secrecy": {resource.PropertyMap{"size": resource.MakeSecret(num(1))},
			map[string]pulumirpc.PropertyDiff_Kind{}, nil},
		"a value": {resource.PropertyMap{"size": num(2)},
			map[string]pulumirpc.PropertyDiff_Kind{"size": pulumirpc.PropertyDiff_UPDATE}, nil},
		"a value that replaces": {resource.PropertyMap{"name": str("b")},
			map[string]pulumirpc.PropertyDiff_Kind{"name": pulumirpc.PropertyDiff_UPDATE_REPLACE}, []string{"name"}},
		"a key of a map": {resource.PropertyMap{"labels": resource.NewProperty(
			resource.PropertyMap{"k": str("1"), "l": str("2")})}, map[string]pulumirpc.PropertyDiff_Kind{
			"labels.l": pulumirpc.PropertyDiff_ADD}, nil},
		"a value that is unknown yet": {resource.PropertyMap{"size": unknown},
			map[string]pulumirpc.PropertyDiff_Kind{"size": pulumirpc.PropertyDiff_UPDATE}, nil},
		"an unknown value that replaces": {resource.PropertyMap{"name": unknown},
			map[string]pulumirpc.PropertyDiff_Kind{"name": pulumirpc.PropertyDiff_UPDATE_REPLACE}, []string{"name"}},
		"an addition that is unknown yet": {resource.PropertyMap{"color": unknown},
			map[string]pulumirpc.PropertyDiff_Kind{"color": pulumirpc.PropertyDiff_ADD}, nil},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			news := base.Copy()
			for k, v := range tc.change {
				news[k] = v
			}
			resp, err := c.Diff(t.Context(), &pulumirpc.DiffRequest{Urn: urnText, Id: "a", OldInputs: bag(t, base),
				Olds: bag(t, base), News: bag(t, news)})
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]pulumirpc.PropertyDiff_Kind{}
			for path, d := range resp.GetDetailedDiff() {
				got[path] = d.GetKind()
			}
			if len(got) != len(tc.detailed) || !slices.Equal(resp.GetReplaces(), tc.replaces) {
				t.Errorf("diff %v replaces %v", got, resp.GetReplaces())
			}
			for path, kind := range tc.detailed {
				if got[path] != kind {
					t.Errorf("%s is %v, want %v", path, got[path], kind)
				}
			}
			if some := resp.GetChanges() == pulumirpc.DiffResponse_DIFF_SOME; some != (len(tc.detailed) > 0) {
				t.Errorf("changes are %v", resp.GetChanges())
			}
		})
	}
}

func TestAPreviewMakesNothingAndSaysWhatIsKnown(t *testing.T) {
	b, c := start(t)
	in := resource.PropertyMap{"name": str("a"), "size": unknown, "color": str("red"),
		"key": resource.MakeSecret(str("k"))}
	resp, err := c.Create(t.Context(), &pulumirpc.CreateRequest{Urn: urnText, Properties: bag(t, in), Preview: true})
	if err != nil {
		t.Fatal(err)
	}
	out := unbag(t, resp.GetProperties())
	if out["name"].StringValue() != "a" || !out["size"].IsComputed() || !out["place"].ContainsUnknowns() ||
		!out["key"].IsSecret() || len(b.made) > 0 {
		t.Errorf("create: %v, made %v", out, b.made)
	}
	update, err := c.Update(t.Context(), &pulumirpc.UpdateRequest{Urn: urnText, Id: "a", News: bag(t, in),
		OldInputs: bag(t, in), Preview: true,
		Olds: bag(t, resource.PropertyMap{"place": str("moon"), "weight": num(1)})})
	if err != nil {
		t.Fatal(err)
	}
	out = unbag(t, update.GetProperties())
	if out["place"].StringValue() != "moon" || !out["weight"].IsComputed() || len(b.made) > 0 {
		t.Errorf("update: %v", out)
	}
}

func TestOutputsAreSecretWhereInputsAre(t *testing.T) {
	_, c := start(t)
	resp, err := c.Create(t.Context(), &pulumirpc.CreateRequest{Urn: urnText,
		Properties: bag(t, resource.PropertyMap{"name": str("a"), "size": resource.MakeSecret(num(2)),
			"color": str("red")})})
	if err != nil {
		t.Fatal(err)
	}
	out := unbag(t, resp.GetProperties())
	if !out["size"].IsSecret() || !out["log"].IsSecret() || out["weight"].IsSecret() ||
		out["place"].StringValue() != "moon" {
		t.Errorf("outputs %v", out)
	}
}

func TestErrorsSayWhatBecameOfTheCall(t *testing.T) {
	b, c := start(t)
	cases := map[string]struct {
		err  error
		id   string
		code codes.Code
	}{
		"a refusal is plain": {errors.New("no"), "", codes.Unknown},
		"not done is to be tried again": {&provider.NotDone{Err: errors.New("slow"), RetryAfter: time.Second},
			"", codes.ResourceExhausted},
		"a lost answer is unknown": {&provider.Unknown{Err: errors.New("reset")}, "", codes.Unavailable},
		"somebody else's thing is left alone": {&provider.Foreign{Thing: "box a", Owner: "stack x/y", ID: "a"}, "",
			codes.AlreadyExists},
		"a thing that is there in part is there": {errors.New("half"), "a", codes.Unknown},
		"a thing whose rest was not done": {&provider.NotDone{Err: errors.New("slow"), RetryAfter: time.Second},
			"a", codes.Unknown},
		"a thing whose rest is unknown":    {&provider.Unknown{Err: errors.New("reset")}, "a", codes.Unknown},
		"a thing whose rest was cancelled": {context.Canceled, "a", codes.Unknown},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			b.next, b.nextID = tc.err, tc.id
			_, err := c.Create(t.Context(), &pulumirpc.CreateRequest{Urn: urnText,
				Properties: bag(t, resource.PropertyMap{"name": str("a"), "size": num(2), "color": str("red")})})
			s := status.Convert(err)
			if s.Code() != tc.code || !strings.Contains(s.Message(), tc.err.Error()) {
				t.Fatalf("got %v", err)
			}
			for _, detail := range s.Details() {
				switch d := detail.(type) {
				case *errdetails.RetryInfo:
					if d.GetRetryDelay().AsDuration() != time.Second {
						t.Errorf("retry after %v", d.GetRetryDelay())
					}
				case *pulumirpc.ErrorResourceInitFailed:
					if d.GetId() != "a" || unbag(t, d.GetProperties())["place"].StringValue() != "half" {
						t.Errorf("partial state %v", d)
					}
				}
			}
			wantDetail := strings.HasPrefix(name, "a thing") || name == "not done is to be tried again"
			if (len(s.Details()) == 1) != wantDetail {
				t.Errorf("details %v", s.Details())
			}
		})
	}
}

func TestAnUpdateThatIsNotDoneOrUnknownIsSoThoughItSaysTheID(t *testing.T) {
	b, c := start(t)
	in := bag(t, resource.PropertyMap{"name": str("a"), "size": num(2), "color": str("red")})
	for want, err := range map[codes.Code]error{
		codes.ResourceExhausted: &provider.NotDone{Err: errors.New("slow")},
		codes.Unavailable:       &provider.Unknown{Err: errors.New("reset")},
	} {
		b.next, b.nextID = err, "a"
		if _, err := c.Update(t.Context(), &pulumirpc.UpdateRequest{Urn: urnText, Id: "a", OldInputs: in,
			News: in}); status.Code(err) != want {
			t.Errorf("want %s, got %v", want, err)
		}
	}
}

func TestCancelEndsWhatRuns(t *testing.T) {
	b, c := start(t)
	done := make(chan error, 1)
	go func() {
		_, err := c.Create(context.Background(), &pulumirpc.CreateRequest{Urn: urnText,
			Properties: bag(t, resource.PropertyMap{"name": str("a"), "size": num(2), "color": str("red"),
				"wait": resource.NewProperty(true)})})
		done <- err
	}()
	<-b.entered
	if _, err := c.Cancel(t.Context(), &emptypb.Empty{}); err != nil {
		t.Fatal(err)
	}
	if err := <-done; status.Code(err) != codes.Canceled {
		t.Errorf("ended with %v", err)
	}
}

func TestATimeoutOfTheEngineEndsTheCall(t *testing.T) {
	_, c := start(t)
	_, err := c.Create(t.Context(), &pulumirpc.CreateRequest{Urn: urnText, Timeout: 0.05,
		Properties: bag(t, resource.PropertyMap{"name": str("a"), "size": num(2), "color": str("red"),
			"wait": resource.NewProperty(true)})})
	if status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("ended with %v", err)
	}
}

func TestReadAnswersWithOwnershipAndKeepsWhatIsAsRemembered(t *testing.T) {
	b, c := start(t)
	b.made["a"] = boxIn{Name: "a", Size: 1, Color: "blue"}
	var trailer metadata.MD
	resp, err := c.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urnText, Id: "a",
		Inputs: bag(t, resource.PropertyMap{"name": str("a"), "size": resource.MakeSecret(num(1)),
			"color": str("red")}),
	}, grpc.Trailer(&trailer))
	if err != nil {
		t.Fatal(err)
	}
	in := unbag(t, resp.GetInputs())
	if in["color"].StringValue() != "blue" || !in["size"].IsSecret() || resp.GetId() != "a" {
		t.Errorf("inputs %v", in)
	}
	if got := trailer.Get(provider.OwnershipTrailer); !slices.Equal(got, []string{"owned"}) {
		t.Errorf("ownership %v", got)
	}
	_, err = c.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urnText + "2", Id: "a"}, grpc.Trailer(&trailer))
	if got := trailer.Get(provider.OwnershipTrailer); err != nil || !slices.Equal(got, []string{"unowned"}) {
		t.Errorf("ownership %v, %v", got, err)
	}
	resp, err = c.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urnText, Id: "gone"}, grpc.Trailer(&trailer))
	if got := trailer.Get(provider.OwnershipTrailer); err != nil || resp.GetId() != "" ||
		!slices.Equal(got, []string{"absent"}) {
		t.Errorf("%v, ownership %v, %v", resp, got, err)
	}
}

// TestAfterAnAdoptionTheOldInputsAreThoseThatWereFound has a box that nothing is remembered of: what it has, and the
// program does not declare, is what Reconcile takes away.
func TestAfterAnAdoptionTheOldInputsAreThoseThatWereFound(t *testing.T) {
	b, c := start(t)
	b.made["a"] = boxIn{Name: "a", Size: 1, Color: "blue"}
	found, err := c.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urnText, Id: "a"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Update(t.Context(), &pulumirpc.UpdateRequest{Urn: urnText, Id: "a", OldInputs: found.GetInputs(),
		Olds: found.GetProperties(), News: bag(t, resource.PropertyMap{"name": str("a"), "size": num(1)}),
	}); err != nil {
		t.Fatal(err)
	}
	if b.olds == nil || b.olds.Color != "blue" {
		t.Errorf("the old inputs are %+v", b.olds)
	}
}

func TestConfigurationIsCheckedByTypeAndKeepsTheEnginesOwn(t *testing.T) {
	_, c := start(t)
	resp, err := c.CheckConfig(t.Context(), &pulumirpc.CheckRequest{News: bag(t, resource.PropertyMap{
		"limit": str("many"), "regoin": str("x"), "version": str("1.0.0"), "token": str("t")})})
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, f := range resp.GetFailures() {
		failed = append(failed, f.GetProperty())
	}
	slices.Sort(failed)
	in := unbag(t, resp.GetInputs())
	if !slices.Equal(failed, []string{"limit", "regoin"}) || in["version"].StringValue() != "1.0.0" ||
		!in["token"].IsSecret() {
		t.Errorf("failures %v, inputs %v", failed, in)
	}
	resp, err = c.CheckConfig(t.Context(), &pulumirpc.CheckRequest{
		News: bag(t, resource.PropertyMap{"limit": str("3")})})
	if err != nil || len(resp.GetFailures()) > 0 {
		t.Errorf("%v %v", resp, err)
	}
}

func TestTheSchemaAndTheRulesAreAnswered(t *testing.T) {
	_, c := start(t)
	schema, err := c.GetSchema(t.Context(), &pulumirpc.GetSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	var spec struct {
		Resources map[string]struct {
			InputProperties map[string]map[string]any
			RequiredInputs  []string
			Required        []string
		}
	}
	if err := json.Unmarshal([]byte(schema.GetSchema()), &spec); err != nil {
		t.Fatal(err)
	}
	r := spec.Resources["toy:box:Box"]
	if !slices.Equal(r.RequiredInputs, []string{"size"}) || r.InputProperties["key"]["secret"] != true ||
		r.InputProperties["color"]["default"] != "red" || !slices.Contains(r.Required, "name") {
		t.Errorf("schema %+v", r)
	}
	rules, err := c.GetMapping(t.Context(), &pulumirpc.GetMappingRequest{Key: provider.SettleMapping})
	if err != nil || string(rules.GetData()) != `{"toy:box:Box":"reconcile"}` {
		t.Errorf("rules %s, %v", rules.GetData(), err)
	}
}

func TestAFunctionAnswers(t *testing.T) {
	_, c := start(t)
	resp, err := c.Invoke(t.Context(), &pulumirpc.InvokeRequest{Tok: "toy:box:double",
		Args: bag(t, resource.PropertyMap{"n": num(21)})})
	if err != nil || unbag(t, resp.GetReturn())["n"].NumberValue() != 42 {
		t.Errorf("%v %v", resp, err)
	}
	resp, err = c.Invoke(t.Context(), &pulumirpc.InvokeRequest{Tok: "toy:box:double",
		Args: bag(t, resource.PropertyMap{})})
	if err != nil || len(resp.GetFailures()) != 1 {
		t.Errorf("%v %v", resp, err)
	}
}

func TestNamesAreLegalWhateverTheLogicalNameIs(t *testing.T) {
	n := provider.Naming{MaxLen: 20, Alphabet: "abcdefghijklmnopqrstuvwxyz0123456789-"}
	for _, logical := range []string{"Site", "a/b c", "ünï", strings.Repeat("long", 50), "", "---"} {
		name, err := provider.Name([]byte("s"), logical, n)
		if err != nil || len(name) > 20 || strings.Trim(name, n.Alphabet) != "" || strings.HasPrefix(name, "-") {
			t.Errorf("%q became %q, %v", logical, name, err)
		}
	}
	one, _ := provider.Name([]byte("s"), "a", n)
	two, _ := provider.Name([]byte("t"), "a", n)
	if one == two {
		t.Error("two seeds gave one name")
	}
}
