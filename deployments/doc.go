// Package deployments is the contract of the service: names of stacks and updates, requests, results and errors, and
// the names and the input and output types of workflows, activities, signals and updates. It does no I/O.
package deployments
