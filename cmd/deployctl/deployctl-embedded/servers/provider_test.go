package servers_test

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/cmd/deployctl/deployctl-embedded/servers"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/provider/providertest"
	"github.com/deployctl/deployctl/providers/temporal"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"gopkg.in/yaml.v3"
)

// playground is a Temporal server on which resources of deployctl:temporal are played, through a proxy in plain text
// for each life.
type playground struct {
	frontend workflowservice.WorkflowServiceClient
	operator operatorservice.OperatorServiceClient
	conn     *grpc.ClientConn
	address  string
	pems     string
}

// played is the namespace of what is played that is in one, and begins the names of all that is played.
const played = "played"

func startPlayground(t *testing.T) *playground {
	t.Helper()
	server, err := devserver.StartTemporal(t.Context(), newHome(t), servers.All{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close(context.Background()) })
	pems, err := os.ReadFile(server.Credentials)
	if err != nil {
		t.Fatal(err)
	}
	identity, err := tls.X509KeyPair(pems, pems)
	if err != nil {
		t.Fatal(err)
	}
	p := &playground{address: server.Address, pems: string(pems)}
	p.conn, err = grpc.NewClient(server.Address, grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		Certificates: []tls.Certificate{identity}, InsecureSkipVerify: true, //nolint:gosec // it is this process
	})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.conn.Close() })
	p.frontend = workflowservice.NewWorkflowServiceClient(p.conn)
	p.operator = operatorservice.NewOperatorServiceClient(p.conn)
	return p
}

// frame is a message that is passed on as it is.
type frame struct{ data []byte }

type frames struct{}

func (frames) Name() string { return "proto" }

func (frames) Marshal(v any) ([]byte, error) {
	if f, ok := v.(*frame); ok {
		return f.data, nil
	}
	return proto.Marshal(v.(proto.Message))
}

func (frames) Unmarshal(data []byte, v any) error {
	if f, ok := v.(*frame); ok {
		f.data = slices.Clone(data)
		return nil
	}
	return proto.Unmarshal(data, v.(proto.Message))
}

// proxy passes calls on to the server, through calls, and returns its address.
func (p *playground) proxy(t *testing.T, calls *providertest.Calls) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodec(frames{}),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			var in, out frame
			if err := stream.RecvMsg(&in); err != nil {
				return err
			}
			err := calls.Do(method, func() error {
				return p.conn.Invoke(context.WithoutCancel(stream.Context()), method, &in, &out, grpc.ForceCodec(frames{}))
			})
			if errors.Is(err, providertest.ErrCut) {
				return status.Error(codes.Unavailable, "the connection was cut")
			}
			if err != nil {
				return err
			}
			return stream.SendMsg(&out)
		}))
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) })
	t.Cleanup(func() { server.Stop(); serving.Wait() })
	return listener.Addr().String()
}

// kind is what is played of one type: each that exists under a name, as a text without what the server gives as it
// likes, and how it is removed by hand.
type kind struct {
	seen   func(ctx context.Context, name string) (string, bool)
	remove func(ctx context.Context, name string) error
}

// start returns what starts a life of a kind.
func (p *playground) start(k kind) providertest.Start {
	things := func() map[string]any {
		all := map[string]any{}
		for _, name := range []string{played, played + "-2"} {
			if thing, ok := k.seen(context.Background(), name); ok {
				all[name] = thing
			}
		}
		return all
	}
	return func(t *testing.T, calls *providertest.Calls) providertest.Setup {
		t.Helper()
		for name := range things() {
			waittest.Until(t, "the server to let go of "+name, func() bool { return k.remove(t.Context(), name) == nil })
		}
		return providertest.Setup{
			Package: temporalPackage, Things: things,
			Config: providertest.Inputs{"temporalAddress": p.proxy(t, calls), "temporalNamespace": devserver.Namespace},
		}
	}
}

func temporalPackage() provider.Package {
	return provider.Package{Name: "deployctl", Version: "0.0.1", Modules: []provider.Module{temporal.Module()}}
}

