// Package deployments is the vocabulary and the contract of the service: names of stacks and updates, requests,
// results and errors, and the names and in/out types of the workflows, activities, signals and updates that carry
// an update out. It does no I/O.
package deployments
