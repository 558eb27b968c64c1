// Package plugin has the commands that list, install and remove plugins, and the dependencies of a project.
package plugin
