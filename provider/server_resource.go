package provider

import (
	"context"
	"errors"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// OwnershipTrailer is the gRPC trailer in which Read says the Ownership of what it found, for engines that want to
// know.
const OwnershipTrailer = "deployctl-ownership"

// OwnerTrailer is the trailer in which Read says whose what it found is, if it is Unowned and somebody is known.
const OwnerTrailer = "deployctl-owner"

func (s *server) Check(ctx context.Context, req *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	ctx, end := s.scope(ctx, 0)
	defer end()
	who := s.identity(req.GetUrn())
	r, err := s.resource(who)
	if err != nil {
		return nil, err
	}
	news, err := unmarshal(ctx, req.GetNews())
	if err != nil {
		return nil, err
	}
	olds, err := unmarshal(ctx, req.GetOlds())
	if err != nil {
		return nil, err
	}
	checked, failures := r.in.complete(news)
	failures = append(failures, r.autoname(checked, olds, req)...)
	failures = append(failures, r.ops.check(ctx, who, checked)...)
	inputs, err := marshal(checked)
	return &pulumirpc.CheckResponse{Inputs: inputs, Failures: wireFailures(failures)}, err
}

// autoname puts a physical name into the inputs where the program gave none: the one that the resource has, the one
// that the engine wants, or one made of the seed.
func (r Resource) autoname(checked, olds properties, req *pulumirpc.CheckRequest) []Failure {
	for _, f := range r.in.fields {
		key := resource.PropertyKey(f.name)
		if !f.autoname || has(checked, key) {
			continue
		}
		if old, ok := olds[key]; ok {
			checked[key] = old
			continue
		}
		name, reason := r.physicalName(req)
		if reason != "" {
			return []Failure{{f.name, reason}}
		}
		checked[key] = resource.NewProperty(name)
	}
	return nil
}

func (r Resource) physicalName(req *pulumirpc.CheckRequest) (name, reason string) {
	wish := req.GetAutonaming()
	switch {
	case wish == nil:
	case wish.GetMode() == pulumirpc.CheckRequest_AutonamingOptions_DISABLE:
		return "", "must be given, because automatic names are turned off"
	case wish.GetProposedName() != "":
		return wish.GetProposedName(), ""
	}
	var naming Naming
	if r.naming != nil {
		naming = *r.naming
	}
	name, err := Name(req.GetRandomSeed(), urn.URN(req.GetUrn()).Name(), naming)
	if err != nil {
		return "", err.Error()
	}
	return name, ""
}

// bags are the wire forms of a state.
type bags struct {
	urn, id                string
	news, olds, oldOutputs *structpb.Struct
}

func (s *server) state(ctx context.Context, b bags) (Resource, state, error) {
	st := state{Identity: s.identity(b.urn), id: b.id}
	r, err := s.resource(st.Identity)
	if err != nil {
		return r, st, err
	}
	if st.news, err = unmarshal(ctx, b.news); err != nil {
		return r, st, err
	}
	if st.oldOutputs, err = unmarshal(ctx, b.oldOutputs); err != nil {
		return r, st, err
	}
	st.olds, err = unmarshal(ctx, b.olds)
	return r, st, err
}

func (s *server) Diff(ctx context.Context, req *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	ctx, end := s.scope(ctx, 0)
	defer end()
	olds := req.GetOldInputs()
	if olds == nil {
		olds = req.GetOlds()
	}
	r, st, err := s.state(ctx, bags{req.GetUrn(), req.GetId(), req.GetNews(), olds, req.GetOlds()})
	if err != nil {
		return nil, err
	}
	details, deleteFirst, err := r.ops.diff(ctx, st)
	if err != nil {
		return nil, statusOf(err)
	}
	return diffResponse(details, deleteFirst, r.stables()), nil
}

// stables are the outputs that no update changes.
func (r Resource) stables() []string {
	var names []string
	for _, f := range r.out.fields {
		if in := r.in.field(f.name); f.stable || in != nil && in.replace {
			names = append(names, f.name)
		}
	}
	return names
}

func (s *server) Create(ctx context.Context, req *pulumirpc.CreateRequest) (*pulumirpc.CreateResponse, error) {
	ctx, end := s.scope(ctx, req.GetTimeout())
	defer end()
	r, st, err := s.state(ctx, bags{urn: req.GetUrn(), news: req.GetProperties()})
	if err != nil {
		return nil, err
	}
	id, outputs, err := r.bring(ctx, st, req.GetPreview())
	if err != nil {
		return nil, err
	}
	return &pulumirpc.CreateResponse{Id: id, Properties: outputs}, nil
}

func (s *server) Update(ctx context.Context, req *pulumirpc.UpdateRequest) (*pulumirpc.UpdateResponse, error) {
	ctx, end := s.scope(ctx, req.GetTimeout())
	defer end()
	r, st, err := s.state(ctx, bags{req.GetUrn(), req.GetId(), req.GetNews(), req.GetOldInputs(), req.GetOlds()})
	if err != nil {
		return nil, err
	}
	_, outputs, err := r.bring(ctx, st, req.GetPreview())
	if err != nil {
		return nil, err
	}
	return &pulumirpc.UpdateResponse{Properties: outputs}, nil
}

// bring reconciles, or tells in a preview what would come of it. Errors are statuses.
func (r Resource) bring(ctx context.Context, st state, preview bool) (string, *structpb.Struct, error) {
	if preview {
		outputs, err := r.ops.preview(ctx, st)
		if err != nil {
			return "", nil, statusOf(err)
		}
		wire, err := marshal(outputs)
		return st.id, wire, err
	}
	id, outputs, err := r.ops.reconcile(ctx, st)
	if notReady := (*NotReady)(nil); errors.As(err, &notReady) && id == "" {
		id = st.id
	}
	if err != nil && (id == "" || st.id != "" && !definite(err)) {
		return "", nil, statusOf(err) // what is known to the engine may be asked for again
	}
	wire, marshalErr := marshal(outputs)
	if marshalErr != nil {
		return "", nil, marshalErr
	}
	if err != nil {
		inputs, marshalErr := marshal(st.news)
		if marshalErr != nil {
			return "", nil, marshalErr
		}
		return "", nil, partialStatus(id, wire, inputs, err)
	}
	return id, wire, nil
}

func (s *server) Read(ctx context.Context, req *pulumirpc.ReadRequest) (*pulumirpc.ReadResponse, error) {
	ctx, end := s.scope(ctx, req.GetTimeout())
	defer end()
	b := bags{urn: req.GetUrn(), id: req.GetId(), olds: req.GetInputs(), oldOutputs: req.GetProperties()}
	r, st, err := s.state(ctx, b)
	if err != nil {
		return nil, err
	}
	f, err := r.ops.read(ctx, st)
	if err != nil {
		return nil, statusOf(err)
	}
	// A trailer cannot be set when the server is called directly, where nobody could see it either.
	_ = grpc.SetTrailer(ctx, metadata.Pairs(OwnershipTrailer, string(f.ownership)))
	if f.owner != "" && f.ownership == Unowned {
		_ = grpc.SetTrailer(ctx, metadata.Pairs(OwnerTrailer, f.owner))
	}
	switch f.ownership {
	case Absent:
		return &pulumirpc.ReadResponse{}, nil
	case Undecidable:
		return &pulumirpc.ReadResponse{Id: req.GetId(), Properties: req.GetProperties(), Inputs: req.GetInputs()}, nil
	}
	resp := &pulumirpc.ReadResponse{Id: f.id}
	if resp.Inputs, err = marshal(f.inputs); err != nil {
		return nil, err
	}
	resp.Properties, err = marshal(f.outputs)
	return resp, err
}

func (s *server) Delete(ctx context.Context, req *pulumirpc.DeleteRequest) (*emptypb.Empty, error) {
	ctx, end := s.scope(ctx, req.GetTimeout())
	defer end()
	b := bags{urn: req.GetUrn(), id: req.GetId(), olds: req.GetOldInputs(), oldOutputs: req.GetProperties()}
	r, st, err := s.state(ctx, b)
	if err != nil {
		return nil, err
	}
	if err := r.ops.delete(ctx, st); err != nil {
		return nil, statusOf(err)
	}
	return &emptypb.Empty{}, nil
}
