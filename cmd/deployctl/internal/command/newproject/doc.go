// Package newproject has the command that makes a project from a template, with its first stack and its configuration.
package newproject
