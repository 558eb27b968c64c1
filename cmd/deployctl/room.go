package main

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/grpcapi"
)

// room is a service and a worker on one infrastructure.
type room struct {
	service   deployments.Service
	authority grpcapi.Authority
	// work carries out updates until its context ends.
	work  func(context.Context) error
	close func()
}

// openRoom connects to Temporal and S3; being away for a while at the start is tolerated, quietly.
func openRoom(context.Context, infrastructure) (*room, error) {
	return nil, deployments.Errorf(deployments.CodeUnavailable, "this build has no service")
}
