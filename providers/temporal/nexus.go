package temporal

import (
	"context"
	"fmt"
	"regexp"

	"github.com/deployctl/deployctl/provider"
	"go.temporal.io/api/nexus/v1"
	"go.temporal.io/api/operatorservice/v1"
	"google.golang.org/grpc/codes"
)

// NexusEndpoint is deployctl:temporal:NexusEndpoint.
type NexusEndpoint struct{ conn *connection }

// NexusEndpointIn declares a Nexus endpoint.
type NexusEndpointIn struct {
	Name        string `pulumi:"name,autoname,replace" doc:"The endpoint's name; without it, the resource's name and a random suffix."`
	Description string `pulumi:"description,optional" doc:"A description, which may be Markdown."`
	Namespace   string `pulumi:"targetNamespace,optional" doc:"The namespace whose workers handle the operations, with taskQueue."`
	TaskQueue   string `pulumi:"taskQueue,optional" doc:"The task queue of these workers."`
	URL         string `pulumi:"url,optional" doc:"The URL of a server outside that handles the operations, instead of workers."`
}

// NexusEndpointOut describes an endpoint that exists.
type NexusEndpointOut struct {
	NexusEndpointIn
	Owner string `pulumi:"owner" doc:"The mark that it is this resource's."`
}

func (o *NexusEndpointOut) owner() string {
	if o == nil {
		return ""
	}
	return o.Owner
}

// Describe is the type's text in the schema.
func (n *NexusEndpoint) Describe() string {
	return "A Nexus endpoint of a Temporal server. Its ID, for imports, is its name."
}

// Naming are the server's rules.
func (n *NexusEndpoint) Naming() provider.Naming {
	return provider.Naming{MaxLen: 64, Alphabet: "abcdefghijklmnopqrstuvwxyz0123456789-"}
}

