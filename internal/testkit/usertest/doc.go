// Package usertest runs tests as another user than root, to whom the kernel shows and allows everything. It is for
// Linux.
package usertest
