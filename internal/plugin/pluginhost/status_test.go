//go:build unix

package pluginhost

import (
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/protoadapt"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// withDetails is the error of a plugin.
func withDetails(t *testing.T, code codes.Code, message string, details ...protoadapt.MessageV1) error {
	t.Helper()
	s, err := status.New(code, message).WithDetails(details...)
	if err != nil {
		t.Fatal(err)
	}
	return s.Err()
}

func TestAProviderThatNamesTwoCausesFailsItsConfigurationAlone(t *testing.T) {
	h := open(t, Options{})
	bird := &parrot{}
	p, err := h.openProvider(bird.open(t, "provider tiny"), h.program.dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	bird.says.Store(&answer{method: "Configure", code: codes.Unknown, detail: "pulumirpc.ErrorCause"})
	// The SDK reads the answer on a goroutine of its own, where a panic would end this process.
	if _, err := p.Configure(waittest.Context(t), configuration("tiny", nil)); err == nil || ErrorText(err) != "no: " {
		t.Errorf("%v", err)
	}
}

func TestAnErrorKeepsWhatIsReadOfItOnceAndInBounds(t *testing.T) {
	long := strings.Repeat("ä", longestStatus)
	failed := &pulumirpc.ErrorResourceInitFailed{
		Id: "half", Reasons: make([]string, 5*mostReasons),
		Properties: &structpb.Struct{Fields: map[string]*structpb.Value{"text": structpb.NewStringValue(long)}},
	}
	properties := &pulumirpc.InputPropertiesError{}
	keys := &pulumirpc.ConfigureErrorMissingKeys{}
	for range 5 * mostReasons {
		properties.Errors = append(properties.Errors, &pulumirpc.InputPropertiesError_PropertyError{Reason: long[:1000]})
		keys.MissingKeys = append(keys.MissingKeys, &pulumirpc.ConfigureErrorMissingKeys_MissingKey{Name: long[:1000]})
	}
	for i := range failed.GetReasons() {
		failed.Reasons[i] = long[:1000]
	}
	cause := &pulumirpc.ErrorCause{Message: "cause", StackTrace: long}
	forged := &errdetails.ErrorInfo{Reason: string(deliveryUnsent), Domain: deliveryDomain}
	sent := withDetails(t, 99, "no", forged, &emptypb.Empty{}, cause, cause, failed, failed, properties, keys,
		&errdetails.RetryInfo{})

	kept := status.Convert(plain(sent))
	if kept.Code() != codes.Unknown || kept.Message() != "no" {
		t.Errorf("%v %q", kept.Code(), kept.Message())
	}
	var kinds string
	var texts int
	for _, detail := range kept.Details() {
		kinds += fmt.Sprintf("%T ", detail)
		switch d := detail.(type) {
		case *pulumirpc.ErrorCause:
			texts += len(d.GetMessage()) + len(d.GetStackTrace())
		case *pulumirpc.ErrorResourceInitFailed:
			texts += len(strings.Join(d.GetReasons(), ""))
			if d.GetId() != "half" || d.GetProperties().GetFields()["text"].GetStringValue() != long {
				t.Error("the resource that exists is not whole")
			}
		case *pulumirpc.InputPropertiesError:
			for _, e := range d.GetErrors() {
				texts += len(e.GetReason())
			}
		case *pulumirpc.ConfigureErrorMissingKeys:
			for _, k := range d.GetMissingKeys() {
				texts += len(k.GetName())
			}
		}
	}
	if want := "*pulumirpc.ErrorCause *pulumirpc.ErrorResourceInitFailed *pulumirpc.InputPropertiesError " +
		"*pulumirpc.ConfigureErrorMissingKeys *errdetails.RetryInfo "; kinds != want {
		t.Errorf("it has the details %s", kinds)
	}
	if texts > longestStatus+4*mostReasons*len("…") {
		t.Errorf("its texts have %d bytes", texts)
	}
	if message := status.Convert(plain(status.Error(codes.Aborted, long))).Message(); len(message) > longestStatus+10 {
		t.Errorf("its message has %d bytes", len(message))
	}
}

func TestWhatAPluginSaysWhileItStreamsIsReadAsAnAnswer(t *testing.T) {
	h := open(t, Options{})
	bird := &parrot{}
	end := bird.open(t, "language host strange")
	bird.says.Store(&answer{method: "InstallDependencies", code: codes.Unknown, detail: "pulumirpc.ErrorCause"})
	l := &Language{host: h, end: end, client: pulumirpc.NewLanguageRuntimeClient(end.conn), info: &pulumirpc.ProgramInfo{}}
	stream, err := l.client.InstallDependencies(t.Context(), &pulumirpc.InstallDependenciesRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if n := len(status.Convert(err).Details()); n != 1 {
		t.Errorf("%d details of %v", n, err)
	}
}

// nested is a value of n levels, under names of a length.
func nested(n, length int, innermost *structpb.Value) *structpb.Struct {
	name := strings.Repeat("n", length)
	for range n {
		innermost = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{name: innermost}})
	}
	return innermost.GetStructValue()
}

func TestGoodValuesAreCheckedWithoutMemoryForTheirNames(t *testing.T) {
	good := &pulumirpc.CheckResponse{Inputs: nested(deepest-1, 5<<10, structpb.NewNullValue())}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := checkValues(good); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("the check took %d bytes", took)
	}
}

