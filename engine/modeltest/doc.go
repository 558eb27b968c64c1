// Package modeltest holds the tests of the core against a small model of it: programs, clouds and failures, and
// losses of the whole state, are made at random.
package modeltest
