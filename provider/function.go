package provider

import (
	"context"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Function is a question that programs may ask; it changes nothing. Make one with NewFunction.
type Function struct {
	token       string
	description string
	in, out     *object
	call        func(ctx context.Context, args properties) (properties, []Failure, error)
}

// NewFunction declares a function package:module:name over structs with `pulumi` tags.
func NewFunction[In, Out any](token, description string, call func(context.Context, In) (Out, error)) Function {
	in, out := objectOf[In](), objectOf[Out]()
	return Function{token: token, description: description, in: in, out: out,
		call: func(ctx context.Context, args properties) (properties, []Failure, error) {
			checked, failures := in.complete(args)
			if len(failures) > 0 {
				return nil, failures, nil
			}
			var decoded In
			if err := in.decode(ctx, checked, &decoded); err != nil {
				return nil, nil, err
			}
			answer, err := call(ctx, decoded)
			if err != nil {
				return nil, nil, err
			}
			result, err := out.encode(answer)
			return result, nil, err
		}}
}

func (f Function) schema() map[string]any {
	inputs, requiredInputs := f.in.inputs()
	outputs, required := f.out.outputs()
	return map[string]any{
		"description": f.description,
		"inputs":      map[string]any{"type": "object", "properties": inputs, "required": requiredInputs},
		"outputs":     map[string]any{"type": "object", "properties": outputs, "required": required},
	}
}

func (s *server) Invoke(ctx context.Context, req *pulumirpc.InvokeRequest) (*pulumirpc.InvokeResponse, error) {
	ctx, end := s.scope(ctx, 0)
	defer end()
	f, ok := s.functions[req.GetTok()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "package %s %s has no function %q", s.pkg.Name, s.pkg.Version,
			req.GetTok())
	}
	args, err := unmarshal(ctx, req.GetArgs())
	if err != nil {
		return nil, err
	}
	result, failures, err := f.call(ctx, args)
	if err != nil {
		return nil, statusOf(err)
	}
	wire, err := marshal(result)
	return &pulumirpc.InvokeResponse{Return: wire, Failures: wireFailures(failures)}, err
}
