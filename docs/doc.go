// Package docs holds the documentation for users. Its tests check that the links of all pages lead somewhere, that each
// page can be reached from the README, and that the messages that they explain are those of the code.
package docs