var endpointName = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9-]{0,198}[a-zA-Z0-9]$`)

// Check wants one target.
func (n *NexusEndpoint) Check(_ context.Context, in provider.Inputs[NexusEndpointIn]) []provider.Failure {
	var failures []provider.Failure
	v := in.Value
	if v.Name != "" && !endpointName.MatchString(v.Name) {
		failures = append(failures, provider.Failure{Property: "name", Reason: fmt.Sprintf(
			"%q is not the name of an endpoint: a letter, then letters, digits and hyphens, at the end no hyphen", v.Name)})
	}
	if in.Known("url", "targetNamespace", "taskQueue") &&
		((v.Namespace == "") != (v.TaskQueue == "") || (v.URL == "") == (v.TaskQueue == "")) {
		failures = append(failures, provider.Failure{Property: "url",
			Reason: "or targetNamespace together with taskQueue must be given, and not both"})
	}
	return failures
}

// Preview knows the mark.
func (n *NexusEndpoint) Preview(
	_ context.Context, r provider.Request[NexusEndpointIn, NexusEndpointOut],
) (NexusEndpointOut, error) {
	return NexusEndpointOut{Owner: r.Owner()}, nil
}

// endpointSeen is an endpoint as the server has it.
type endpointSeen struct {
	NexusEndpointIn
	mark
	id      string
	version int64
}

// endpoint returns nil if there is none of that name.
func (o *opened) endpoint(ctx context.Context, name string) (*endpointSeen, error) {
	got, err := o.operator.ListNexusEndpoints(ctx, &operatorservice.ListNexusEndpointsRequest{Name: name})
	if is(err, codes.NotFound) || err == nil && len(got.GetEndpoints()) == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return endpointOf(got.GetEndpoints()[0]), nil
}

func endpointOf(e *nexus.Endpoint) *endpointSeen {
	spec := e.GetSpec()
	about := spec.GetDescription()
	description, _ := valueOf(about).(string)
	return &endpointSeen{
		NexusEndpointIn: NexusEndpointIn{Name: spec.GetName(), Description: description,
			Namespace: spec.GetTarget().GetWorker().GetNamespace(), TaskQueue: spec.GetTarget().GetWorker().GetTaskQueue(),
			URL: spec.GetTarget().GetExternal().GetUrl()},
		mark: mark{string(about.GetMetadata()[ownerKey]), string(about.GetMetadata()[stackKey])},
		id:   e.GetId(), version: e.GetVersion(),
	}
}

// spec is what is declared, with a mark in the metadata of the description.
func (in NexusEndpointIn) spec(m mark) (*nexus.EndpointSpec, error) {
	about, err := payload(in.Description)
	if err != nil {
		return nil, err
	}
	for key, text := range m.pairs() {
		about.Metadata[key] = []byte(text)
	}
	target := &nexus.EndpointTarget{Variant: &nexus.EndpointTarget_Worker_{
		Worker: &nexus.EndpointTarget_Worker{Namespace: in.Namespace, TaskQueue: in.TaskQueue}}}
	if in.URL != "" {
		target.Variant = &nexus.EndpointTarget_External_{External: &nexus.EndpointTarget_External{Url: in.URL}}
	}
	return &nexus.EndpointSpec{Name: in.Name, Description: about, Target: target}, nil
}

// attempts is how often something is written that others write at the same time.
const attempts = 3

// Reconcile creates the endpoint, or updates it if it differs.
func (n *NexusEndpoint) Reconcile(
	ctx context.Context, r provider.Request[NexusEndpointIn, NexusEndpointOut],
) (string, NexusEndpointOut, error) {
	o, err := n.conn.get()
	if err != nil {
		return "", NexusEndpointOut{}, err
	}
	name, thing, want := r.News.Name, "Nexus endpoint "+r.News.Name, markOf(r.Identity)
	spec, err := r.News.spec(want)
	if err != nil {
		return "", NexusEndpointOut{}, err
	}
	for range attempts {
		seen, err := o.endpoint(ctx, name)
		switch {
		case err != nil:
		case seen == nil:
			_, err = o.operator.CreateNexusEndpoint(ctx, &operatorservice.CreateNexusEndpointRequest{Spec: spec})
		default:
			if err := seen.refuses(r.Identity, thing, name, r.ID != "", r.Output.owner()); err != nil {
				return "", NexusEndpointOut{}, err
			}
			if seen.NexusEndpointIn != r.News || seen.mark != want {
				_, err = o.operator.UpdateNexusEndpoint(ctx, &operatorservice.UpdateNexusEndpointRequest{
					Id: seen.id, Version: seen.version, Spec: spec})
			}
		}
		switch {
		case err == nil:
			return name, NexusEndpointOut{NexusEndpointIn: r.News, Owner: r.Owner()}, nil
		case conflicts(err), seen == nil && is(err, codes.AlreadyExists), seen != nil && is(err, codes.NotFound):
		default:
			return "", NexusEndpointOut{}, o.failed(r.Redact, thing, err)
		}
	}
	return "", NexusEndpointOut{}, busy(thing)
}

// conflicts says whether what was to be written has changed since it was read.
func conflicts(err error) bool { return is(err, codes.FailedPrecondition) || is(err, codes.Aborted) }

func busy(thing string) error {
	return &provider.NotDone{Err: fmt.Errorf("%s is being changed by others at the same time, or the server does not "+
		"accept the change as things are", thing)}
}

// Read answers by the ID, or by the name in the inputs.
func (n *NexusEndpoint) Read(
	ctx context.Context, r provider.Lookup[NexusEndpointIn, NexusEndpointOut],
) (found provider.Found[NexusEndpointIn, NexusEndpointOut], err error) {
	o, err := n.conn.get()
	if err != nil {
		return found, err
	}
	name := r.ID
	if name == "" && r.Inputs != nil {
		name = r.Inputs.Name
	}
	seen, err := o.endpoint(ctx, name)
	switch {
	case err != nil:
		return found, o.failed(r.Redact, "Nexus endpoint "+name, err)
	case seen == nil:
		found.Ownership = provider.Absent
		return found, nil
	}
	remembered := r.Output.owner()
	return provider.Found[NexusEndpointIn, NexusEndpointOut]{Ownership: seen.ownership(r.Identity, remembered), ID: name,
		Owner: seen.people(), Inputs: seen.NexusEndpointIn, Output: NexusEndpointOut{
			NexusEndpointIn: seen.NexusEndpointIn, Owner: seen.kept(r.Identity, remembered)}}, nil
}

// List goes through all endpoints.
func (n *NexusEndpoint) List(ctx context.Context, stack provider.Identity, found func(id string) error) error {
	o, err := n.conn.listed()
	if err != nil || o == nil {
		return err
	}
	for request := (&operatorservice.ListNexusEndpointsRequest{}); ; {
		page, err := o.operator.ListNexusEndpoints(ctx, request)
		if err != nil {
			return o.failed(unchanged, "the list of Nexus endpoints", err)
		}
		for _, one := range page.GetEndpoints() {
			if seen := endpointOf(one); seen.of(stack) {
				if err := found(seen.Name); err != nil {
					return err
				}
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

// Delete leaves alone what another owner has taken over.
func (n *NexusEndpoint) Delete(
	ctx context.Context, r provider.Existing[NexusEndpointIn, NexusEndpointOut],
) error {
	o, err := n.conn.get()
	if err != nil {
		return err
	}
	for range attempts {
		seen, err := o.endpoint(ctx, r.ID)
		if err == nil {
			if seen == nil || seen.lost(r.Identity, r.Output.Owner) {
				return nil
			}
			_, err = o.operator.DeleteNexusEndpoint(ctx, &operatorservice.DeleteNexusEndpointRequest{
				Id: seen.id, Version: seen.version})
		}
		switch {
		case err == nil, is(err, codes.NotFound):
			return nil
		case !conflicts(err):
			return o.failed(r.Redact, "Nexus endpoint "+r.ID, err)
		}
	}
	return busy("Nexus endpoint " + r.ID)
}
