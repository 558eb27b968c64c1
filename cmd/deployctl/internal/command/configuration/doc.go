// Package configuration has the commands for a stack's configuration, which is a file of the project. Values are stored
// by Set alone, so that each command treats types and secrets alike.
package configuration
