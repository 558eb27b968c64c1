package s3_test

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/credentials"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/deployctl/deployctl/providers/s3"
	"github.com/deployctl/deployctl/providers/s3/s3test"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/status"
)

// moreServers is the variable with further servers on which the provider is to converge, as URLs with the credentials
// in them, such as http://KEY:SECRET@127.0.0.1:9000.
const moreServers = "S3_TEST_SERVERS"

func TestWhatIsAskedForIsReadBackOnEveryServer(t *testing.T) {
	own, err := url.Parse(s3test.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	own.User = url.UserPassword(s3test.AccessKey, s3test.SecretKey)
	for _, address := range append([]string{own.String()}, strings.Fields(os.Getenv(moreServers))...) {
		server, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(server.Host, func(t *testing.T) {
			secret, _ := server.User.Password()
			e := openWith(t, s3.Config{Endpoint: "http://" + server.Host, AccessKey: server.User.Username(), SecretKey: secret})
			e.converges(props{"name": str("conformance"), "publicRead": resource.NewProperty(true),
				"tags":         resource.NewProperty(props{"team": str("web"), "purpose": str("a test of + and ü")}),
				"forceDestroy": resource.NewProperty(true)})
		})
	}
}

// converges creates, changes and deletes a bucket with an object, and reads all back after every step.
func (e engine) converges(bucket props) {
	e.t.Helper()
	bucketURN, objectURN := urnOf("dev", "Bucket", "b"), urnOf("dev", "Object", "o")
	object := props{"bucket": bucket["name"], "key": str("a b/index.html"), "content": str("<p>one"),
		"cacheControl": str("max-age=60")}
	bucketID, bucketOut := e.mustCreate(bucketURN, bucket)
	objectID, objectOut := e.mustCreate(objectURN, object)
	e.reads(bucketURN, bucketID, bucket, bucketOut)
	e.reads(objectURN, objectID, object, objectOut)
	e.mustCreate(bucketURN, bucket) // as after a lost answer
	e.mustCreate(objectURN, object)

	changed, rewritten := bucket.Copy(), object.Copy()
	changed["tags"], changed["publicRead"] = resource.NewProperty(props{"team": str("ops")}), resource.NewProperty(false)
	rewritten["content"], rewritten["contentType"] = str("two"), str("text/x-other")
	delete(rewritten, "cacheControl")
	bucketOut, err := e.update(bucketURN, bucketID, bucket, bucketOut, changed)
	if err != nil {
		e.t.Fatal(err)
	}
	if objectOut, err = e.update(objectURN, objectID, object, objectOut, rewritten); err != nil {
		e.t.Fatal(err)
	}
	e.reads(bucketURN, bucketID, changed, bucketOut)
	e.reads(objectURN, objectID, rewritten, objectOut)
	if err := e.remove(bucketURN, bucketID, changed, bucketOut); err != nil {
		e.t.Fatal(err)
	}
	for urn, in := range map[string]props{bucketURN: changed, objectURN: rewritten} {
		if got, _ := e.ownership(urn, "", in, nil); got != "absent" {
			e.t.Errorf("after all was deleted, %s is %s", urn, got)
		}
	}
}

// reads makes sure that a resource reads as it was declared.
func (e engine) reads(urn, id string, in, out props) {
	e.t.Helper()
	owned, found := e.ownership(urn, id, in, out)
	want := unwire(e.t, wire(e.t, in))
	if public, ok := want["publicRead"]; ok && !public.BoolValue() {
		delete(want, "publicRead")
	}
	if got := unwire(e.t, found.GetInputs()); owned != "owned" || !got.DeepEquals(want) {
		e.t.Errorf("%s is %s and reads as %v, not %v", urn, owned, got, want)
	}
	if got := unwire(e.t, found.GetProperties()); !got.DeepEquals(out) {
		e.t.Errorf("%s comes to %v, not %v", urn, got, out)
	}
}

// withoutTagsInCreates has the proxy's server ignore what a create says beside the name, as servers do that do not know
// tags in creates, and answer the rest as next says. It counts the marks that were ignored.
func withoutTagsInCreates(t *testing.T, p *proxy, next func(http.ResponseWriter, *http.Request) bool) *atomic.Int64 {
	plain := direct()
	ignored := &atomic.Int64{}
	spoil := func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		bucket, key, _ := strings.Cut(strings.Trim(r.URL.Path, "/"), "/")
		if r.Method != http.MethodPut || key != "" || r.URL.Query().Has("tagging") || r.URL.Query().Has("policy") {
			return next(w, r)
		}
		if body, _ := io.ReadAll(r.Body); strings.Contains(string(body), "deployctl:owner") {
			ignored.Add(1)
		}
		if _, err := plain.CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: &bucket}); err != nil {
			answer(w, http.StatusConflict, "BucketAlreadyOwnedByYou")
		}
		return true
	}
	p.spoil.Store(&spoil)
	return ignored
}

