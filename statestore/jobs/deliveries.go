package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// deliveryFolder has the messages of git servers that were taken; recentFolder in it those that say their age.
const deliveryFolder, recentFolder = "deliveries", "recent"

// clocksDiffer bounds how far the clocks of this service and of the object store are apart.
const clocksDiffer = 24 * time.Hour

// Delivery is a message of a git server.
type Delivery struct {
	Digest string // of what was signed
	// Lasts is for how long the message may be taken, counted from a time that it says itself; 0: for ever.
	Lasts time.Duration
}

func deliveryKey(name deployments.StackName, d Delivery) string {
	if d.Lasts == 0 {
		return stackobjects.Key(name, deploymentFolder, deliveryFolder, d.Digest)
	}
	return stackobjects.Key(name, deploymentFolder, deliveryFolder, recentFolder, d.Digest)
}

// TakeDelivery records that a message of a git server is acted on; CodeExists when it was before. Messages that nobody
// would take any more are forgotten.
func (s *Store) TakeDelivery(ctx context.Context, name deployments.StackName, d Delivery) error {
	taken := deployments.Errorf(deployments.CodeExists, "this delivery was taken already: what it asked for is not "+
		"done twice")
	if d.Lasts > 0 { // earlier releases remembered every message for ever
		switch _, err := s.sealed.Objects.Get(ctx, deliveryKey(name, Delivery{Digest: d.Digest})); {
		case err == nil:
			return taken
		case !errors.Is(err, bucket.ErrAbsent):
			return bucket.Failed(err, "read a delivery")
		}
	}
	err := s.stacks.PutIf(ctx, name, deliveryKey(name, d), s.sealed.Now().UTC(), bucket.Condition{Absent: true})
	if errors.Is(err, bucket.ErrChanged) {
		return taken
	}
	if err == nil && d.Lasts > 0 {
		s.forgetDeliveries(ctx, name, d.Lasts)
	}
	return err
}

// forgetDeliveries removes what is remembered of messages that are too old to be taken. What cannot be removed now is
// removed the next time.
func (s *Store) forgetDeliveries(ctx context.Context, name deployments.StackName, lasts time.Duration) {
	recent := stackobjects.Key(name, deploymentFolder, deliveryFolder, recentFolder, "")
	l, err := s.sealed.Objects.List(ctx, bucket.Query{Prefix: recent})
	if err != nil {
		return
	}
	for i, key := range l.Keys {
		if s.sealed.Now().Sub(l.Written[i]) > lasts+clocksDiffer {
			_ = s.sealed.Objects.Delete(ctx, key)
		}
	}
}

// ForgetDelivery lets a message be taken again.
func (s *Store) ForgetDelivery(ctx context.Context, name deployments.StackName, d Delivery) error {
	return bucket.Failed(s.sealed.Objects.Delete(ctx, deliveryKey(name, d)), "forget a delivery")
}
