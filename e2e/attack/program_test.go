//go:build unix

package attack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	codegenrpc "github.com/pulumi/pulumi/sdk/v3/proto/go/codegen"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/deployctl/deployctl/e2e/harness"
)

// What the test binary plays, and how many calls it makes, when it is started as the program of an update.
const playVariable, callsVariable = "ATTACK_PROGRAM", "ATTACK_CALLS"

// patienceOfProgram bounds a call of a hostile program; none is expected to take nearly as long.
const patienceOfProgram = 10 * time.Minute

// TestMain makes the test binary a hostile program, when it is started as one.
func TestMain(m *testing.M) {
	play := programs[os.Getenv(playVariable)]
	if play == nil {
		os.Exit(m.Run())
	}
	calls, err := strconv.Atoi(os.Getenv(callsVariable))
	if err != nil {
		panic(err)
	}
	play(&program{calls: calls, seen: map[codes.Code]int{}})
}

// programs are the hostile programs; what goes wrong, they say in a line that begins with WRONG.
var programs = map[string]func(*program){
	"monitor":       (*program).callMonitor,
	"engine":        (*program).callEngine,
	"registrations": (*program).register,
	"urns":          (*program).logURNs,
	"causes":        lies("causes"),
	"names":         lies("names"),
	"schema":        lies("schema"),
}

// program is a hostile program while it runs.
type program struct {
	calls int

	mu   sync.Mutex
	seen map[codes.Code]int
}

func dialVariable(name string) *grpc.ClientConn {
	conn, err := grpc.NewClient("passthrough:///"+os.Getenv(name),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		panic(err)
	}
	return conn
}

// flood makes the calls, several at a time, and then says how they were answered.
func (p *program) flood(call func(context.Context, *rand.Rand, int) (what string, err error)) {
	var next atomic.Int64
	var calling sync.WaitGroup
	for worker := range uint64(8) {
		calling.Go(func() {
			random := rand.New(rand.NewPCG(16, worker))
			for {
				i := int(next.Add(1)) - 1
				if i >= p.calls {
					return
				}
				ctx, cancel := context.WithTimeout(context.Background(), patienceOfProgram)
				what, err := call(ctx, random, i)
				p.note(what, err, ctx.Err() != nil)
				cancel()
			}
		})
	}
	calling.Wait()
	fmt.Println("hostile:", p.calls, "calls answered", p.seen)
}

func (p *program) note(what string, err error, late bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen[status.Code(err)]++
	if late || status.Code(err) == codes.Unavailable || err != nil &&
		strings.Contains(err.Error(), "failed internally") {
		fmt.Printf("WRONG: %s is answered with %.300v\n", what, err)
	}
}

// methodsOf are the unary methods of services, but those with a name among others.
func methodsOf(file protoreflect.FileDescriptor, others ...string) (all []grpcMethod) {
	for i := range file.Services().Len() {
		s := file.Services().Get(i)
		for j := range s.Methods().Len() {
			m := s.Methods().Get(j)
			if !m.IsStreamingClient() && !m.IsStreamingServer() && !slices.Contains(others, string(m.Name())) {
				all = append(all, grpcMethod{"/" + string(s.FullName()) + "/" + string(m.Name()), m.Input(),
					m.Output()})
			}
		}
	}
	return all
}

// anyOf calls a random method with a random message.
func anyOf(conn *grpc.ClientConn, methods []grpcMethod) func(context.Context, *rand.Rand, int) (string, error) {
	return func(ctx context.Context, random *rand.Rand, _ int) (string, error) {
		m := methods[random.IntN(len(methods))]
		in, out := messageOf(m.in), messageOf(m.out)
		fill(random, in.ProtoReflect(), 0)
		return fmt.Sprintf("%s of %.300v", m.name, in), conn.Invoke(ctx, m.name, in, out)
	}
}

// callMonitor calls every method, but those whose refusal ends the program's registrations: what comes after them would
// not be read any more.
func (p *program) callMonitor() {
	p.flood(anyOf(dialVariable("PULUMI_MONITOR"), methodsOf(pulumirpc.File_pulumi_resource_proto,
		"RegisterStackTransform", "RegisterStackInvokeTransform", "RegisterResourceHook", "RegisterErrorHook")))
}

func (p *program) callEngine() {
	p.flood(anyOf(dialVariable("PULUMI_ENGINE"), slices.Concat(methodsOf(pulumirpc.File_pulumi_engine_proto),
		methodsOf(codegenrpc.File_pulumi_codegen_loader_proto), methodsOf(
			codegenrpc.File_pulumi_codegen_mapper_proto))))
}