func (p *playground) namespaces() kind {
	return kind{
		seen: func(ctx context.Context, name string) (string, bool) {
			n, err := p.frontend.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
			info := n.GetNamespaceInfo()
			data := maps.Clone(info.GetData())
			maps.DeleteFunc(data, func(_, text string) bool { return text == "" })
			return fmt.Sprint(data, info.GetDescription(), info.GetOwnerEmail(),
				n.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration()), err == nil
		},
		remove: func(ctx context.Context, name string) error {
			_, err := p.operator.DeleteNamespace(ctx, &operatorservice.DeleteNamespaceRequest{Namespace: name})
			return err
		},
	}
}

func (p *playground) schedules() kind {
	return kind{
		seen: func(ctx context.Context, name string) (string, bool) {
			s, err := p.frontend.DescribeSchedule(ctx, &workflowservice.DescribeScheduleRequest{
				Namespace:  devserver.Namespace,
				ScheduleId: name})
			return canonical(s.GetSchedule()), err == nil
		},
		remove: func(ctx context.Context, name string) error {
			_, err := p.frontend.DeleteSchedule(ctx, &workflowservice.DeleteScheduleRequest{Namespace: devserver.Namespace,
				ScheduleId: name})
			return err
		},
	}
}

func (p *playground) endpoints() kind {
	find := func(ctx context.Context, name string) *nexus.Endpoint {
		all, err := p.operator.ListNexusEndpoints(ctx, &operatorservice.ListNexusEndpointsRequest{Name: name})
		if err != nil || len(all.GetEndpoints()) == 0 {
			return nil
		}
		return all.GetEndpoints()[0]
	}
	return kind{
		seen: func(ctx context.Context, name string) (string, bool) {
			e := find(ctx, name)
			return canonical(e.GetSpec()), e != nil
		},
		remove: func(ctx context.Context, name string) error {
			e := find(ctx, name)
			_, err := p.operator.DeleteNexusEndpoint(ctx, &operatorservice.DeleteNexusEndpointRequest{Id: e.GetId(),
				Version: e.GetVersion()})
			return err
		},
	}
}

// canonical is a text that equal messages share.
func canonical(m proto.Message) string {
	data, _ := proto.MarshalOptions{Deterministic: true}.Marshal(m) // what came over the wire
	return fmt.Sprintf("%q", data)
}

// TestTemporalEndpointsConverge interrupts each call of a create, an update, a replacement and a delete, at a real
// server.
func TestTemporalEndpointsConverge(t *testing.T) {
	p := startPlayground(t)
	providertest.Run(t, p.start(p.endpoints()), providertest.Case{
		Type: "deployctl:temporal:NexusEndpoint",
		Inputs: providertest.Inputs{"name": played, "description": "Payments", "targetNamespace": devserver.Namespace,
			"taskQueue": "payments"},
		Change:  providertest.Inputs{"description": "All payments", "taskQueue": "payments-2"},
		Replace: providertest.Inputs{"name": played + "-2"},
	})
}

// TestTemporalSchedulesConverge does the same. A schedule is a workflow, so each look at one takes the server longer.
func TestTemporalSchedulesConverge(t *testing.T) {
	soaktest.Only(t)
	p := startPlayground(t)
	providertest.Run(t, p.start(p.schedules()), providertest.Case{
		Type: "deployctl:temporal:Schedule",
		Inputs: providertest.Inputs{"name": played, "cron": []any{"*/15 3 * * MON", "@daily"},
			"intervals": []any{"6h/15m"}, "timezone": "Europe/Berlin", "workflowType": "Report", "taskQueue": "reports",
			"input": []any{map[string]any{"region": "north", "days": 7}, providertest.Secret("word-of-the-schedule")},
			"memo":  map[string]any{"team": "web"}, "paused": true, "note": "not yet"},
		Change: providertest.Inputs{"cron": []any{"0 4 * * *"}, "intervals": []any{"1d"}, "jitter": "90s",
			"input": []any{"south"}, "memo": map[string]any{"team": "data"}, "overlap": "BufferOne",
			"catchupWindow": "10m", "note": "still not"},
		Replace: providertest.Inputs{"name": played + "-2"},
	})
}

