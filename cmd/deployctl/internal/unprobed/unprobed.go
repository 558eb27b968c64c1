// Package unprobed keeps the packages of the binary from asking the terminal for its colors while they are initialized.
// Bubble Tea does, which Pulumi's SDK imports for a prompt that is not used here: it writes a query to the terminal and
// takes the answer from what was typed. On a terminal that does not answer, each command would wait for it, and take
// away what the user has typed ahead.
//
// Go initializes packages in the order of their paths, after those that they import. This one imports only os, so it
// comes before termenv, which sends the query, but sends none to a terminal of the type dumb.
package unprobed

import "os"

const variable = "TERM"

var terminal, set = os.LookupEnv(variable)

func init() {
	if set {
		_ = os.Setenv(variable, "dumb") // Restore is called before anything reads it
	}
}

// Restore gives the process its terminal back, once all packages are initialized.
func Restore() {
	if set {
		_ = os.Setenv(variable, terminal)
	}
}