// direct is a client of the server behind every proxy.
func direct() *awss3.Client {
	return awss3.New(awss3.Options{BaseEndpoint: &s3test.Endpoint, UsePathStyle: true, Region: "us-east-1",
		Credentials: credentials.NewStaticCredentialsProvider(s3test.AccessKey, s3test.SecretKey, "")})
}

func answer(w http.ResponseWriter, code int, name string) bool {
	w.WriteHeader(code)
	_, _ = io.WriteString(w, "<Error><Code>"+name+"</Code></Error>")
	return true
}

func TestWhatAServerIgnoresInACreateIsSetByACallOfItsOwn(t *testing.T) {
	p := newProxy(t)
	ignored := withoutTagsInCreates(t, p, func(http.ResponseWriter, *http.Request) bool { return false })
	open(t, p.URL).converges(props{"name": str("ignored"),
		"tags": resource.NewProperty(props{"team": str("web")}), "forceDestroy": resource.NewProperty(true)})
	if ignored.Load() == 0 {
		t.Error("no create had a mark to ignore")
	}
}

// Ceph's gateway answers a create with a configuration so, unless that names a place.
func TestABucketIsCreatedWithoutTagsWhereTheServerRefusesThemInACreate(t *testing.T) {
	for name, code := range map[string]int{"InvalidArgument": http.StatusBadRequest, "MalformedXML": http.StatusBadRequest,
		"NotImplemented": http.StatusNotImplemented} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			refused := &atomic.Int64{}
			refuse := func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if r.Method != http.MethodPut || r.URL.RawQuery != "" || r.ContentLength <= 0 ||
					strings.Contains(strings.Trim(r.URL.Path, "/"), "/") {
					return false
				}
				refused.Add(1)
				return answer(w, code, name)
			}
			p.spoil.Store(&refuse)
			open(t, p.URL).converges(props{"name": str("refused-" + strings.ToLower(name)),
				"tags": resource.NewProperty(props{"team": str("web")}), "forceDestroy": resource.NewProperty(true)})
			if refused.Load() != 1 {
				t.Errorf("%d creates were refused", refused.Load())
			}
		})
	}
}

func TestAServerThatDoesNotKeepWhatItAcceptsIsSaid(t *testing.T) {
	drops := func(r *http.Request, what string) bool {
		return r.Method == http.MethodPut && r.URL.Query().Has(what)
	}
	for what, c := range map[string]struct {
		in    props
		spoil func(*http.Request) bool
	}{
		"tags of buckets": {props{"name": str("untagged"), "tags": resource.NewProperty(props{"a": str("b")})},
			func(r *http.Request) bool { return drops(r, "tagging") }},
		"policies of buckets": {props{"name": str("unpoliced"), "publicRead": resource.NewProperty(true)},
			func(r *http.Request) bool { return drops(r, "policy") }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			p := newProxy(t)
			e := open(t, p.URL)
			urn := urnOf("dev", "Bucket", "b")
			id, out := e.mustCreate(urn, props{"name": c.in["name"]})
			drop := func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
				if !c.spoil(r) {
					return false
				}
				w.WriteHeader(http.StatusNoContent)
				return true
			}
			p.spoil.Store(&drop)
			_, err := e.update(urn, id, props{"name": c.in["name"]}, out, c.in)
			if err == nil || !strings.Contains(err.Error(), "accepts "+what+" and does not keep them") {
				t.Errorf("%v", err)
			}
			details := status.Convert(err).Details()
			if len(details) != 1 || details[0].(*pulumirpc.ErrorResourceInitFailed).GetId() != id {
				t.Errorf("the bucket that exists is not kept: %v", details)
			}
		})
	}
}
