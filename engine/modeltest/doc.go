// Package modeltest holds the tests of the core against a small model of it: programs, clouds and failures are made at
// random.
package modeltest
