package providertest

import (
	"cmp"
	"maps"
	"testing"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Inputs are properties as a program gives them: strings, numbers, booleans, slices, maps, assets, and property values
// such as that of Secret. Nil leaves a property out.
type Inputs map[string]any

// Secret is a value that a program has declared secret. Choose a text that occurs nowhere else.
func Secret(v any) any { return resource.MakeSecret(resource.NewPropertyValue(v)) }

// over returns the inputs with others in their place.
func (in Inputs) over(others Inputs) Inputs {
	all := maps.Clone(in)
	if all == nil {
		all = Inputs{}
	}
	maps.Copy(all, others)
	return all
}

func (in Inputs) bag() resource.PropertyMap {
	bag := resource.PropertyMap{}
	for name, v := range in {
		bag[resource.PropertyKey(name)] = resource.NewPropertyValue(v)
	}
	return bag
}

// Start starts an empty service and says how a provider reaches it. It is called for each of many short lives of a
// resource; what it starts ends with the test. All calls of the provider to the service pass through calls.
type Start func(t *testing.T, calls *Calls) Setup

// Setup is a service, and the provider of what it has.
type Setup struct {
	// Package returns the provider's package. Each call stands for a new process: nothing is shared between two of them.
	Package func() provider.Package
	// Config are the provider's configuration.
	Config Inputs
	// Things returns everything that the service has, by what names it, with all that matters of it: marks of owners and
	// all properties, but no times and no numbers that the service gives as it likes. It compares what was disturbed
	// with what was not.
	Things func() map[string]any
	// Unmarked makes by hand, without a mark, what a resource with these inputs would make. Without it, the only things
	// in the way are those that another stack has made.
	Unmarked func(inputs resource.PropertyMap)
}

// Case is one type of resource.
type Case struct {
	// Name is the name of its subtest; by default the type.
	Name string
	// Type is its token, PACKAGE:MODULE:TYPE.
	Type string
	// Inputs are a program's inputs.
	Inputs Inputs
	// Change are other values of properties that can be updated. Each is also changed from outside.
	Change Inputs
	// Replace are other values of properties whose change replaces the resource.
	Replace Inputs
	// Unseen are inputs and outputs that Read cannot see as they are: passwords that the service does not tell, and what
	// only the state has. They are not changed from outside.
	Unseen []string
	// Needed are optional inputs without which the resource of the case cannot be made or found. They are never left out.
	Needed []string
	// Shared says that the service has no place for a mark, and that making what is there already is nothing, as a
	// membership or a right: each resource that declares it has it. So what is in the way of a create is found as Owned,
	// and the create brings it to what is declared.
	Shared bool
	// Unnamed says that the service gives the id, and that no two of its things need to differ: a thing is known by its
	// mark alone. So nothing can be in the way of a create, and of two stacks each makes its own.
	Unnamed bool
}

// Run plays each case in a subtest, and each check in a subtest of that. It sets environment variables and reads what
// is written to the standard streams, so it is not for parallel tests.
func Run(t *testing.T, start Start, cases ...Case) {
	t.Helper()
	for _, c := range cases {
		t.Run(cmp.Or(c.Name, c.Type), func(t *testing.T) {
			for _, check := range checks {
				t.Run(check.name, func(t *testing.T) {
					if err := check.play(newLife(t, start, c)); err != nil {
						t.Error(err)
					}
				})
			}
		})
	}
}

func newLife(t *testing.T, start Start, c Case) *life {
	return &life{t: t, start: start, Case: c, kinds: []interruption{unsent, unanswered, killed}}
}

// checks are what is played, from the simplest on.
var checks = []struct {
	name string
	play func(*life) error
}{
	{"a resource lives undisturbed", undisturbedLife},
	{"what has not changed needs no change", unchanged},
	{"optional inputs are left out", leftOut},
	{"a preview makes nothing", preview},
	{"a create is interrupted", interruptedCreate},
	{"an update is interrupted", interruptedUpdate},
	{"a replacement is interrupted", interruptedReplacement},
	{"a delete is interrupted", interruptedDelete},
	{"two creates run at once", createdAtOnce},
	{"two stacks create it at once", createdByTwoStacks},
	{"the state is lost", lostState},
	{"properties are changed from outside", changedOutside},
	{"it is deleted from outside", deletedOutside},
	{"another owner's thing is in the way", foreignThing},
	{"secrets stay secret", secretsStaySecret},
}
