package s3_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/deployctl/deployctl/providers/s3/s3test"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// tagging answers the requests for the tags of a bucket as a server without them does; nil ones are forwarded.
type tagging struct {
	get, put func(w http.ResponseWriter, r *http.Request) bool
}

func (c tagging) next(w http.ResponseWriter, r *http.Request) bool {
	switch {
	case !r.URL.Query().Has("tagging"):
		return false
	case r.Method == http.MethodGet && c.get != nil:
		return c.get(w, r)
	case r.Method == http.MethodPut && c.put != nil:
		return c.put(w, r)
	}
	return false
}

func answers(code int, name string) func(http.ResponseWriter, *http.Request) bool {
	return func(w http.ResponseWriter, _ *http.Request) bool { return answer(w, code, name) }
}

func listsInstead(w http.ResponseWriter, _ *http.Request) bool {
	_, _ = io.WriteString(w, "<ListBucketResult><Name>b</Name></ListBucketResult>")
	return true
}

func accepts(w http.ResponseWriter, _ *http.Request) bool {
	w.WriteHeader(http.StatusNoContent)
	return true
}

func TestANewBucketWhoseTagsCannotBeSetIsRemovedAgainAndTheReasonSaid(t *testing.T) {
	const otherServer, permission = "use an S3 server that keeps the tags of buckets", "allow the credentials"
	for name, c := range map[string]struct {
		server tagging
		says   string
	}{
		"that-knows-no-tags": {tagging{answers(http.StatusNotImplemented, "NotImplemented"),
			answers(http.StatusNotImplemented, "NotImplemented")}, otherServer},
		"that-takes-it-for-a-create": {tagging{listsInstead, answers(http.StatusConflict, "BucketAlreadyExists")},
			otherServer},
		"that-lacks-the-method": {tagging{put: answers(http.StatusMethodNotAllowed, "MethodNotAllowed")}, otherServer},
		"that-drops-them":       {tagging{listsInstead, accepts}, otherServer},
		"that-forbids-it":       {tagging{put: answers(http.StatusForbidden, "AccessDenied")}, permission},
		"that-refuses-a-tag":    {tagging{put: answers(http.StatusBadRequest, "InvalidTag")}, "InvalidTag"},
	} {
		t.Run("a server "+name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			withoutTagsInCreates(t, p, c.server.next)
			_, _, err := open(t, p.URL).create(urnOf("dev", "Bucket", "b"), props{"name": str(name)})
			if err == nil || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "the new bucket was removed again") {
				t.Errorf("the create: %v", err)
			}
			if s := status.Convert(err); s.Code() != codes.Unknown || len(s.Details()) != 0 {
				t.Errorf("a bucket that was removed is %v with %v", s.Code(), s.Details())
			}
			if got, _ := open(t, s3test.Endpoint).ownership(urnOf("dev", "Bucket", "b"), "", props{"name": str(name)},
				nil); got != "absent" {
				t.Errorf("the bucket is %s", got)
			}
		})
	}
}

func TestANewBucketWithoutTagsStaysInTheStateWhereItCannotOrNeedNotBeRemoved(t *testing.T) {
	fill := func(bucket string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool {
			key := "somebody's"
			if _, err := direct().PutObject(r.Context(), &awss3.PutObjectInput{Bucket: &bucket, Key: &key}); err != nil {
				t.Error(err)
			}
			return answer(w, http.StatusNotImplemented, "NotImplemented")
		}
	}
	for name, c := range map[string]struct {
		put, rest func(http.ResponseWriter, *http.Request) bool
		says      string
	}{
		"filled": {fill("filled"), nil, "it could not be removed again: it is not empty"},
		"undeletable": {answers(http.StatusNotImplemented, "NotImplemented"),
			func(w http.ResponseWriter, r *http.Request) bool {
				return r.Method == http.MethodDelete && answer(w, http.StatusForbidden, "AccessDenied")
			}, "it could not be removed again"},
		"untagged-for-now": {answers(http.StatusServiceUnavailable, "SlowDown"), nil, "SlowDown"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			server := tagging{put: c.put}
			withoutTagsInCreates(t, p, func(w http.ResponseWriter, r *http.Request) bool {
				return c.rest != nil && c.rest(w, r) || server.next(w, r)
			})
			urn, in := urnOf("dev", "Bucket", "b"), props{"name": str(name)}
			_, _, err := open(t, p.URL).create(urn, in)
			if err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("the create: %v", err)
			}
			details := status.Convert(err).Details()
			if len(details) != 1 {
				t.Fatalf("the bucket that stays is not in the state: %v", err)
			}
			half, ok := details[0].(*pulumirpc.ErrorResourceInitFailed)
			if !ok || half.GetId() != name {
				t.Fatalf("the bucket that stays is %v", details[0])
			}
			out := unwire(t, half.GetProperties())
			out["forceDestroy"] = resource.NewProperty(true)
			if err := open(t, s3test.Endpoint).remove(urn, name, in, out); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestABucketWhoseServerHasLostItsTagsIsUpdatedByNobodyAndCanBeDestroyed(t *testing.T) {
	p := newProxy(t)
	e := open(t, p.URL)
	urn, in := urnOf("dev", "Bucket", "b"), props{"name": str("moved-to-a-lesser-server")}
	id, out := e.mustCreate(urn, in)
	server := tagging{answers(http.StatusNotImplemented, "NotImplemented"),
		answers(http.StatusNotImplemented, "NotImplemented")}
	without := func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool { return server.next(w, r) }
	p.spoil.Store(&without)
	_, _, err := e.create(urn, in)
	if status.Code(err) != codes.AlreadyExists {
		t.Errorf("a create whose answer was lost, without a mark to know its own by: %v", err)
	}
	_, err = e.update(urn, id, in, out, in)
	if err == nil || !strings.Contains(err.Error(), "use an S3 server that keeps the tags of buckets") ||
		strings.Contains(err.Error(), "removed") {
		t.Errorf("an update: %v", err)
	}
	if _, found := e.ownership(urn, id, in, out); found.GetId() != id {
		t.Errorf("it reads as %v", found)
	}
	if err := e.remove(urn, id, in, out); err != nil {
		t.Errorf("the destroy: %v", err)
	}
	if got, _ := e.ownership(urn, id, in, out); got != "absent" {
		t.Errorf("after the destroy it is %s", got)
	}
}
