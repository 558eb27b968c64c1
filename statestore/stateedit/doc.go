// Package stateedit changes single resources of a stack's state: it deletes, protects, taints, renames and moves them,
// and repairs the order. It works on the headers of resources, calls no provider, and reads nothing. Its results are
// verified by what stores them (snapshot.Verify).
package stateedit
