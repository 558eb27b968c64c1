// Package render tests that Helm renders the chart of deploy/helm, and that Kubernetes knows what comes out. Helm takes
// long to compile, so the tests are apart from those of the release.
package render
