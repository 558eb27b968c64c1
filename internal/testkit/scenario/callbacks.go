package scenario

import (
	"context"
	"fmt"
	"maps"
	"net"
	"sync"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
	"gopkg.in/yaml.v3"
)

// callbacks serves the functions of a script that the engine calls: hooks and transforms.
type callbacks struct {
	rpc.UnimplementedCallbacksServer

	mu        sync.Mutex
	target    string // the address; empty until a function is there
	functions map[string]function
}

// function takes a request of the protocol and returns its response.
type function func(ctx context.Context, request []byte) (proto.Message, error)

// Invoke calls a function.
func (c *callbacks) Invoke(
	ctx context.Context, req *rpc.CallbackInvokeRequest,
) (*rpc.CallbackInvokeResponse, error) {
	c.mu.Lock()
	f := c.functions[req.GetToken()]
	c.mu.Unlock()
	if f == nil {
		return nil, status.Errorf(codes.NotFound, "there is no function %s", req.GetToken())
	}
	response, err := f(ctx, req.GetRequest())
	if err != nil {
		return nil, status.Error(codes.Unknown, err.Error())
	}
	b, err := proto.Marshal(response)
	return &rpc.CallbackInvokeResponse{Response: b}, err
}

// add makes a function callable until ctx ends, and starts the server for the first one.
func (c *callbacks) add(ctx context.Context, name string, f function) (*rpc.Callback, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.functions[name] != nil {
		return nil, fmt.Errorf("there are two functions: %s", name)
	}
	if c.target == "" {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		server := grpc.NewServer()
		rpc.RegisterCallbacksServer(server, c)
		go func() { _ = server.Serve(listener) }() // ends by Stop
		context.AfterFunc(ctx, server.Stop)
		c.target, c.functions = listener.Addr().String(), map[string]function{}
	}
	c.functions[name] = f
	return &rpc.Callback{Target: c.target, Token: name}, nil
}

// hook registers a hook. Each call of it is an info message.
type hook struct {
	Name         string `yaml:"hook"`
	Fails        string `yaml:"fails"` // the error that it returns
	OnDryRun     bool   `yaml:"onDryRun"`
	IgnoreErrors bool   `yaml:"ignoreErrors"`
}

func (h *hook) play(p *player) error {
	callback, err := p.callbacks.add(p.ctx, "hook "+h.Name, func(ctx context.Context, b []byte) (proto.Message, error) {
		var req rpc.ResourceHookRequest
		if err := proto.Unmarshal(b, &req); err != nil {
			return nil, err
		}
		_, err := p.engine.Log(ctx, &rpc.LogRequest{Severity: rpc.LogSeverity_INFO,
			Message: "hook " + h.Name + " of " + req.GetName()})
		return &rpc.ResourceHookResponse{Error: h.Fails}, err
	})
	if err != nil {
		return err
	}
	_, err = p.monitor.RegisterResourceHook(p.ctx, &rpc.RegisterResourceHookRequest{Name: h.Name, Callback: callback,
		OnDryRun: h.OnDryRun, IgnoreErrors: h.IgnoreErrors})
	return err
}

// errorHook registers an error hook, which has a failed operation repeated a number of times.
type errorHook struct {
	Name    string `yaml:"errorHook"`
	Retries int    `yaml:"retries"`
}

func (h *errorHook) play(p *player) error {
	callback, err := p.callbacks.add(p.ctx, "error hook "+h.Name,
		func(_ context.Context, b []byte) (proto.Message, error) {
			var req rpc.ErrorHookRequest
			if err := proto.Unmarshal(b, &req); err != nil {
				return nil, err
			}
			return &rpc.ErrorHookResponse{Retry: len(req.GetErrors()) <= h.Retries}, nil
		})
	if err != nil {
		return err
	}
	_, err = p.monitor.RegisterErrorHook(p.ctx, &rpc.RegisterErrorHookRequest{Name: h.Name, Callback: callback})
	return err
}

