// Package monitor serves Pulumi's ResourceMonitor to a program and to the providers that construct components for it.
// It reads requests into registrations of the core, encodes their values, and sends them to the Run through a
// runlink.Link; the Run's reply becomes the response. It serves functions and methods itself, by calling providers. It
// registers the default provider of a package when the package is first needed. A Monitor belongs to one epoch; of the
// session that hosts the update it needs only what Host says.
package monitor
