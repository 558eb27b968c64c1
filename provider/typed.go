package provider

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// operations are a resource type's methods over bags, as the server calls them. Errors are the author's.
type operations interface {
	check(ctx context.Context, who Identity, inputs properties) []Failure
	diff(ctx context.Context, s state) (details map[string]plugin.PropertyDiff, deleteFirst bool, err error)
	preview(ctx context.Context, s state) (properties, error)
	reconcile(ctx context.Context, s state) (id string, outputs properties, err error)
	read(ctx context.Context, s state) (found, error)
	delete(ctx context.Context, s state) error
	lister() (Lister, bool)
}

// state is a resource as the engine sends it: nil bags are absent.
type state struct {
	Identity
	id         string
	news       properties
	olds       properties
	oldOutputs properties
}

// found is a typed Found as bags.
type found struct {
	ownership       Ownership
	id              string
	inputs, outputs properties
	owner           string
}

// typed turns an author's methods over structs into operations over bags.
type typed[In, Out any] struct {
	impl    Reconciler[In, Out]
	in, out *object
}

func (t typed[In, Out]) check(ctx context.Context, who Identity, inputs properties) []Failure {
	var in In
	unknown, failures := t.in.decodeKnown(ctx, inputs, reflect.ValueOf(&in).Elem())
	if c, ok := t.impl.(Checker[In]); ok {
		failures = append(failures, c.Check(ctx, Inputs[In]{Identity: who, unknowns: unknown, Value: in})...)
	}
	return failures
}

func (t typed[In, Out]) request(ctx context.Context, s state) (Request[In, Out], error) {
	r := Request[In, Out]{Identity: s.Identity, ID: s.id, Secret: s.news.ContainsSecrets(),
		secrets: secretsOf(s.news, s.olds, s.oldOutputs)}
	unknown, failures := t.in.decodeKnown(ctx, s.news, reflect.ValueOf(&r.News).Elem())
	if len(failures) > 0 {
		return r, fmt.Errorf("input %q %s", failures[0].Property, failures[0].Reason)
	}
	r.unknowns = unknown
	var err error
	if r.Olds, err = decodeOptional[In](ctx, t.in, s.olds); err != nil {
		return r, fmt.Errorf("old inputs: %w", err)
	}
	if r.Output, err = decodeOptional[Out](ctx, t.out, s.oldOutputs); err != nil {
		return r, fmt.Errorf("old outputs: %w", err)
	}
	return r, nil
}

func decodeOptional[T any](ctx context.Context, o *object, bag properties) (*T, error) {
	if len(bag) == 0 {
		return nil, nil
	}
	v := new(T)
	return v, o.decode(ctx, bag, v)
}

func (t typed[In, Out]) diff(ctx context.Context, s state) (map[string]plugin.PropertyDiff, bool, error) {
	details := t.in.diff(s.olds, s.news)
	d, ok := t.impl.(Differ[In, Out])
	if !ok || len(details) == 0 {
		return details, false, nil
	}
	r, err := t.request(ctx, s)
	if err != nil {
		return nil, false, err
	}
	change, err := d.Diff(ctx, r)
	return change.override(details), change.DeleteFirst, err
}

func (t typed[In, Out]) reconcile(ctx context.Context, s state) (string, properties, error) {
	r, err := t.request(ctx, s)
	if err != nil {
		return "", nil, err
	}
	id, out, err := t.impl.Reconcile(ctx, r)
	if id == "" {
		if err == nil {
			err = fmt.Errorf("%s: the provider returned no id", s.URN)
		}
		return "", nil, err
	}
	outputs, encodeErr := t.out.encode(out)
	if err == nil {
		err = encodeErr
	}
	t.markSecrets(outputs, s.news)
	return id, outputs, err
}

// preview tells which outputs are known before the resource is: those that Previewer gives, those that repeat a known
// input, and on an update the stable ones. All others are unknown.
func (t typed[In, Out]) preview(ctx context.Context, s state) (properties, error) {
	told, err := t.told(ctx, s)
	if err != nil {
		return nil, err
	}
	outputs := properties{}
	for _, f := range t.out.fields {
		key := resource.PropertyKey(f.name)
		echo, isInput := s.news[key]
		switch {
		case has(told, key):
			outputs[key] = told[key]
		case isInput:
			outputs[key] = echo
		case s.id != "" && f.stable && has(s.oldOutputs, key):
			outputs[key] = s.oldOutputs[key]
		case f.optional && t.in.field(f.name) != nil:
			// an input that was left out
		default:
			outputs[key] = resource.MakeComputed(resource.NewProperty(""))
		}
	}
	t.markSecrets(outputs, s.news)
	return outputs, nil
}

