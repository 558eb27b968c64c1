package http

import (
	"context"
	"errors"
	"reflect"
	"strings"

	"github.com/deployctl/deployctl/provider"
)

// Resource is deployctl:http:Resource.
type Resource struct{ conn *connection }

// Describe is the type's text in the schema.
func (r *Resource) Describe() string {
	return "A resource of a REST API that speaks JSON. Paths and bodies of its requests have the placeholders {id}, " +
		"{name}, {owner}, {properties} and {properties.PATH}, and of an update and a delete {observed.PATH}. A replacement " +
		"deletes the old one first. An import needs the resource's declaration, with its ID in the option import."
}

// Diff replaces where a change of the properties has no request, and always deletes the old one first: it may be what
// the new one's lookup, or its name, would find.
func (r *Resource) Diff(
	_ context.Context, req provider.Request[ResourceIn, ResourceOut],
) (change provider.Change, err error) {
	if req.Olds == nil {
		return change, errors.New("the inputs of the last success are not known")
	}
	was, is := reflect.ValueOf(*req.Olds), reflect.ValueOf(req.News)
	for i := range was.NumField() {
		name, _, _ := strings.Cut(was.Type().Field(i).Tag.Get("pulumi"), ",")
		switch {
		case req.Known(name) && reflect.DeepEqual(was.Field(i).Interface(), is.Field(i).Interface()):
		case name == "name", name == "properties" && req.News.Update.V == nil && req.Known("update"):
			change.Replaces = append(change.Replaces, name)
		default:
			change.Updates = append(change.Updates, name)
		}
	}
	change.DeleteFirst = len(change.Replaces) > 0
	return change, nil
}

// Preview knows the mark. What the server says is known when it has said it.
func (r *Resource) Preview(
	_ context.Context, req provider.Request[ResourceIn, ResourceOut],
) (ResourceOut, error) {
	return ResourceOut{Owner: req.Owner()}, nil
}

// Reconcile reads what is there, creates it if there is nothing, and sends what differs.
func (r *Resource) Reconcile(
	ctx context.Context, req provider.Request[ResourceIn, ResourceOut],
) (string, ResourceOut, error) {
	s, err := r.session(req.News, req.Identity, req.ID, req.Output, req.Redact)
	if err != nil {
		return "", ResourceOut{}, err
	}
	if req.Olds != nil {
		s.before, s.again = req.Olds.Properties, true
	}
	if err := s.ensure(ctx, req.ID != ""); err != nil {
		return "", ResourceOut{}, err
	}
	err = s.converge(ctx)
	return s.id, s.out(), err
}

// Read answers by the ID, or by the name or the lookup when that is not known.
func (r *Resource) Read(
	ctx context.Context, req provider.Lookup[ResourceIn, ResourceOut],
) (found provider.Found[ResourceIn, ResourceOut], err error) {
	if req.Inputs == nil {
		return found, errors.New("a resource of an API cannot be read without its declaration: declare it in the program, " +
			"with its ID in the resource option import")
	}
	s, err := r.session(*req.Inputs, req.Identity, req.ID, req.Output, req.Redact)
	if err != nil {
		return found, err
	}
	if err := s.find(ctx); err != nil {
		return found, err
	}
	found = provider.Found[ResourceIn, ResourceOut]{Ownership: s.ownership(req.ID != ""), ID: s.id, Inputs: *req.Inputs,
		Output: s.out()}
	if s.there && found.Inputs.Properties != nil {
		found.Inputs.Properties = s.comparison().observed(found.Inputs.Properties, s.seen, nil)
	}
	if s.in.IDPath == "" {
		found.Inputs.Name, found.Output.Name = s.id, s.id
	}
	switch mark := s.mark(); {
	case s.lost():
		found.Output.Owner = s.lastMark // or a later delete would not know that it is lost
	case s.in.Mark != "":
		found.Output.Owner = mark
	}
	return found, nil
}

// Delete leaves alone what another owner has taken over.
func (r *Resource) Delete(ctx context.Context, req provider.Existing[ResourceIn, ResourceOut]) error {
	if req.Inputs.Delete.V == nil {
		return nil
	}
	s, err := r.session(req.Inputs, req.Identity, req.ID, &req.Output, req.Redact)
	if err != nil {
		return err
	}
	if err := s.read(ctx); err != nil {
		return err
	}
	if !s.there || s.lost() {
		return nil
	}
	return s.remove(ctx)
}
