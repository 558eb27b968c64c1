// Package peers pins the real programs that the tests compare with and run against; see build. They have a module of
// their own so that nothing they need reaches the product.
package peers