func (t typed[In, Out]) told(ctx context.Context, s state) (properties, error) {
	p, ok := t.impl.(Previewer[In, Out])
	if !ok {
		return nil, nil
	}
	r, err := t.request(ctx, s)
	if err != nil {
		return nil, err
	}
	out, err := p.Preview(ctx, r)
	if err != nil {
		return nil, err
	}
	return t.out.encodeSet(out)
}

// encodeSet is encode without the fields that are zero.
func (o *object) encodeSet(from any) (properties, error) {
	all, err := o.encode(from)
	for _, f := range o.fields {
		if reflect.ValueOf(from).FieldByIndex(f.index).IsZero() {
			delete(all, resource.PropertyKey(f.name))
		}
	}
	return all, err
}

func has(bag properties, key resource.PropertyKey) bool {
	_, ok := bag[key]
	return ok
}

// markSecrets makes an output secret whose input of the same name is, or any input if the output inherits.
func (t typed[In, Out]) markSecrets(outputs, inputs properties) {
	for _, f := range t.out.fields {
		key := resource.PropertyKey(f.name)
		v, ok := outputs[key]
		if !ok || v.IsSecret() {
			continue
		}
		if inputs[key].ContainsSecrets() || f.secret || f.inherit && inputs.ContainsSecrets() {
			outputs[key] = resource.MakeSecret(v)
		}
	}
}

func (t typed[In, Out]) read(ctx context.Context, s state) (found, error) {
	reader, ok := t.impl.(Reader[In, Out])
	if !ok {
		return found{ownership: Undecidable}, nil
	}
	l := Lookup[In, Out]{Identity: s.Identity, ID: s.id, secrets: secretsOf(nil, s.olds, s.oldOutputs)}
	var err error
	if l.Inputs, err = decodeOptional[In](ctx, t.in, s.olds); err != nil {
		return found{}, err
	}
	if l.Output, err = decodeOptional[Out](ctx, t.out, s.oldOutputs); err != nil {
		return found{}, err
	}
	f, err := reader.Read(ctx, l)
	if err != nil || f.Ownership == Absent || f.Ownership == Undecidable {
		return found{ownership: f.Ownership}, err
	}
	inputs, err := t.in.encode(f.Inputs)
	if err != nil {
		return found{}, err
	}
	if l.Inputs != nil {
		if err := t.keep(inputs, s.olds, *l.Inputs); err != nil {
			return found{}, err
		}
	}
	outputs, err := t.out.encode(f.Output)
	t.markSecrets(outputs, s.olds)
	return found{f.Ownership, f.ID, inputs, outputs, printable(f.Owner)}, err
}

// printable returns a text as the trailer of a call may have it.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// keep puts back the remembered form of every input that Read found as it was remembered: with its secrecy, and an
// asset with the path that the program gave.
func (t typed[In, Out]) keep(inputs, olds properties, remembered In) error {
	was, err := t.in.encode(remembered)
	if err != nil {
		return err
	}
	for key, v := range inputs {
		if old, ok := olds[key]; ok && bare(v).DeepEquals(bare(was[key])) {
			inputs[key] = old
		}
	}
	return nil
}

func (t typed[In, Out]) delete(ctx context.Context, s state) error {
	e := Existing[In, Out]{Identity: s.Identity, ID: s.id, Secret: s.olds.ContainsSecrets(),
		secrets: secretsOf(nil, s.olds, s.oldOutputs)}
	if err := t.in.decode(ctx, s.olds, &e.Inputs); err != nil {
		return fmt.Errorf("old inputs: %w", err)
	}
	if err := t.out.decode(ctx, s.oldOutputs, &e.Output); err != nil {
		return fmt.Errorf("old outputs: %w", err)
	}
	return t.impl.Delete(ctx, e)
}

func (t typed[In, Out]) lister() (Lister, bool) {
	l, ok := t.impl.(Lister)
	return l, ok
}
