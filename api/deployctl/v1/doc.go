// Package deployctlv1 is the wire form of package deployments: generated from deployctl.proto, and nothing else.
package deployctlv1

//go:generate env GOWORK=off go -C ../../../tools/proto run . ../../api deployctl/v1/deployctl.proto
