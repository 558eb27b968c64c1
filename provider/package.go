package provider

import "context"

// Package is what one provider serves: a Pulumi package. It is assembled from modules and belongs to the one Server
// made of it, because configuration is kept by the modules.
type Package struct {
	// Name is the package's name, the first part of every token.
	Name string
	// Version is a semantic version without the leading v.
	Version     string
	DisplayName string
	Description string
	Homepage    string
	Modules     []Module
}

// StackVariable is the environment variable in which deployctl says which stack an update is of: see Identity.StackID.
const StackVariable = "DEPLOYCTL_STACK_ID"

// Module is a part of a package: the types that share a configuration. Nothing in it is required.
type Module struct {
	Config     Config
	Resources  []Resource
	Components []Component
	Functions  []Function
}

// Config is the provider configuration that a module wants; make one with Configured. The properties of all modules
// share the package's configuration namespace, so a module prefixes its own.
type Config struct {
	in    *object
	apply func(ctx context.Context, set properties) error
}

// Configured declares configuration of type T, a struct with `pulumi` tags. The function is called once per Configure,
// before any resource is handled, with what the user set; what is left out is zero.
func Configured[T any](apply func(ctx context.Context, config T) error) Config {
	in := objectOf[T]()
	return Config{in: in, apply: func(ctx context.Context, set properties) error {
		var config T
		if err := in.decode(ctx, set, &config); err != nil {
			return err
		}
		return apply(ctx, config)
	}}
}

// Settle says how the outcome of a lost create or update of a type is found out.
type Settle string

const (
	// SettleByReconcile is for convergent types, the default: ask for the same once more. Where nothing will be made
	// again, as in a cancelled update, Read answers, which finds a create by its inputs; a type without a Read leaves
	// it to a person then.
	SettleByReconcile Settle = "reconcile"
	// SettleByRead is for types that do not converge: Read answers whether it exists, or that nobody can tell.
	SettleByRead Settle = "read"
)

// Settlements returns how each resource type of the package is settled, by token.
func (p Package) Settlements() map[string]Settle {
	rules := map[string]Settle{}
	for _, m := range p.Modules {
		for _, r := range m.Resources {
			rules[r.token] = r.settle
		}
	}
	return rules
}
