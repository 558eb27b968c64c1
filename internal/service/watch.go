package service

import (
	"context"
	"fmt"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/eventlog"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	// quick and slow bound how often a log is looked at; it is looked at less and less while nothing comes.
	quick, slow = 30 * time.Millisecond, 2 * time.Second
	// endingEvery is how often it is looked whether an update has begun, before its end can be waited for.
	endingEvery = 250 * time.Millisecond
	// brisk is how often it is looked at first when the end is about to be written.
	brisk = 5 * time.Millisecond
	// progressEvery is how often a running update is asked where it stands.
	progressEvery = time.Second
	// patience is how many looks may find nothing of an update before it is given up.
	patience = 5
	// handedOn is how long an update may take at most to be queued once the one that it goes on from has ended.
	handedOn = time.Minute
	// partsAtOnce bounds the parts that are read in one go.
	partsAtOnce = 50
	// collectedAfter is how old an update is at least whose log is not kept any more.
	collectedAfter = time.Hour
)

// Watch sends an update's events as they are written, until its end, and goes on with what it goes on as.
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
			return send(said(u, fmt.Sprintf("update %s goes on as update %s: %s", u.Version, next, e.End.Error)))
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

// queues waits until an update that another goes on as is in its stack's queue: the end of the other is written before.
func (s *Service) queues(ctx context.Context, u deployments.UpdateName) error {
	for until := time.Now().Add(handedOn); ; {
		err := s.known(ctx, u)
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

// said is something that the service tells a watcher of an update.
func said(u deployments.UpdateName, text string) deployments.WatchEvent {
	return deployments.WatchEvent{Stream: u.Version + "/service", Event: &apitype.EngineEvent{
		Timestamp: int(time.Now().Unix()), DiagnosticEvent: &apitype.DiagnosticEvent{Message: text + "\n",
			Color: "never", Severity: "info"},
	}}
}

// watch sends the events of one update.
func (s *Service) watch(ctx context.Context, u deployments.UpdateName, send func(deployments.WatchEvent) error) error {
	info, err := s.Info(ctx, u)
	switch {
	case err != nil && deployments.CodeOf(err) == deployments.CodeNotFound:
		if err := s.known(ctx, u); err != nil {
			return err
		}
	case err == nil && !info.Ended.IsZero() && time.Since(info.Ended) > collectedAfter:
		log, err := s.ReadEvents(ctx, statestore.Part{Update: u, Stream: eventlog.RunStream, Number: 1}, 1)
		if err != nil && !damaged(err) {
			return err
		}
		if err == nil && len(log) == 0 {
			return send(deployments.WatchEvent{End: &info})
		}
	}
	f, leave := s.feeds.join(s, u)
	defer leave()
	follower := follower{Service: s, feed: f, send: send, next: map[string]int{}}
	return follower.follow(ctx)
}
