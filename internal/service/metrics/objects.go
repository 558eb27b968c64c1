package metrics

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// Objects counts and times each attempt of a call of the object store.
func (m *Metrics) Objects(o bucket.Objects) bucket.Objects { return &timed{o, m} }

type timed struct {
	bucket.Objects
	metrics *Metrics
}

// String names the object store.
func (t *timed) String() string { return fmt.Sprint(t.Objects) }

func (t *timed) note(op string, begun time.Time, err error) {
	t.metrics.objectSeconds.WithLabelValues(op).Observe(time.Since(begun).Seconds())
	if reason := refusal(err); reason != "" {
		t.metrics.objectErrors.WithLabelValues(op, reason).Inc()
	}
}

// Values of the label op of calls of the object store.
const opGet, opHead, opPut, opDelete, opList = "get", "head", "put", "delete", "list"

// Why an attempt failed: the values of the label reason.
const reasonCredentials, reasonUnavailable, reasonOther = "credentials", "unavailable", "other"

// refusal names why an attempt failed; what a caller must expect is no failure.
func refusal(err error) string {
	switch code := deployments.CodeOf(err); {
	case err == nil, errors.Is(err, bucket.ErrAbsent), errors.Is(err, bucket.ErrChanged),
		errors.Is(err, context.Canceled):
		return ""
	case code == deployments.CodeUnauthorized, code == deployments.CodeForbidden:
		return reasonCredentials
	case errors.Is(err, bucket.ErrTransient):
		return reasonUnavailable
	}
	return reasonOther
}

func (t *timed) Get(ctx context.Context, key string) (o bucket.Object, err error) {
	defer func(begun time.Time) { t.note(opGet, begun, err) }(time.Now())
	return t.Objects.Get(ctx, key)
}

func (t *timed) Tag(ctx context.Context, key string) (tag string, err error) {
	defer func(begun time.Time) { t.note(opHead, begun, err) }(time.Now())
	return t.Objects.Tag(ctx, key)
}

func (t *timed) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (tag string, err error) {
	defer func(begun time.Time) { t.note(opPut, begun, err) }(time.Now())
	return t.Objects.Put(ctx, key, data, c)
}

func (t *timed) Delete(ctx context.Context, key string) (err error) {
	defer func(begun time.Time) { t.note(opDelete, begun, err) }(time.Now())
	return t.Objects.Delete(ctx, key)
}

func (t *timed) List(ctx context.Context, q bucket.Query) (l bucket.Listing, err error) {
	defer func(begun time.Time) { t.note(opList, begun, err) }(time.Now())
	return t.Objects.List(ctx, q)
}
