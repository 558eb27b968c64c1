package temporal

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/provider"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
)

// SearchAttribute is deployctl:temporal:SearchAttribute.
type SearchAttribute struct{ conn *connection }

// SearchAttributeIn declares a search attribute.
type SearchAttributeIn struct {
	Name      string `pulumi:"name,replace" doc:"The attribute's name."`
	Kind      string `pulumi:"type,replace" doc:"Keyword, KeywordList, Text, Int, Double, Bool or Datetime."`
	Namespace string `pulumi:"namespace,optional,replace" doc:"The namespace; without it deployctl:temporalNamespace."`
}

// SearchAttributeOut describes a search attribute that exists.
type SearchAttributeOut struct{ SearchAttributeIn }

// Describe is the type's text in the schema.
func (a *SearchAttribute) Describe() string {
	return "A custom search attribute of a Temporal namespace. Its ID, for imports, is NAMESPACE/NAME. The server keeps " +
		"nothing of it but its name and type, so two stacks that declare the same one share it, and a delete by either " +
		"removes it. Another type replaces it: the old one is removed first, and its values are no longer found."
}

var (
	attributeName  = regexp.MustCompile(`^[a-zA-Z][a-zA-Z0-9_-]*$`)
	attributeKinds = []string{"Keyword", "KeywordList", "Text", "Int", "Double", "Bool", "Datetime"}
)

// Check knows names and types.
func (a *SearchAttribute) Check(_ context.Context, in provider.Inputs[SearchAttributeIn]) []provider.Failure {
	var failures []provider.Failure
	if name := in.Value.Name; in.Known("name") && !attributeName.MatchString(name) {
		failures = append(failures, provider.Failure{Property: "name", Reason: fmt.Sprintf(
			"%q is not the name of a search attribute: a letter, then letters, digits, underscores and hyphens", name)})
	}
	if in.Known("type") && !slices.Contains(attributeKinds, in.Value.Kind) {
		failures = append(failures, provider.Failure{Property: "type",
			Reason: "must be one of " + strings.Join(attributeKinds, ", ")})
	}
	return failures
}

// Diff removes the old one first: it has the name.
func (a *SearchAttribute) Diff(
	_ context.Context, r provider.Request[SearchAttributeIn, SearchAttributeOut],
) (provider.Change, error) {
	var change provider.Change
	was := r.Olds
	for name, differs := range map[string]bool{
		"name":      was == nil || !r.Known("name") || was.Name != r.News.Name,
		"type":      was == nil || !r.Known("type") || was.Kind != r.News.Kind,
		"namespace": was == nil || !r.Known("namespace") || was.Namespace != r.News.Namespace,
	} {
		if differs {
			change.Replaces = append(change.Replaces, name)
		}
	}
	slices.Sort(change.Replaces)
	change.DeleteFirst = slices.Contains(change.Replaces, "type")
	return change, nil
}

// kind is the type of an attribute as the server has it, empty if there is none.
func (o *opened) kind(ctx context.Context, p place) (string, error) {
	got, err := o.operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: p.namespace})
	if err != nil {
		return "", err
	}
	kind, ok := got.GetCustomAttributes()[p.name]
	if !ok {
		return "", nil
	}
	return kind.String(), nil
}

// Reconcile adds the attribute if it is not there, and waits until queries may name it.
func (a *SearchAttribute) Reconcile(
	ctx context.Context, r provider.Request[SearchAttributeIn, SearchAttributeOut],
) (string, SearchAttributeOut, error) {
	o, err := a.conn.get()
	if err != nil {
		return "", SearchAttributeOut{}, err
	}
	p, err := o.place(r.ID, r.News.Namespace, r.News.Name)
	if err != nil {
		return "", SearchAttributeOut{}, err
	}
	thing := "search attribute " + p.id()
	kind, err := o.kind(ctx, p)
	if err == nil && kind == "" {
		_, err = o.operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: p.namespace,
			SearchAttributes: map[string]enums.IndexedValueType{p.name: kindOf(r.News.Kind)}})
		if err == nil {
			kind, err = o.kind(ctx, p) // the server takes one that was there a moment ago for the same
		}
	}
	switch {
	case err != nil:
		return "", SearchAttributeOut{}, o.failed(r.Redact, thing, err)
	case kind != "" && kind != r.News.Kind:
		return "", SearchAttributeOut{}, fmt.Errorf("%s exists with the type %s: declare that, or choose another name",
			thing, kind)
	}
	out := SearchAttributeOut{r.News}
	_, err = o.frontend.CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: p.namespace, Query: fmt.Sprintf("`%s` IS NULL", p.name)})
	switch {
	case kind == "", is(err, codes.InvalidArgument), stale(err):
		return p.id(), out, &provider.NotReady{For: thing + " to be known to the server's frontends"}
	case err == nil, is(err, codes.PermissionDenied), is(err, codes.Unimplemented):
		return p.id(), out, nil
	}
	return p.id(), out, o.failed(r.Redact, thing, err)
}

func kindOf(name string) enums.IndexedValueType {
	kind, _ := enums.IndexedValueTypeFromString(name)
	return kind
}

// Read by the ID finds what is managed. What is found by its name is as good as a new one, and whose it is, nobody can
// say: that is left to the create, which changes nothing of it.
func (a *SearchAttribute) Read(
	ctx context.Context, r provider.Lookup[SearchAttributeIn, SearchAttributeOut],
) (found provider.Found[SearchAttributeIn, SearchAttributeOut], err error) {
	o, err := a.conn.get()
	if err != nil {
		return found, err
	}
	var was SearchAttributeIn
	if r.Inputs != nil {
		was = *r.Inputs
	}
	p, err := o.place(r.ID, was.Namespace, was.Name)
	if err != nil {
		return found, err
	}
	kind, err := o.kind(ctx, p)
	switch {
	case err != nil:
		return found, o.failed(r.Redact, "search attribute "+p.id(), err)
	case kind == "":
		found.Ownership = provider.Absent
		return found, nil
	case r.ID == "":
		found.Ownership = provider.Undecidable
		return found, nil
	}
	in := SearchAttributeIn{Name: p.name, Kind: kind, Namespace: o.declared(p, was.Namespace)}
	return provider.Found[SearchAttributeIn, SearchAttributeOut]{Ownership: provider.Owned, ID: p.id(), Inputs: in,
		Output: SearchAttributeOut{in}}, nil
}

// Delete removes the attribute.
func (a *SearchAttribute) Delete(
	ctx context.Context, r provider.Existing[SearchAttributeIn, SearchAttributeOut],
) error {
	o, err := a.conn.get()
	if err != nil {
		return err
	}
	p, err := o.place(r.ID, "", "")
	if err != nil {
		return err
	}
	if seen, err := o.describe(ctx, p.namespace); err == nil && seen == nil {
		return nil // it went with its namespace
	}
	kind, err := o.kind(ctx, p)
	if err == nil && kind != "" {
		_, err = o.operator.RemoveSearchAttributes(ctx, &operatorservice.RemoveSearchAttributesRequest{
			Namespace: p.namespace, SearchAttributes: []string{p.name}})
	}
	if err == nil || is(err, codes.NotFound) {
		return nil
	}
	return o.failed(r.Redact, "search attribute "+p.id(), err)
}