var (
	programTypes = []string{
		"", ":", "a", "a:b", "fake:index:Auto", "fake:index:Auto", "fake:index:Tagged", "fake:index:Nothing",
		"pulumi:providers:fake", "pulumi:providers:",
		"pulumi:pulumi:Stack", "pulumi:pulumi:StackReference", "nosuch:index:X", "fake:index:Auto$x", "\x00",
		"../../x:y:z",
	}
	programNames = []string{"", "x", "y", "a::b", "a$b", "../up", "\x00", "\u202e", strings.Repeat("n", 70_000)}
	programURNs  = []string{
		"", "", "", "x", "::", "urn:pulumi:", "urn:pulumi:dev::hostile::my:Comp::c",
		"urn:pulumi:dev::hostile::pulumi:pulumi:Stack::hostile-dev",
		"urn:pulumi:dev::hostile::fake:index:Auto::x",
		"urn:pulumi:dev::hostile::pulumi:providers:fake::p::04da6b54-80e4-46f7-96ec-b56ff0331ba9",
	}
)

// register makes hostile registrations, and good ones among them, which must be made.
func (p *program) register() {
	conn := dialVariable("PULUMI_MONITOR")
	monitor := pulumirpc.NewResourceMonitorClient(conn)
	pick := func(random *rand.Rand, of []string) string { return of[random.IntN(len(of))] }
	p.flood(func(ctx context.Context, random *rand.Rand, i int) (string, error) {
		if i%50 == 0 {
			good := &pulumirpc.RegisterResourceRequest{
				Type: "fake:index:Auto", Name: fmt.Sprint("good-", i), Custom: true, Version: "0.1.0",
				Object: &structpb.Struct{},
			}
			made, err := monitor.RegisterResource(ctx, good)
			if err != nil || made.GetId() == "" {
				fmt.Printf("WRONG: a good registration is answered with %v %v\n", made, err)
			}
			return "a good registration", err
		}
		req := messageOf(new(pulumirpc.RegisterResourceRequest).ProtoReflect().Descriptor())
		fill(random, req.ProtoReflect(), 0)
		data, err := proto.Marshal(req)
		if err != nil {
			panic(err)
		}
		hostile := &pulumirpc.RegisterResourceRequest{}
		if err := proto.Unmarshal(data, hostile); err != nil {
			panic(err)
		}
		hostile.Type, hostile.Name, hostile.Custom = pick(random, programTypes), pick(random, programNames),
			random.IntN(2) == 0
		hostile.Parent, hostile.Provider = pick(random, programURNs), pick(random, programURNs)
		hostile.Protect, hostile.RetainOnDelete = nil, nil // it is destroyed, without the program
		if hooks := hostile.GetHooks(); hooks != nil {
			hooks.BeforeDelete, hooks.AfterDelete = nil, nil
		}
		if random.IntN(2) == 0 { // some get further
			hostile.Transforms, hostile.Hooks, hostile.CustomTimeouts, hostile.ImportId, hostile.Version = nil, nil,
				nil, "", "0.1.0"
			hostile.PackageRef, hostile.PluginDownloadURL = "", ""
		}
		_, err = monitor.RegisterResource(ctx, hostile)
		return fmt.Sprintf("the registration %.300v", hostile), err
	})
}

// run has a stack updated by a hostile program, which must come to its end and fail nothing but its own update.
func (f *field) run(t *testing.T, play string, calls int) {
	t.Helper()
	self, err := os.Executable()
	harness.Must(t, err)
	cloud, env := harness.Cloud(t)
	hostile := f.project(t, "hostile", "", env)
	harness.Files{
		"Pulumi.yaml": "name: hostile\nruntime: {name: go, options: {binary: ./program}}\n",
		"go.mod":      "module hostile\n",
		"program": fmt.Sprintf("#!/bin/sh\n%s=%s %s=%d exec '%s'\n", playVariable, play, callsVariable, calls,
			self),
	}.Write(t, hostile.Dir)
	harness.Must(t, os.Chmod(hostile.Dir+"/program", 0o700)) //nolint:gosec // it is run
	end := command(t, hostile, "up", "--yes", "--skip-preview", "--continue-on-error")
	said := end.Stdout + end.Stderr
	at := strings.Index(said, "hostile: ")
	if at < 0 {
		t.Errorf("the program did not end; the update ends with %d and says\n%s", end.Code, end.Said())
	} else {
		t.Logf("%.300s", said[at:])
	}
	for line := range strings.Lines(said) {
		if strings.Contains(line, "WRONG:") || strings.Contains(line, "failed internally") {
			t.Errorf("%.500s", line)
		}
	}
	if play == "registrations" {
		if end := command(t, hostile, "destroy", "--yes", "--skip-preview"); end.Code != 0 {
			t.Errorf("what the program made is not destroyed: %s", end.Said())
		}
	}
	left, err := cloud.Objects(t.Context(), "")
	harness.Must(t, err)
	if len(left) != 0 {
		t.Errorf("%d objects are lost", len(left))
	}
	hostile.Must(t, "stack", "rm", "--force", "--yes")
}
