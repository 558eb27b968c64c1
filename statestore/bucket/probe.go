package bucket

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/deployctl/deployctl/deployments"
)

// probeKey is the object that Probe writes and CheckReachable reads. Its content has no meaning.
const probeKey = "probe"

// Probe reports, as CodeInvalid, a server that writes even if the condition of a Put does not hold: two writers of one
// stack would overwrite each other there. With readOnly it writes nothing: a server that honours conditions gets only
// writes that it must reject.
func Probe(ctx context.Context, o Objects, readOnly bool) error {
	if readOnly {
		if _, err := o.Tag(ctx, probeKey); err != nil {
			return probe(ctx, o, probes[1:])
		}
		return probe(ctx, o, probes)
	}
	if _, err := o.Put(ctx, probeKey, []byte(rand.Text()), Condition{}); err != nil {
		return Failed(err, "write to the object store")
	}
	return probe(ctx, o, probes)
}

// forbidden is a write that a server must reject; the first one if the probe exists.
type forbidden struct {
	header string
	Condition
}

var probes = []forbidden{{"If-None-Match", Condition{Absent: true}},
	{"If-Match", Condition{Tag: `"0123456789abcdef0123456789abcdef"`}}}

func probe(ctx context.Context, o Objects, writes []forbidden) error {
	for _, c := range writes {
		_, err := o.Put(ctx, probeKey, []byte(rand.Text()), c.Condition)
		switch {
		case err == nil:
			return deployments.Errorf(deployments.CodeInvalid,
				"the object store ignores the condition %s of a write, so two writers could overwrite each other's "+
					"state: use a server that honours conditional writes", c.header)
		case !errors.Is(err, ErrChanged) && !errors.Is(err, ErrAbsent):
			return deployments.Errorf(deployments.CodeOf(err), "the object store refuses a write with the condition "+
				"%s: %w", c.header, err)
		}
	}
	return nil
}

// CheckReachable reports, as CodeUnavailable, why the object store cannot be used now, by one cheap request.
func CheckReachable(ctx context.Context, o Objects) error {
	_, err := o.Get(ctx, probeKey) // the reply to HEAD has no reason
	switch {
	case err == nil, errors.Is(err, ErrAbsent):
		return nil
	case misconfigured(err):
		return deployments.Errorf(deployments.CodeUnavailable, "%w", err)
	}
	what := "object store"
	if s, ok := o.(fmt.Stringer); ok {
		what = s.String()
	}
	return deployments.Errorf(deployments.CodeUnavailable, "the %s does not answer: %w", what, err)
}

// Skew returns how far this machine's clock is ahead of the server's, to about a second.
func (s *S3) Skew(ctx context.Context) (time.Duration, error) {
	out, err := s.client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: &s.bucket,
		Prefix: aws.String(s.prefix + probeKey), MaxKeys: aws.Int32(1)})
	if err != nil {
		return 0, s.translate(err)
	}
	theirs, told := awsmiddleware.GetServerTime(out.ResultMetadata)
	if !told {
		return 0, nil
	}
	at, ok := awsmiddleware.GetResponseAt(out.ResultMetadata)
	if !ok {
		at = time.Now()
	}
	return at.Sub(theirs), nil
}
