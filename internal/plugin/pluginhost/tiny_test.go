//go:build unix

package pluginhost

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestMain lets the test binary run as a provider plugin if it is started under the name of one.
func TestMain(m *testing.M) {
	name := strings.TrimSuffix(filepath.Base(os.Args[0]), ".exe")
	switch name {
	case "pulumi-resource-tiny":
		serveTiny(&tiny{shakes: true})
	case "pulumi-resource-old":
		serveTiny(&tiny{})
	case "pulumi-resource-broken":
		fmt.Fprintln(os.Stderr, "no licence found")
		os.Exit(3)
	case "pulumi-resource-chatty":
		fmt.Println("hello, I am not a port")
		time.Sleep(time.Hour)
	case "pulumi-resource-knocked":
		serveKnocked(filepath.Dir(os.Args[0]))
	case "pulumi-resource-doomed", "pulumi-language-doomed":
		self, _ := os.FindProcess(os.Getpid())
		_ = self.Kill()
		time.Sleep(time.Hour)
	default:
		os.Exit(m.Run())
	}
}

// tiny is a provider whose resources do what their input "do" says.
type tiny struct {
	pulumirpc.UnimplementedResourceProviderServer
	shakes    bool
	cancelled chan struct{}
	shaken    *pulumirpc.ProviderHandshakeRequest
	parameter *pulumirpc.ParameterizeRequest_ParametersValue
	// parameters counts the calls of Parameterize.
	parameters atomic.Int32
}

func serveTiny(p *tiny) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	serveAt(listener, p)
}

// serveKnocked is a plugin that tells its port to others before it tells it to the engine, when it is started for the
// first time: it waits until the file "knocked" is there.
func serveKnocked(dir string) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	if told, err := os.OpenFile(filepath.Join(dir, "port"), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600); err == nil {
		_, _ = fmt.Fprintln(told, listener.Addr().(*net.TCPAddr).Port)
		_ = told.Close()
		for !exists(filepath.Join(dir, "knocked")) {
			time.Sleep(time.Millisecond)
		}
	}
	serveAt(listener, &tiny{shakes: true})
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func serveAt(listener net.Listener, p *tiny) {
	p.cancelled = make(chan struct{})
	server := grpc.NewServer()
	pulumirpc.RegisterResourceProviderServer(server, p)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	fmt.Println("listening now")
	_ = server.Serve(listener)
}

func (p *tiny) Handshake(
	_ context.Context, req *pulumirpc.ProviderHandshakeRequest,
) (*pulumirpc.ProviderHandshakeResponse, error) {
	p.shaken = req
	if !p.shakes {
		return nil, status.Error(codes.Unimplemented, "what is a handshake?")
	}
	if req.GetEngineAddress() != os.Args[1] && len(os.Args) > 1 && p.cancelled != nil {
		return nil, fmt.Errorf("engine is %s and %s", req.GetEngineAddress(), os.Args[1])
	}
	return &pulumirpc.ProviderHandshakeResponse{AcceptSecrets: true, AcceptResources: true, AcceptOutputs: true}, nil
}

func (p *tiny) Parameterize(
	_ context.Context, req *pulumirpc.ParameterizeRequest,
) (*pulumirpc.ParameterizeResponse, error) {
	p.parameter = req.GetValue()
	p.parameters.Add(1)
	switch string(req.GetValue().GetValue()) {
	case "refuse":
		return nil, status.Error(codes.InvalidArgument, "there is no such extension")
	case "other":
		return &pulumirpc.ParameterizeResponse{Name: "other", Version: "1.0.0"}, nil
	}
	return &pulumirpc.ParameterizeResponse{Name: p.parameter.GetName(), Version: p.parameter.GetVersion()}, nil
}

func (p *tiny) GetSchema(_ context.Context, req *pulumirpc.GetSchemaRequest) (*pulumirpc.GetSchemaResponse, error) {
	if req.GetSubpackageName() != p.parameter.GetName() {
		return nil, fmt.Errorf("asked for %s, am %s", req.GetSubpackageName(), p.parameter.GetName())
	}
	if p.parameter != nil {
		return &pulumirpc.GetSchemaResponse{
			Schema: fmt.Sprintf(`{"name": %q, "version": %q}`, p.parameter.GetName(), p.parameter.GetVersion()),
		}, nil
	}
	return &pulumirpc.GetSchemaResponse{Schema: `{"name": "tiny", "version": "1.0.0", "resources": {"tiny:index:Thing": {
		"properties": {"do": {"type": "string"}, "size": {"type": "number"}},
		"inputProperties": {"do": {"type": "string"}, "size": {"type": "number"}}
	}}}`}, nil
}

func (p *tiny) Configure(_ context.Context, req *pulumirpc.ConfigureRequest) (*pulumirpc.ConfigureResponse, error) {
	if region := req.GetArgs().GetFields()["region"].GetStringValue(); region == "nowhere" {
		return nil, status.Error(codes.InvalidArgument, "there is no region nowhere")
	}
	return &pulumirpc.ConfigureResponse{AcceptSecrets: true, SupportsPreview: true}, nil
}

