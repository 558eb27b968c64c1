// Package scenario is a language host whose programs are scripts: a scenario.yaml says what a program registers, reads,
// calls and prints, when it waits, and how it goes wrong. It plays them against any engine's resource monitor and
// behaves there as an SDK does: it registers the stack, gives every registration its parent, dependencies and provider,
// registers what does not depend on one another all at once, sets the stack's outputs, and waits for the shutdown.
//
// README.md describes the format.
package scenario
