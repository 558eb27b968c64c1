package temporal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"time"

	"github.com/deployctl/deployctl/provider"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Namespace is deployctl:temporal:Namespace.
type Namespace struct{ conn *connection }

// NamespaceIn declares a namespace.
type NamespaceIn struct {
	Name        string            `pulumi:"name,autoname,replace" doc:"The namespace's name; without it, the resource's name and a random suffix."`
	Retention   Duration          `pulumi:"retention,optional" default:"3d" doc:"How long closed workflows are kept, such as 72h or 3d."`
	Description string            `pulumi:"description,optional" doc:"A description. The server cannot clear it: one that is taken out of the program stays."`
	OwnerEmail  string            `pulumi:"ownerEmail,optional" doc:"Whom to ask. The server cannot clear it, either."`
	Data        map[string]string `pulumi:"data,optional" doc:"Texts by names. Only those that are declared are managed; none may be empty."`
}

// NamespaceOut describes a namespace that exists.
type NamespaceOut struct {
	NamespaceIn
	Owner string `pulumi:"owner" doc:"The mark that it is this resource's."`
}

func (o *NamespaceOut) owner() string {
	if o == nil {
		return ""
	}
	return o.Owner
}

// Describe is the type's text in the schema.
func (n *Namespace) Describe() string {
	return "A namespace of a Temporal server. Its ID, for imports, is its name. A delete ends all workflows in it and " +
		"removes their histories."
}

// Naming are the server's rules.
func (n *Namespace) Naming() provider.Naming {
	return provider.Naming{MaxLen: 64, Alphabet: "abcdefghijklmnopqrstuvwxyz0123456789-"}
}

