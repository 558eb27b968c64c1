// Package hosttest has a small ResourceMonitor against which tests run real programs.
package hosttest

import (
	"context"
	"net"
	"sync"
	"testing"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// Registration is the registration of a resource by a program.
type Registration struct {
	Type, Name, Parent string
	Custom             bool
	Inputs             map[string]any
	Outputs            map[string]any // of RegisterResourceOutputs
}

// Monitor answers every registration with the resource's own inputs as outputs, and keeps them in order.
type Monitor struct {
	pulumirpc.UnimplementedResourceMonitorServer
	Address string
	// OnRegister, if set before the program runs, is called before each registration is answered.
	OnRegister func(Registration)

	mu         sync.Mutex
	registered []*Registration
	byURN      map[string]*Registration
}

// New serves a monitor until the test ends.
func New(t *testing.T) *Monitor {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &Monitor{Address: listener.Addr().String(), byURN: map[string]*Registration{}}
	server := grpc.NewServer()
	pulumirpc.RegisterResourceMonitorServer(server, m)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return m
}

// Find returns the registration of a resource by its name, or nil.
func (m *Monitor) Find(name string) *Registration {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.registered {
		if r.Name == name {
			found := *r
			return &found
		}
	}
	return nil
}

// Stack returns the registration of the stack itself, or nil.
func (m *Monitor) Stack() *Registration {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range m.registered {
		if r.Type == "pulumi:pulumi:Stack" {
			found := *r
			return &found
		}
	}
	return nil
}

// RegisterResource is part of the protocol.
func (m *Monitor) RegisterResource(
	_ context.Context, req *pulumirpc.RegisterResourceRequest,
) (*pulumirpc.RegisterResourceResponse, error) {
	r := &Registration{
		Type: req.GetType(), Name: req.GetName(), Parent: req.GetParent(), Custom: req.GetCustom(),
		Inputs: req.GetObject().AsMap(),
	}
	if m.OnRegister != nil {
		m.OnRegister(*r)
	}
	urn := "urn:pulumi:dev::test::" + r.Type + "::" + r.Name
	m.mu.Lock()
	defer m.mu.Unlock()
	m.registered, m.byURN[urn] = append(m.registered, r), r
	resp := &pulumirpc.RegisterResourceResponse{Urn: urn, Object: req.GetObject()}
	if r.Custom {
		resp.Id = r.Name + "-id"
	}
	return resp, nil
}

// RegisterResourceOutputs is part of the protocol.
func (m *Monitor) RegisterResourceOutputs(
	_ context.Context, req *pulumirpc.RegisterResourceOutputsRequest,
) (*emptypb.Empty, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if r := m.byURN[req.GetUrn()]; r != nil {
		r.Outputs = req.GetOutputs().AsMap()
	}
	return &emptypb.Empty{}, nil
}

// SupportsFeature is part of the protocol.
func (m *Monitor) SupportsFeature(
	_ context.Context, req *pulumirpc.SupportsFeatureRequest,
) (*pulumirpc.SupportsFeatureResponse, error) {
	known := map[string]bool{"secrets": true, "resourceReferences": true, "outputValues": true, "aliasSpecs": true}
	return &pulumirpc.SupportsFeatureResponse{HasSupport: known[req.GetId()]}, nil
}

// Invoke is part of the protocol.
func (m *Monitor) Invoke(context.Context, *pulumirpc.ResourceInvokeRequest) (*pulumirpc.ResourceInvokeResponse, error) {
	return &pulumirpc.ResourceInvokeResponse{Return: &structpb.Struct{}}, nil
}

// RegisterPackage is part of the protocol.
func (m *Monitor) RegisterPackage(
	_ context.Context, req *pulumirpc.RegisterPackageRequest,
) (*pulumirpc.RegisterPackageResponse, error) {
	return &pulumirpc.RegisterPackageResponse{Ref: "package " + req.GetName()}, nil
}

// SignalAndWaitForShutdown is part of the protocol.
func (m *Monitor) SignalAndWaitForShutdown(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}
