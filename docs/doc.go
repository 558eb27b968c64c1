// Package docs holds the documentation for users. Its tests check that the links of all pages lead somewhere, and that
// each page can be reached from the README.
package docs