var namespaceName = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]{0,999}$`)

// Check knows the rules for names, and what the server cannot keep.
func (n *Namespace) Check(_ context.Context, in provider.Inputs[NamespaceIn]) []provider.Failure {
	var failures []provider.Failure
	fail := func(property, format string, args ...any) {
		failures = append(failures, provider.Failure{Property: property, Reason: fmt.Sprintf(format, args...)})
	}
	if name := in.Value.Name; name != "" && !namespaceName.MatchString(name) {
		fail("name", "%q is not the name of a namespace: letters, digits, hyphens, dots and underscores", name)
	}
	if in.Known("retention") && in.Value.Retention.span() < time.Hour {
		fail("retention", "must be an hour at least")
	}
	for name, text := range in.Value.Data {
		switch {
		case name == ownerKey || name == stackKey:
			fail("data", "may not hold %q, which marks ownership", name)
		case text == "" && in.Known("data"):
			fail("data", "%q is empty, which the server cannot tell from none", name)
		}
	}
	return failures
}

// Preview knows the mark, and time spans in the form that they become.
func (n *Namespace) Preview(
	_ context.Context, r provider.Request[NamespaceIn, NamespaceOut],
) (NamespaceOut, error) {
	return NamespaceOut{NamespaceIn: r.News, Owner: r.Owner()}, nil
}

// namespaceSeen is a namespace as the server has it.
type namespaceSeen struct {
	NamespaceIn
	mark
	deleting bool
}

// describe returns nil if there is no such namespace.
func (o *opened) describe(ctx context.Context, name string) (*namespaceSeen, error) {
	got, err := o.frontend.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: name})
	if is(err, codes.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return namespaceOf(got), nil
}

func namespaceOf(got *workflowservice.DescribeNamespaceResponse) *namespaceSeen {
	info := got.GetNamespaceInfo()
	data := maps.Clone(info.GetData())
	maps.DeleteFunc(data, func(name, text string) bool { return text == "" || name == ownerKey || name == stackKey })
	return &namespaceSeen{
		NamespaceIn: NamespaceIn{Name: info.GetName(), Description: info.GetDescription(),
			OwnerEmail: info.GetOwnerEmail(), Data: data,
			Retention: durationOf(got.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration())},
		mark:     mark{info.GetData()[ownerKey], info.GetData()[stackKey]},
		deleting: info.GetState() == enums.NAMESPACE_STATE_DELETED,
	}
}

// Reconcile registers the namespace with its mark, or updates what differs, and waits until it can be used.
func (n *Namespace) Reconcile(
	ctx context.Context, r provider.Request[NamespaceIn, NamespaceOut],
) (string, NamespaceOut, error) {
	o, err := n.conn.get()
	if err != nil {
		return "", NamespaceOut{}, err
	}
	name, thing := r.News.Name, "namespace "+r.News.Name
	seen, err := o.describe(ctx, name)
	if err == nil && seen == nil {
		if err = o.register(ctx, r.News, markOf(r.Identity)); err == nil || is(err, codes.AlreadyExists) {
			seen, err = o.describe(ctx, name)
		}
	}
	switch {
	case err != nil:
		return "", NamespaceOut{}, o.failed(r.Redact, thing, err)
	case seen == nil:
		return "", NamespaceOut{}, &provider.Unknown{Err: fmt.Errorf("%s comes and goes", thing)}
	case seen.deleting:
		return "", NamespaceOut{}, &provider.NotDone{Err: fmt.Errorf("%s is being deleted", thing)}
	}
	if err := seen.refuses(r.Identity, thing, name, r.ID != "", r.Output.owner()); err != nil {
		return "", NamespaceOut{}, err
	}
	out := NamespaceOut{NamespaceIn: r.News, Owner: r.Owner()}
	if change := seen.change(r); change != nil {
		if _, err := o.frontend.UpdateNamespace(ctx, change); stale(err) {
			return name, out, unknownYet(name)
		} else if err != nil {
			return name, out, o.failed(r.Redact, thing, err)
		}
	}
	return name, out, o.usable(ctx, r.Redact, name)
}

func (o *opened) register(ctx context.Context, in NamespaceIn, m mark) error {
	data := m.pairs()
	maps.Copy(data, in.Data)
	_, err := o.frontend.RegisterNamespace(ctx, &workflowservice.RegisterNamespaceRequest{
		Namespace: in.Name, Description: in.Description, OwnerEmail: in.OwnerEmail, Data: data,
		WorkflowExecutionRetentionPeriod: in.Retention.proto(),
		HistoryArchivalState:             enums.ARCHIVAL_STATE_DISABLED,
		VisibilityArchivalState:          enums.ARCHIVAL_STATE_DISABLED,
	})
	return err
}

// change is the update that is needed, nil for none. The server merges data, so what is no longer declared becomes
// empty, and what others have put there stays.
func (s *namespaceSeen) change(r provider.Request[NamespaceIn, NamespaceOut]) *workflowservice.UpdateNamespaceRequest {
	want := markOf(r.Identity).pairs()
	maps.Copy(want, r.News.Data)
	if r.Olds != nil {
		for name := range r.Olds.Data {
			if _, ok := want[name]; !ok {
				want[name] = ""
			}
		}
	}
	have := s.pairs()
	maps.Copy(have, s.Data)
	maps.DeleteFunc(want, func(name, text string) bool { return have[name] == text })
	info := &namespace.UpdateNamespaceInfo{Data: want}
	if r.News.Description != s.Description {
		info.Description = r.News.Description
	}
	if r.News.OwnerEmail != s.OwnerEmail {
		info.OwnerEmail = r.News.OwnerEmail
	}
	if r.News.Retention == s.Retention && len(want) == 0 && info.Description == "" && info.OwnerEmail == "" {
		return nil
	}
	return &workflowservice.UpdateNamespaceRequest{Namespace: r.News.Name, UpdateInfo: info,
		Config: &namespace.NamespaceConfig{WorkflowExecutionRetentionTtl: r.News.Retention.proto()}}
}

// stale says whether a frontend may not know yet that a namespace exists: each has a list of its own, which it
// refreshes. In that there may be none, or an earlier one of that name, which is deleted.
func stale(err error) bool {
	if err == nil {
		return false
	}
	var deleted *serviceerror.NamespaceInvalidState
	return is(err, codes.NotFound) || errors.As(serviceerror.FromStatus(status.Convert(err)), &deleted)
}

// unknownYet is that something is to be looked at again when the frontends have refreshed their lists.
func unknownYet(name string) error {
	return &provider.NotReady{For: "namespace " + name + " to be known to the server's frontends", After: glance}
}

// glance is the pause between two looks at what appears soon.
const glance = 300 * time.Millisecond

// usable asks something that only a frontend can answer that knows the namespace.
func (o *opened) usable(ctx context.Context, redact func(string) string, name string) error {
	_, err := o.frontend.CountWorkflowExecutions(ctx,
		&workflowservice.CountWorkflowExecutionsRequest{Namespace: name, Query: "WorkflowType = 'none'"})
	switch {
	case stale(err):
		return unknownYet(name)
	case is(err, codes.PermissionDenied), is(err, codes.Unimplemented), err == nil:
		return nil // who may make namespaces need not be allowed to look into them
	}
	return o.failed(redact, "namespace "+name, err)
}

// Read answers by the ID, or by the name in the inputs.
func (n *Namespace) Read(
	ctx context.Context, r provider.Lookup[NamespaceIn, NamespaceOut],
) (found provider.Found[NamespaceIn, NamespaceOut], err error) {
	o, err := n.conn.get()
	if err != nil {
		return found, err
	}
	name := r.ID
	if name == "" && r.Inputs != nil {
		name = r.Inputs.Name
	}
	seen, err := o.describe(ctx, name)
	if err != nil {
		return found, o.failed(r.Redact, "namespace "+name, err)
	}
	if seen == nil || seen.deleting {
		found.Ownership = provider.Absent
		return found, nil
	}
	in := seen.NamespaceIn
	if was := r.Inputs; was != nil { // what is not declared is not managed
		maps.DeleteFunc(in.Data, func(name, _ string) bool { return was.Data[name] == "" })
		if was.Description == "" {
			in.Description = ""
		}
		if was.OwnerEmail == "" {
			in.OwnerEmail = ""
		}
	}
	if len(in.Data) == 0 {
		in.Data = nil
	}
	remembered := r.Output.owner()
	return provider.Found[NamespaceIn, NamespaceOut]{Ownership: seen.ownership(r.Identity, remembered), ID: name,
		Owner: seen.people(), Inputs: in,
		Output: NamespaceOut{NamespaceIn: in, Owner: seen.kept(r.Identity, remembered)}}, nil
}

// List goes through all namespaces.
func (n *Namespace) List(ctx context.Context, stack provider.Identity, found func(id string) error) error {
	o, err := n.conn.listed()
	if err != nil || o == nil {
		return err
	}
	for request := (&workflowservice.ListNamespacesRequest{}); ; {
		page, err := o.frontend.ListNamespaces(ctx, request)
		if err != nil {
			return o.failed(unchanged, "the list of namespaces", err)
		}
		for _, one := range page.GetNamespaces() {
			if seen := namespaceOf(one); seen.of(stack) && !seen.deleting {
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

// unchanged is Redact where nothing is secret but what is configured.
func unchanged(text string) string { return text }

// Delete leaves alone what another owner has taken over. The server renames the namespace, which frees its name, and
// removes what is in it afterwards.
func (n *Namespace) Delete(ctx context.Context, r provider.Existing[NamespaceIn, NamespaceOut]) error {
	o, err := n.conn.get()
	if err != nil {
		return err
	}
	for range looks {
		seen, err := o.describe(ctx, r.ID)
		if err == nil {
			if seen == nil || seen.lost(r.Identity, r.Output.Owner) {
				return nil
			}
			_, err = o.operator.DeleteNamespace(ctx, &operatorservice.DeleteNamespaceRequest{Namespace: r.ID})
		}
		switch {
		case err == nil:
			return nil
		case !stale(err):
			return o.failed(r.Redact, "namespace "+r.ID, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(glance):
		}
	}
	return &provider.NotDone{Err: fmt.Errorf("namespace %s exists, and the server's frontends do not know it", r.ID)}
}

// looks is how often a delete looks whether a frontend knows what exists: some seconds, which are longer than frontends
// take to refresh their lists.
const looks = 40
