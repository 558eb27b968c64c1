// Package about has the commands that tell of this binary, its connection and its settings.
package about
