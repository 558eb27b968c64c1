package service

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	// quick and slow limit the pause between reads of a log, which grows while nothing comes. What a program prints is
	// gathered for longer than quick before it is in the log.
	quick, slow = 100 * time.Millisecond, 2 * time.Second
	// firstPart is how long it takes at least after an update has begun until its log has something: what is printed is
	// gathered for a while, and what is done for longer.
	firstPart = 300 * time.Millisecond
	// endingEvery is how often to check whether an update has begun, before its end can be awaited.
	endingEvery = 250 * time.Millisecond
	// brisk is the first pause when the end is about to be written.
	brisk = 5 * time.Millisecond
	// progressEvery is how often a running update is queried.
	progressEvery = time.Second
	// patience is how many reads may find nothing of an update before it is given up.
	patience = 5
	// requeueTimeout is how long the continuation of a migrated update may take to be queued after the end of that
	// update.
	requeueTimeout = time.Minute
	// partsAtOnce limits the parts that are read in one call.
	partsAtOnce = 50
	// collectedAfter is the least age of an update whose log has been collected.
	collectedAfter = time.Hour
)

// Watch sends an update's events as they are written, until its end, and then those of its continuation, if there is
// one.
func (s *Service) Watch(ctx context.Context, u deployments.UpdateName, send func(deployments.WatchEvent) error) error {
	if err := u.Validate(); err != nil {
		return err
	}
	for {
		next := ""
		err := s.watch(ctx, u, func(e deployments.WatchEvent) error {
			if e.End == nil || e.End.Next == "" {
				return send(e)
			}
			next = e.End.Next
			return send(serviceMessage(u, fmt.Sprintf("update %s continues as update %s: %s", u.Version, next, e.End.Error)))
		})
		if err != nil || next == "" {
			return err
		}
		u.Version = next
		if err := s.queues(ctx, u); err != nil {
			return err
		}
	}
}

// queues waits until the continuation of an update is in its stack's queue: the end of the update is written before.
func (s *Service) queues(ctx context.Context, u deployments.UpdateName) error {
	for until := time.Now().Add(requeueTimeout); ; {
		err := s.checkKnown(ctx, u)
		if deployments.CodeOf(err) != deployments.CodeNotFound || time.Now().After(until) {
			return err
		}
		select {
		case <-ctx.Done():
			return failure("watch the update", ctx.Err())
		case <-time.After(quick):
		}
	}
}

// serviceMessage returns a message of the service to the watchers of an update.
func serviceMessage(u deployments.UpdateName, text string) deployments.WatchEvent {
	return deployments.WatchEvent{Stream: deployments.ServiceStream(u.Version), Event: &apitype.EngineEvent{
		Timestamp: int(time.Now().Unix()), DiagnosticEvent: &apitype.DiagnosticEvent{Message: text + "\n",
			Color: "never", Severity: "info"},
	}}
}

// watch sends the events of one update.
func (s *Service) watch(ctx context.Context, u deployments.UpdateName, send func(deployments.WatchEvent) error) error {
	// The watcher of an update that runs learns from Temporal when there is something to read. If Temporal does not say
	// soon that it runs, the log is looked at.
	var parts map[string]int
	soon, cancel := context.WithTimeout(ctx, endingEvery)
	runs := s.runs(soon, u)
	if cancel(); !runs {
		var err error
		if parts, err = s.Updates.EventParts(ctx, u); err != nil {
			return err
		}
		if len(parts) == 0 {
			if ended, err := s.endedWithoutLog(ctx, u); err != nil || ended != nil {
				return cmp.Or(err, sendEnd(send, ended))
			}
		}
	}
	f, leave := s.feeds.join(s, u, parts)
	defer leave()
	follower := follower{Service: s, feed: f, send: send, next: map[string]int{}}
	return follower.follow(ctx)
}

func sendEnd(send func(deployments.WatchEvent) error, info *deployments.UpdateInfo) error {
	if info == nil {
		return nil
	}
	return send(deployments.WatchEvent{End: info})
}

// runs reports whether the workflow of an update runs, as far as that is known.
func (s *Service) runs(ctx context.Context, u deployments.UpdateName) bool {
	described, err := s.temporal.DescribeWorkflowExecution(ctx, deployments.UpdateWorkflowID(u), "")
	return err == nil && described.GetWorkflowExecutionInfo().GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// endedWithoutLog looks at an update that has no log: it returns the end of one whose log was collected, nil for one
// that has not begun, and an error if there is no such update. One whose workflow runs has the log before it.
func (s *Service) endedWithoutLog(ctx context.Context, u deployments.UpdateName) (*deployments.UpdateInfo, error) {
	if s.runs(ctx, u) {
		return nil, nil
	}
	info, err := s.Updates.Info(ctx, u)
	switch {
	case err != nil && deployments.CodeOf(err) == deployments.CodeNotFound:
		return nil, s.checkKnown(ctx, u)
	case err == nil && !info.Ended.IsZero() && time.Since(info.Ended) > collectedAfter:
		return &info, nil
	}
	return nil, nil //nolint:nilerr // its log may come all the same
}
