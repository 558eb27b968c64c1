// Package settlerule has the language of settle rules: how a resource of a type is found of which it is not known
// whether it was created. Rules come from the catalogue and from the configuration of stacks, which any member of an
// organization writes, and are evaluated in workers that all share. So everything in them is bounded: sizes, depths and
// numbers, and what a template renders. A rule never sees a secret.
package settlerule

import "time"

// The limits of what is written.
const (
	maxText      = 256 << 10 // of a stack's rules
	maxRules     = 2000      // of a stack
	maxPerType   = 8
	maxName      = 500 // of a type, a package, a function or a value
	maxTemplate  = 1000
	maxVariables = 20
	maxPath      = 10  // steps of a property path
	maxNodes     = 100 // of the arguments of a function, or of a query
	maxDepth     = 6   // of the same
	maxMatch     = 10
	maxSources   = 5 // of a value
	maxValues    = 20
)

// The limits of looking for a resource.
const (
	// DefaultPause is the pause between the two looks that establish an absence: many clouds are eventually consistent.
	DefaultPause = 2 * time.Second
	// MaxPause is the longest pause that a rule may ask for.
	MaxPause = time.Minute
	// DefaultItems is how many candidates are looked at.
	DefaultItems = 100
	// MaxItems is how many a rule may ask for.
	MaxItems = 1000
	// MaxRendered is the size of what a template renders.
	MaxRendered = 2048
	// MaxArgument is the size of a list or an object that an argument takes from the inputs, in nodes.
	MaxArgument = 1000
)
