package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// loss is a part of what the service knows of a stack, or all of it.
type loss struct {
	name string
	// objects are the keys, below the stack's folder, that begin with one of these.
	objects []string
	// workflows: those that Temporal has of the stack are lost.
	workflows bool
	// everything: the service's whole bucket is lost, and only its key is left.
	everything bool
}

var partsLost = []loss{
	{name: "the head", objects: []string{"head.json"}},
	{name: "the checkpoints", objects: []string{"checkpoints/"}},
	{name: "the saves", objects: []string{"updates/"}},
	{name: "the histories of Temporal", workflows: true},
	{name: "the saves and the histories", objects: []string{"updates/"}, workflows: true},
	{name: "the stack's objects", objects: []string{""}},
	{name: "the stack's objects and histories", objects: []string{""}, workflows: true},
	{name: "the bucket", everything: true},
}

// lose removes objects and histories of the stack.
func (f *forgetful) lose(ctx context.Context) error {
	objects, err := bucket.OpenS3(ctx, bucket.S3Options{Endpoint: f.S3Endpoint, Region: "us-east-1", Bucket: f.Bucket,
		AccessKey: f.Keys.S3AccessKey, SecretKey: f.Keys.S3SecretKey})
	if err != nil {
		return err
	}
	name := f.update().StackName
	for _, part := range f.lost.objects {
		prefix := strings.Join([]string{"stacks", name.Organization, name.Project, name.Stack, part}, "/")
		for after, more := "", true; more; {
			l, err := objects.List(ctx, bucket.Query{Prefix: prefix, After: after})
			if err != nil {
				return err
			}
			for _, key := range l.Keys {
				if err := objects.Delete(ctx, key); err != nil {
					return err
				}
				after = key
			}
			more = l.More
		}
	}
	if f.lost.workflows {
		return f.loseWorkflows(ctx)
	}
	return nil
}

// loseWorkflows removes what Temporal has of the stack: its workflow, and those of its first updates.
func (f *forgetful) loseWorkflows(ctx context.Context) error {
	ids := []string{deployments.StackWorkflowID(f.update().StackName)}
	for _, version := range []string{"1", "2"} {
		u := f.update()
		u.Version = version
		ids = append(ids, deployments.UpdateWorkflowID(u), deployments.RunWorkflowID(u))
	}
	for _, id := range ids {
		_, err := f.temporal.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace: f.Namespace, WorkflowExecution: &common.WorkflowExecution{WorkflowId: id},
		})
		var missing *serviceerror.NotFound
		if err != nil && !errors.As(err, &missing) {
			return fmt.Errorf("delete the workflow %s: %w", id, err)
		}
	}
	return nil
}

// loseBucket kills the embedded service and its client, and removes the service's bucket.
func (f *forgetful) loseBucket(ctx context.Context, c *command) error {
	status, err := f.status(ctx)
	if err != nil {
		return err
	}
	_ = c.cmd.Process.Kill() // it would bring the service back
	<-c.ended
	if err := syscall.Kill(status.PID, syscall.SIGKILL); err != nil {
		return err
	}
	err = eventually(ctx, "the embedded service is gone", func() (bool, error) {
		below, err := cluster.Below(status.PID, "")
		return len(below) == 0 && syscall.Kill(status.PID, 0) != nil, err
	})
	return errors.Join(err, os.RemoveAll(filepath.Join(status.Dir, "data", "s3", status.Bucket)))
}
