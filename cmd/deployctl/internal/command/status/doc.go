// Package status has the commands that look at all stacks at a time, once or until Ctrl-C.
package status
