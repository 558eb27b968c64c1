// Package usertest runs tests as another user than root, because the kernel allows root everything. It is for Linux.
package usertest