// transform makes a transform: one of the stack, or one that the option transforms names. It changes custom resources,
// or those of a type.
type transform struct {
	Name       string               `yaml:"transform"`
	Stack      bool                 `yaml:"stack"`
	Type       string               `yaml:"type"`
	Properties map[string]yaml.Node `yaml:"properties"`
	Options    options              `yaml:"options"` // those that name no resource
}

func (t *transform) play(p *player) error {
	bag, err := p.bag(t.Properties)
	if err != nil {
		return err
	}
	properties, err := plugin.MarshalProperties(bag, marshal(false))
	if err != nil {
		return err
	}
	callback, err := p.callbacks.add(p.ctx, "transform "+t.Name,
		func(_ context.Context, b []byte) (proto.Message, error) {
			var req rpc.TransformRequest
			err := proto.Unmarshal(b, &req)
			return t.change(&req, properties), err
		})
	if err != nil {
		return err
	}
	if t.Stack {
		_, err = p.monitor.RegisterStackTransform(p.ctx, callback)
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.transforms == nil {
		p.transforms = map[string]*rpc.Callback{}
	}
	p.transforms[t.Name] = callback
	return nil
}

// change sets the properties and options of the transform.
func (t *transform) change(req *rpc.TransformRequest, properties *structpb.Struct) *rpc.TransformResponse {
	res := &rpc.TransformResponse{Properties: req.GetProperties(), Options: req.GetOptions()}
	if !req.GetCustom() || t.Type != "" && t.Type != req.GetType() {
		return res
	}
	if res.Properties.GetFields() == nil {
		res.Properties = &structpb.Struct{Fields: map[string]*structpb.Value{}}
	}
	maps.Copy(res.Properties.Fields, properties.GetFields())
	if res.Options == nil {
		res.Options = &rpc.TransformResourceOptions{}
	}
	o := &t.Options
	if o.Protect != nil {
		res.Options.Protect = o.Protect
	}
	if o.RetainOnDelete != nil {
		res.Options.RetainOnDelete = o.RetainOnDelete
	}
	if o.DeleteBeforeReplace != nil {
		res.Options.DeleteBeforeReplace = o.DeleteBeforeReplace
	}
	res.Options.IgnoreChanges = append(res.Options.IgnoreChanges, o.IgnoreChanges...)
	res.Options.ReplaceOnChanges = append(res.Options.ReplaceOnChanges, o.ReplaceOnChanges...)
	res.Options.AdditionalSecretOutputs = append(res.Options.AdditionalSecretOutputs, o.AdditionalSecretOutputs...)
	return res
}

// call sets the options that name functions of the script, and its packages.
func (o *options) call(p *player, req *rpc.RegisterResourceRequest) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if req.PackageRef = p.packages[o.Package]; req.PackageRef == "" && o.Package != "" {
		return fmt.Errorf("there is no earlier package named %s", o.Package)
	}
	for _, name := range o.Transforms {
		callback := p.transforms[name]
		if callback == nil {
			return fmt.Errorf("there is no earlier transform named %s", name)
		}
		req.Transforms = append(req.Transforms, callback)
	}
	if h := o.Hooks; h != nil {
		req.Hooks = &rpc.RegisterResourceRequest_ResourceHooksBinding{
			BeforeCreate: h.BeforeCreate, AfterCreate: h.AfterCreate, BeforeUpdate: h.BeforeUpdate,
			AfterUpdate: h.AfterUpdate, BeforeDelete: h.BeforeDelete, AfterDelete: h.AfterDelete, OnError: h.OnError,
		}
	}
	return nil
}

// hookNames are the names of a resource's hooks.
type hookNames struct {
	BeforeCreate []string `yaml:"beforeCreate"`
	AfterCreate  []string `yaml:"afterCreate"`
	BeforeUpdate []string `yaml:"beforeUpdate"`
	AfterUpdate  []string `yaml:"afterUpdate"`
	BeforeDelete []string `yaml:"beforeDelete"`
	AfterDelete  []string `yaml:"afterDelete"`
	OnError      []string `yaml:"onError"`
}