// TestTemporalNamespacesConverge waits after each create until the server's frontend has heard of it.
func TestTemporalNamespacesConverge(t *testing.T) {
	soaktest.Only(t)
	p := startPlayground(t)
	providertest.Run(t, p.start(p.namespaces()), providertest.Case{
		Type: "deployctl:temporal:Namespace",
		Inputs: providertest.Inputs{"name": played, "retention": "3d", "description": "Orders",
			"ownerEmail": "a@example.com", "data": map[string]any{"team": "web"}},
		Change: providertest.Inputs{"retention": "48h", "description": "All orders",
			"data": map[string]any{"team": "data"}},
		Replace: providertest.Inputs{"name": played + "-2"},
	})
}

// engine makes the calls of an engine for one type.
type engine struct {
	t *testing.T
	pulumirpc.ResourceProviderClient
}

// engine connects a provider by TLS, with a certificate of the client.
func (p *playground) engine(t *testing.T) engine {
	t.Helper()
	client, stop, err := provider.Client(provider.Server(temporalPackage()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if _, err := client.Configure(t.Context(), &pulumirpc.ConfigureRequest{Args: wire(t, providertest.Inputs{
		"temporalAddress": p.address, "temporalCACert": p.pems, "temporalCert": p.pems, "temporalKey": p.pems,
	})}); err != nil {
		t.Fatal(err)
	}
	return engine{t, client}
}

func wire(t *testing.T, in providertest.Inputs) *structpb.Struct {
	t.Helper()
	bag := resource.NewPropertyMapFromMap(in)
	s, err := plugin.MarshalProperties(bag, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func urn(token string) string { return "urn:pulumi:dev::web::" + token + "::it" }

// make creates a resource, and waits until it is ready.
func (e engine) make(token string, in providertest.Inputs) (id string, err error) {
	e.t.Helper()
	checked, err := e.Check(e.t.Context(), &pulumirpc.CheckRequest{Urn: urn(token), News: wire(e.t, in),
		RandomSeed: []byte("seed")})
	if err != nil || len(checked.GetFailures()) > 0 {
		e.t.Fatal(checked.GetFailures(), err)
	}
	made, err := e.Create(e.t.Context(), &pulumirpc.CreateRequest{Urn: urn(token), Properties: checked.GetInputs()})
	if err == nil {
		return made.GetId(), nil
	}
	for _, detail := range status.Convert(err).Details() {
		if exists, ok := detail.(*pulumirpc.ErrorResourceInitFailed); ok {
			waittest.Until(e.t, token+" to be ready", func() bool {
				_, err := e.Update(e.t.Context(), &pulumirpc.UpdateRequest{Urn: urn(token), Id: exists.GetId(),
					News: checked.GetInputs(), OldInputs: checked.GetInputs(), Olds: exists.GetProperties()})
				return err == nil
			})
			return exists.GetId(), nil
		}
	}
	return "", err
}

// list returns what bears the mark of the stack.
func (e engine) list(token string) (ids []string) {
	e.t.Helper()
	stream, err := e.List(e.t.Context(), &pulumirpc.ListRequest{Token: token})
	for err == nil {
		var item *pulumirpc.ListResponse
		if item, err = stream.Recv(); err == nil && item.GetResult() != nil {
			ids = append(ids, item.GetResult().GetId())
		}
	}
	if !errors.Is(err, io.EOF) {
		e.t.Errorf("the list of %s: %v", token, err)
	}
	return ids
}

func (e engine) remove(token, id string, in providertest.Inputs) {
	e.t.Helper()
	if _, err := e.Delete(e.t.Context(), &pulumirpc.DeleteRequest{Urn: urn(token), Id: id, OldInputs: wire(e.t, in),
		Properties: wire(e.t, in)}); err != nil {
		e.t.Fatal(err)
	}
}

func TestSearchAttributesLiveInANamespaceThatIsMadeAgain(t *testing.T) {
	const namespaceType, attributeType = "deployctl:temporal:Namespace", "deployctl:temporal:SearchAttribute"
	p := startPlayground(t)
	e := p.engine(t)
	namespace := providertest.Inputs{"name": played, "retention": "24h"}
	attribute := providertest.Inputs{"name": "Customer", "type": "Keyword", "namespace": played}
	for range 2 {
		space, err := e.make(namespaceType, namespace)
		if err != nil {
			t.Fatal(err)
		}
		id, err := e.make(attributeType, attribute)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := e.make(attributeType, attribute); err != nil || again != id {
			t.Errorf("declared twice it is %q, %v", again, err)
		}
		_, err = e.make(attributeType, providertest.Inputs{"name": "Customer", "type": "Int", "namespace": played})
		if err == nil || !strings.Contains(err.Error(), "exists with the type Keyword") {
			t.Errorf("another type: %v", err)
		}
		read, err := e.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urn(attributeType), Id: id})
		if err != nil || read.GetInputs().GetFields()["type"].GetStringValue() != "Keyword" {
			t.Errorf("it reads as %v, %v", read, err)
		}
		e.remove(attributeType, id, attribute)
		read, err = e.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urn(attributeType), Id: id})
		if err != nil || read.GetId() != "" {
			t.Errorf("after its delete it reads as %v, %v", read, err)
		}
		e.remove(namespaceType, space, namespace)
		e.remove(namespaceType, space, namespace)
		e.remove(attributeType, id, attribute)
	}
}

