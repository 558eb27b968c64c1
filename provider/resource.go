package provider

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"

	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Reconciler is what an author writes for a type of resource.
type Reconciler[In, Out any] interface {
	// Reconcile makes the resource as declared, whether it exists or not, and returns its id and outputs. It is never
	// called in a preview. An error together with an id says that the resource exists but is not as declared; the next
	// update tries again. See NotDone, Unknown and Foreign for errors with a meaning of their own; on a create, an id
	// counts for more.
	Reconcile(ctx context.Context, r Request[In, Out]) (id string, out Out, err error)
	// Delete removes the resource; that it is gone already is success.
	Delete(ctx context.Context, r Existing[In, Out]) error
}

// Reader is a Reconciler whose resources can be observed: for refresh, import and settling.
type Reader[In, Out any] interface {
	Read(ctx context.Context, r Lookup[In, Out]) (Found[In, Out], error)
}

// Lister is a Reconciler that can list what bears the mark of a stack, of whichever of its resources: so what was left
// behind is found, although nothing declares it any more. Only Identity.StackID of its argument is set. What may not be
// looked at is an error, at the end: a list that is not whole says so.
type Lister interface {
	List(ctx context.Context, stack Identity, found func(id string) error) error
}

// Checker is a Reconciler with rules for its inputs beyond their types. It gets what could be decoded and reports every
// violation at once; it judges only what is Known.
type Checker[In any] interface {
	Check(ctx context.Context, in Inputs[In]) []Failure
}

// Previewer is a Reconciler that can tell outputs before they exist. Fields left zero are unknown in the preview.
// Without it, outputs named like an input are known when that input is.
type Previewer[In, Out any] interface {
	Preview(ctx context.Context, r Request[In, Out]) (Out, error)
}

// Differ is a Reconciler that decides itself what a change of inputs means, instead of by the tags of the fields.
type Differ[In, Out any] interface {
	Diff(ctx context.Context, r Request[In, Out]) (Change, error)
}

// Named is a Reconciler whose autoname field is named by the engine's seed under these rules.
type Named interface {
	Naming() Naming
}

// Settler is a Reconciler that does not converge on its own and says how lost outcomes are found out.
type Settler interface {
	Settling() Settle
}

// Described is anything with a text for the schema.
type Described interface {
	Describe() string
}

// Identity is who a resource is, independent of its physical name.
type Identity struct {
	URN urn.URN
	// StackID tells stacks of the same name apart, of two services or organizations. A rename keeps it, and a stack that
	// is made again after its state was lost has the same. With other engines it is empty.
	StackID string
}

// lasting begins the StackID of a stack whose identity outlives its state.
const lasting = "identity-"

