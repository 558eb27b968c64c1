// Package access has the commands for the people and the machines of an organization, for what they may do, and for
// what they have done.
package access