func TestWhatCannotBeReadIsFoundWhereverItStandsAndNamed(t *testing.T) {
	bad := nested(2, 1, &structpb.Value{})
	deep := nested(deepest+1, 5<<10, structpb.NewNullValue())
	list := structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{structpb.NewNullValue(), {}}})
	for want, message := range map[string]any{
		"inputs.n.n has a value of no kind": &pulumirpc.CheckResponse{Inputs: bad},
		"inputs.list[1] has a value of no kind": &pulumirpc.CheckResponse{
			Inputs: &structpb.Struct{Fields: map[string]*structpb.Value{"list": list}}},
		"remediations[1].properties.n.n has a value of no kind": &pulumirpc.RemediateResponse{
			Remediations: []*pulumirpc.Remediation{{}, {Properties: bad}}},
		"policies[0].configSchema.properties.n.n has a value of no kind": &pulumirpc.AnalyzerInfo{
			Policies: []*pulumirpc.PolicyInfo{{ConfigSchema: &pulumirpc.PolicyConfigSchema{Properties: bad}}}},
		"steps[0].new.inputs.n.n has a value of no kind": &pulumirpc.PublishViewStepsRequest{
			Steps: []*pulumirpc.ViewStep{{New: &pulumirpc.ViewStepState{Inputs: bad}}}},
		"policyConfig.size.properties.n.n has a value of no kind": &pulumirpc.ConfigureAnalyzerRequest{
			PolicyConfig: map[string]*pulumirpc.PolicyConfig{"size": {Properties: bad}}},
		"inputs." + strings.Repeat("n", 92) + " is nested more than 500 levels deep": &pulumirpc.CheckResponse{Inputs: deep},
	} {
		if err := checkValues(message); err == nil || err.Error() != want {
			t.Errorf("%v, not %s", err, want)
		}
	}
	failed := &pulumirpc.ErrorResourceInitFailed{Id: "half", Properties: bad}
	if err := plain(withDetails(t, codes.Unknown, "half", failed)); status.Code(err) != codes.Internal {
		t.Error(err)
	}
}

func TestTheEngineTakesNoURNThatIsNone(t *testing.T) {
	said := newJournal()
	h := open(t, Options{Log: said.log})
	for _, c := range []struct {
		urn  string
		want codes.Code
	}{
		{"", codes.OK}, {"urn:pulumi:dev::p::my:Comp::c", codes.OK}, {"u", codes.InvalidArgument},
		{"urn:pulumi:dev::p::my:Comp::" + strings.Repeat("u", 64<<10), codes.InvalidArgument},
	} {
		_, logged := h.engine.Log(t.Context(), &pulumirpc.LogRequest{Severity: 1, Message: "x", Urn: c.urn})
		_, set := h.engine.SetRootResource(t.Context(), &pulumirpc.SetRootResourceRequest{Urn: c.urn})
		if status.Code(logged) != c.want || status.Code(set) != c.want || logged != nil && len(logged.Error()) > 300 {
			t.Errorf("%.40q: %v %v", c.urn, logged, set)
		}
	}
	if n := len(said.messages); n != 2 {
		t.Errorf("%d messages are logged", n)
	}
}

func TestSchemasAreKeptAsLongAsThereIsRoom(t *testing.T) {
	c := schemaCache{known: map[string][]byte{}}
	large := make([]byte, maxSchemas/4)
	for i := range 10 {
		c.add(fmt.Sprint(i), large)
	}
	if len(c.known) != 3 {
		t.Errorf("%d schemas are kept", len(c.known))
	}
}

func TestALanguageHostNamesSoManyPackagesAndNoMore(t *testing.T) {
	small := &pulumirpc.PackageDependency{Name: "p"}
	large := &pulumirpc.PackageDependency{Name: strings.Repeat("p", maxPackageBytes)}
	for _, c := range []struct {
		packages []*pulumirpc.PackageDependency
		taken    bool
	}{
		{slices.Repeat([]*pulumirpc.PackageDependency{small}, mostPackages), true},
		{slices.Repeat([]*pulumirpc.PackageDependency{small}, mostPackages+1), false},
		{[]*pulumirpc.PackageDependency{large}, false},
	} {
		err := fewPackages(len(c.packages), &pulumirpc.GetRequiredPackagesResponse{Packages: c.packages})
		if (err == nil) != c.taken {
			t.Errorf("%d packages are answered with %v", len(c.packages), err)
		}
	}
}

func TestAnOrganizationsUpdatesKeepSoManySchemasTogether(t *testing.T) {
	pool, large := mempool.New(maxSchemas), make([]byte, maxSchemas/4-1)
	of := func(organization string) *schemaCache {
		return &schemaCache{intake: intake.New(pool, organization), known: map[string][]byte{}}
	}
	first, second, other := of("acme"), of("acme"), of("initech")
	first.add("", large)
	for _, c := range []*schemaCache{first, second, other} {
		c.add("a", large)
	}
	if len(first.known) != 2 || len(second.known) != 0 || len(other.known) != 1 {
		t.Errorf("kept are %d, %d, and %d of another organization", len(first.known), len(second.known), len(other.known))
	}
	first.drop()
	if first.add("b", large); len(first.known) != 0 {
		t.Error("a schema is kept that nobody forgets")
	}
	if second.add("b", large); len(second.known) != 1 {
		t.Error("there is no room after an update has ended")
	}
}
