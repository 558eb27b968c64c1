package statestore

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/journal"
)

// What the header of a resource takes in memory: a fixed part, and its lists and maps in times their text.
const headerCost, headerTimes = 2 << 10, 16

// judgeClient reports, as CodeInvalid, why what a client has written cannot be the state of a stack. It reads one
// resource after the other, so that many take little memory.
func judgeClient(
	ctx context.Context, name deployments.StackName, f deploymentFile, resource func(*storedResource) error,
) error {
	kept, taken := int64(0), int64(0)
	for i, raw := range f.Deployment.Resources {
		if needed := kept + headerTimes*int64(len(raw)); needed > taken {
			if err := mempool.Take(ctx, needed-taken+mempool.Step); err != nil {
				return err
			}
			taken = needed + mempool.Step
		}
		one, err := clientResource(name, raw)
		if err == nil {
			err = resource(&one)
		}
		if err != nil {
			return deployments.Errorf(deployments.CodeInvalid, "resource %d: %w", i+1, err)
		}
		kept += headerCost + headerTimes*int64(len(raw)-len(one.Inputs)-len(one.Outputs))
	}
	for i := range f.Deployment.PendingOperations {
		if err := f.Deployment.PendingOperations[i].check(name); err != nil {
			return deployments.Errorf(deployments.CodeInvalid, "pending operation %d: %w", i+1, err)
		}
	}
	return nil
}

// parseWritten takes a whole deployment that a client writes apart; CodeInvalid when it is none, or too large.
func parseWritten(ctx context.Context, text deploymentText) (deploymentFile, error) {
	f, err := parseFile(ctx, text, true)
	switch {
	case bucket.Interrupted(err), errors.Is(err, deployments.ErrTooLarge):
		return f, err
	case err == nil && (text.size() > deployments.MaxClientState ||
		len(f.Deployment.Resources) > deployments.MaxClientResources):
		return f, deployments.TooLarge("this deployment is larger than a client may write: at most %d resources, of %d MiB "+
			"together; divide the stack", deployments.MaxClientResources, deployments.MaxClientState>>20)
	case err == nil && !rawjson.IsObject(text.of()):
		err = errors.New("it has no deployment")
	case err == nil:
		return f, deployments.ValidateReferences(referencesOf(f, text.of()))
	}
	if err != nil {
		err = deployments.Errorf(deployments.CodeInvalid, "this deployment cannot be the state of a stack: %w", err)
	}
	return f, err
}

// referencesOf returns how many references the resources of a deployment have, and those of its pending operations.
func referencesOf(f deploymentFile, deployment []byte) (n int) {
	for _, raw := range f.Deployment.Resources {
		n += journal.References(raw)
	}
	for raw := range rawjson.Elements(rawjson.Member(deployment, "pending_operations")) {
		n += journal.References(raw)
	}
	return n
}

// checkWritten reports, as CodeInvalid, why a whole deployment that a client writes could not become the state of a
// stack.
func checkWritten(ctx context.Context, name deployments.StackName, data []byte) error {
	f, err := parseWritten(ctx, deploymentText{around: data})
	if err == nil {
		err = judgeClient(ctx, name, f, func(*storedResource) error { return nil })
	}
	return err
}

// journalChecks reject what could not become part of the state of a stack.
func journalChecks(name deployments.StackName) journal.Checks {
	return journal.Checks{
		Resource: func(raw json.RawMessage) error {
			_, err := clientResource(name, raw)
			return err
		},
		Operation: func(raw json.RawMessage) error {
			if err := affordable("an operation", raw); err != nil {
				return err
			}
			var operation storedOperation
			if err := rawjson.Unmarshal(raw, &operation); err != nil {
				return err
			}
			return operation.check(name)
		},
	}
}