// TestTheProgramOfThePageRuns makes what docs/temporal-resources.md declares, twice, and finds it as declared.
func TestTheProgramOfThePageRuns(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/temporal-resources.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	var program struct{ Resources yaml.Node }
	if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "${orders.name}", "orders")), &program); err != nil {
		t.Fatal(err)
	}
	t.Setenv(provider.StackVariable, "identity-of-orders")
	e := startPlayground(t).engine(t)
	var made [][2]string
	for range 2 {
		made = nil
		for i := 1; i < len(program.Resources.Content); i += 2 { // in the order of the page
			var declared struct {
				Type       string
				Properties map[string]any
			}
			if err := program.Resources.Content[i].Decode(&declared); err != nil {
				t.Fatal(err)
			}
			id, err := e.make(declared.Type, declared.Properties)
			if err != nil {
				t.Fatalf("%s: %v", declared.Type, err)
			}
			made = append(made, [2]string{declared.Type, id})
		}
	}
	if len(made) != 4 {
		t.Errorf("the page declares %d resources, not one of each type", len(made))
	}
	for token, want := range map[string]string{
		"deployctl:temporal:Namespace": "orders", "deployctl:temporal:NexusEndpoint": "payments",
	} {
		if ids := e.list(token); !slices.Equal(ids, []string{want}) {
			t.Errorf("the stack's list of %s is %v", token, ids)
		}
	}
	for _, one := range slices.Backward(made) {
		read, err := e.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urn(one[0]), Id: one[1]})
		if err != nil || read.GetId() != one[1] {
			t.Errorf("%s %s reads as %v, %v", one[0], one[1], read, err)
		}
		if cron := read.GetInputs().GetFields()["cron"].GetListValue().GetValues(); one[0] ==
			"deployctl:temporal:Schedule" && (len(cron) != 1 || cron[0].GetStringValue() != "0 3 * * MON-FRI") {
			t.Errorf("the schedule reads as %v", read)
		}
		if _, err := e.Delete(t.Context(), &pulumirpc.DeleteRequest{Urn: urn(one[0]), Id: one[1],
			OldInputs: read.GetInputs(), Properties: read.GetProperties()}); err != nil {
			t.Errorf("%s %s: %v", one[0], one[1], err)
		}
	}
}