func (p *tiny) Check(_ context.Context, req *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	return &pulumirpc.CheckResponse{Inputs: req.GetNews()}, nil
}

func (p *tiny) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	close(p.cancelled)
	return &emptypb.Empty{}, nil
}

func (p *tiny) List(_ *pulumirpc.ListRequest, answers grpc.ServerStreamingServer[pulumirpc.ListResponse]) error {
	fmt.Println("hanging")
	select {
	case <-p.cancelled:
		return status.Error(codes.Canceled, "told to stop")
	case <-answers.Context().Done():
		return answers.Context().Err()
	}
}

func (p *tiny) Create(ctx context.Context, req *pulumirpc.CreateRequest) (*pulumirpc.CreateResponse, error) {
	switch do := req.GetProperties().GetFields()["do"].GetStringValue(); do {
	case "env":
		dir, _ := os.Getwd()
		out, _ := structpb.NewStruct(map[string]any{"env": strings.Join(os.Environ(), "\n"), "dir": dir})
		return &pulumirpc.CreateResponse{Id: "env", Properties: out}, nil
	case "count":
		out, _ := structpb.NewStruct(map[string]any{"parameters": int(p.parameters.Load())})
		return &pulumirpc.CreateResponse{Id: "count", Properties: out}, nil
	case "die":
		os.Exit(9)
	case "hang":
		fmt.Println("hanging")
		<-p.cancelled
		return nil, status.Error(codes.Canceled, "told to stop")
	case "refuse":
		return nil, fmt.Errorf("size must be even")
	case "busy":
		st, _ := status.New(codes.ResourceExhausted, "slow down").WithDetails(
			&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
		return nil, st.Err()
	case "gateway":
		return nil, status.Error(codes.Unavailable, "502 bad gateway")
	case "later":
		st, _ := status.New(codes.Unavailable, "503").WithDetails(
			&errdetails.RetryInfo{RetryDelay: durationpb.New(3 * time.Second)})
		return nil, st.Err()
	case "half":
		st, _ := status.New(codes.Unknown, "half").WithDetails(
			&pulumirpc.ErrorResourceInitFailed{Id: "half", Reasons: []string{"not ready"}})
		return nil, st.Err()
	case "large":
		return nil, status.Error(codes.ResourceExhausted, "grpc: trying to send message larger than max (450887680 "+
			"vs. 419430400)")
	case "nameless":
		return &pulumirpc.CreateResponse{}, nil
	case "named too long":
		return &pulumirpc.CreateResponse{Id: strings.Repeat("i", 6<<20), Properties: req.GetProperties()}, nil
	}
	return &pulumirpc.CreateResponse{Id: "made", Properties: req.GetProperties()}, nil
}

// bin returns a directory with the test binary under the names of plugins.
func bin(t *testing.T, names ...string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range names {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// journal collects messages.
type journal struct {
	mu       sync.Mutex
	messages []Message
	news     chan struct{} // receives a value on each message, without blocking
}

func newJournal() *journal { return &journal{news: make(chan struct{}, 1)} }

func (j *journal) log(m Message) {
	j.mu.Lock()
	j.messages = append(j.messages, m)
	j.mu.Unlock()
	select {
	case j.news <- struct{}{}:
	default:
	}
}

// await returns the first message that contains the text, as soon as there is one.
func (j *journal) await(t *testing.T, text string) Message {
	t.Helper()
	for {
		j.mu.Lock()
		i := slices.IndexFunc(j.messages, func(m Message) bool { return strings.Contains(m.Text, text) })
		if i >= 0 {
			defer j.mu.Unlock()
			return j.messages[i]
		}
		all := fmt.Sprint(j.messages)
		j.mu.Unlock()
		waittest.For(t, fmt.Sprintf("something says %q, after %s", text, all), j.news)
	}
}

// open returns a host that is closed at the end of the test.
func open(t *testing.T, opts Options) *Host {
	t.Helper()
	if opts.RootDir == "" {
		opts.RootDir = t.TempDir()
	}
	if opts.PulumiHome == "" {
		opts.PulumiHome = t.TempDir()
	}
	h, err := New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close(context.Background()) })
	return h
}

// configured returns a running, configured provider.
func configured(t *testing.T, h *Host, name, instance string) *Provider {
	t.Helper()
	p, err := h.Provider(t.Context(), Package{Name: name}, instance)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Configure(t.Context(), configuration(name, nil)); err != nil {
		t.Fatal(err)
	}
	return p
}

func configuration(name string, inputs map[string]any) plugin.ConfigureRequest {
	kind := tokens.Type("pulumi:providers:" + name)
	return plugin.ConfigureRequest{Type: &kind, Inputs: resource.NewPropertyMapFromMap(inputs)}
}

func creating(do string) plugin.CreateRequest {
	return plugin.CreateRequest{
		URN:        resource.URN("urn:pulumi:dev::test::tiny:index:Thing::" + do),
		Properties: resource.NewPropertyMapFromMap(map[string]any{"do": do}),
	}
}

// convert converts an error as the SDK does.
func convert(err error) error { return rpcerror.Convert(err) }