// Owner is a short, stable token of the identity, to be put on the physical thing (a tag, metadata) so that a later
// attempt knows it again.
func (i Identity) Owner() string {
	text := i.StackID + string(i.URN)
	if strings.HasPrefix(i.StackID, lasting) && i.URN.IsValid() { // a rename changes the names of stack and project
		text = i.StackID + "\x00" + string(i.URN.QualifiedType()) + "\x00" + i.URN.Name()
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// Stack is PROJECT/STACK, for people.
func (i Identity) Stack() string {
	if !i.URN.IsValid() {
		return ""
	}
	return string(i.URN.Project()) + "/" + string(i.URN.Stack())
}

// Name is the logical name that the program gave.
func (i Identity) Name() string {
	if !i.URN.IsValid() {
		return ""
	}
	return i.URN.Name()
}

// unknowns are the names of inputs that have no value yet.
type unknowns map[string]bool

// Known says whether all the named inputs have a value yet; outside a preview it is always true.
func (u unknowns) Known(names ...string) bool {
	for _, name := range names {
		if u[name] {
			return false
		}
	}
	return true
}

// secrets are the texts that Redact replaces.
type secrets []string

// secretsOf returns the secrets among the inputs and outputs of a resource, and of the inputs also their words: an
// input that was put together is secret as a whole, and which part of it is the password, nobody knows any more.
func secretsOf(inputs, oldInputs, oldOutputs properties) secrets {
	var texts secrets
	for _, bag := range []properties{inputs, oldInputs} {
		for _, text := range redaction.SecretTexts(resource.NewProperty(bag)) {
			texts = append(append(texts, text), strings.FieldsFunc(text, betweenWords)...)
		}
	}
	return append(texts, redaction.SecretTexts(resource.NewProperty(oldOutputs))...)
}

func betweenWords(r rune) bool {
	return unicode.IsSpace(r) || strings.ContainsRune("\"'`:/@=?&;,|<>(){}[]", r)
}

// Redact replaces secrets in a text that people see, however they are written; those under four bytes stay.
func (s secrets) Redact(text string) string { return redaction.New(s).Replace(text) }

// Inputs are inputs under check; unknown ones are zero.
type Inputs[In any] struct {
	Identity
	unknowns
	Value In
}

// Request is what a resource shall become.
type Request[In, Out any] struct {
	Identity
	unknowns
	// ID is empty on a create, which may still find what a lost attempt made.
	ID string
	// News are the checked inputs.
	News In
	// Olds are the inputs of the last success, or, after an adoption, those that Read has found; nil on a create.
	Olds *In
	// Output are the outputs of the last success; nil on a create.
	Output *Out
	secrets
	// Secret says that some input is secret, so that what is derived from them may be shown only after Redact, in errors
	// for example.
	Secret bool
}

// Existing is a resource that shall be gone.
type Existing[In, Out any] struct {
	Identity
	ID     string
	Inputs In
	Output Out
	secrets
	// Secret says that some input is secret, so that what is derived from them may be shown only after Redact.
	Secret bool
}

// Lookup asks for a resource: by id (refresh, import) or, when ID is empty, by what its inputs say (before it is
// created, and settling). If it may be neither seen nor told from what is not there, Read returns an error.
type Lookup[In, Out any] struct {
	Identity
	ID string
	// Inputs and Output are what is remembered, nil when nothing is.
	Inputs *In
	Output *Out
	secrets
}

// Ownership is the answer to a Lookup.
type Ownership string

const (
	// Absent says that there is no such thing.
	Absent Ownership = "absent"
	// Owned says that it exists and was made for this identity.
	Owned Ownership = "owned"
	// Unowned says that it exists and was made by or for somebody else.
	Unowned Ownership = "unowned"
	// Undecidable says that the type has no way to tell. What was remembered stays.
	Undecidable Ownership = "undecidable"
)

// Found is what a Read saw. When it is Absent or Undecidable the rest is ignored.
type Found[In, Out any] struct {
	Ownership Ownership
	ID        string
	// Owner is whose it is, for people, if it is Unowned and that is known: "stack web/prod".
	Owner string
	// Inputs are the inputs that would produce what is there.
	Inputs In
	Output Out
}

// Failure is one violated rule of one input. Property may be a path.
type Failure struct {
	Property string
	Reason   string
}

// Change is what a change of inputs means: names of properties that changed, and those among them that need a
// replacement.
type Change struct {
	Updates  []string
	Replaces []string
	// DeleteFirst asks that a replacement deletes the old one before it creates the new one.
	DeleteFirst bool
}

// Resource is one resource type of a module; make one with NewResource.
type Resource struct {
	token       string
	description string
	in, out     *object
	settle      Settle
	naming      *Naming
	ops         operations
}

// NewResource declares a resource type. The token has three parts, package:module:Type. It panics on types that have no
// schema, since that is a mistake in the program.
func NewResource[In, Out any](token string, r Reconciler[In, Out]) Resource {
	t := typed[In, Out]{impl: r, in: objectOf[In](), out: objectOf[Out]()}
	res := Resource{token: token, in: t.in, out: t.out, settle: SettleByReconcile, ops: t, description: describe(r)}
	if s, ok := r.(Settler); ok {
		res.settle = s.Settling()
	}
	if n, ok := r.(Named); ok {
		naming := n.Naming()
		res.naming = &naming
	}
	return res
}

func describe(v any) string {
	if d, ok := v.(Described); ok {
		return d.Describe()
	}
	return ""
}
