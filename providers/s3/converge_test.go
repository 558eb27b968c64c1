package s3_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/provider/providertest"
	"github.com/deployctl/deployctl/providers/s3"
	"github.com/deployctl/deployctl/providers/s3/s3test"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// played begins the names of the buckets that providertest plays with.
const played = "played-"

// start empties the server of what was played before, and has the calls to it pass through calls.
func start(t *testing.T, calls *providertest.Calls) providertest.Setup {
	t.Helper()
	s := playground{direct()}
	s.empty(t)
	target, err := url.Parse(s3test.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	endpoint := calls.Serve(t, &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}})
	return providertest.Setup{
		Package: func() provider.Package {
			return provider.Package{Name: "deployctl", Version: "0.0.1",
				Modules: []provider.Module{s3.Module(s3.Config{})}}
		},
		Config: providertest.Inputs{"s3Endpoint": endpoint, "s3AccessKey": s3test.AccessKey,
			"s3SecretKey": s3test.SecretKey},
		Things: func() map[string]any { return s.things(t) },
	}
}

// playground is the part of the server that is played with.
type playground struct{ *awss3.Client }

// buckets returns the names of the buckets.
func (s playground) buckets(t *testing.T) []string {
	t.Helper()
	all, err := s.ListBuckets(context.Background(), &awss3.ListBucketsInput{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, b := range all.Buckets {
		if name := aws.ToString(b.Name); strings.HasPrefix(name, played) {
			names = append(names, name)
		}
	}
	return names
}

// keys returns the objects of a bucket; false if it is gone: a delete whose caller was killed may go on in the server
// while the buckets are looked at.
func (s playground) keys(t *testing.T, bucket string) (keys []string, exists bool) {
	t.Helper()
	page, err := s.ListObjectsV2(context.Background(), &awss3.ListObjectsV2Input{Bucket: &bucket})
	if gone := (*types.NoSuchBucket)(nil); errors.As(err, &gone) {
		return nil, false
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range page.Contents {
		keys = append(keys, aws.ToString(o.Key))
	}
	return keys, true
}

func (s playground) empty(t *testing.T) {
	t.Helper()
	for _, bucket := range s.buckets(t) {
		keys, _ := s.keys(t, bucket)
		for _, key := range keys {
			if _, err := s.DeleteObject(t.Context(), &awss3.DeleteObjectInput{Bucket: &bucket, Key: &key}); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := s.DeleteBucket(t.Context(), &awss3.DeleteBucketInput{Bucket: &bucket}); err != nil {
			t.Fatal(err)
		}
	}
}

// bucket is a bucket as providertest compares it.
type bucket struct {
	Tags   map[string]string
	Policy string
}

// object is an object as providertest compares it.
type object struct {
	Content, Type, Caching string
	Metadata               map[string]string
}

// things returns all buckets and objects.
func (s playground) things(t *testing.T) map[string]any {
	t.Helper()
	all := map[string]any{}
	for _, name := range s.buckets(t) {
		b := bucket{Tags: map[string]string{}}
		if tags, err := s.GetBucketTagging(context.Background(), &awss3.GetBucketTaggingInput{Bucket: &name}); err == nil {
			for _, tag := range tags.TagSet {
				b.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
			}
		}
		if p, err := s.GetBucketPolicy(context.Background(), &awss3.GetBucketPolicyInput{Bucket: &name}); err == nil {
			b.Policy = aws.ToString(p.Policy)
		}
		keys, exists := s.keys(t, name)
		if !exists {
			continue
		}
		all["bucket "+name] = b
		for _, key := range keys {
			if o, exists := s.object(t, name, key); exists {
				all["object "+name+"/"+key] = o
			}
		}
	}
	return all
}

// object returns an object; false if it is gone, see keys.
func (s playground) object(t *testing.T, bucket, key string) (o object, exists bool) {
	t.Helper()
	got, err := s.GetObject(context.Background(), &awss3.GetObjectInput{Bucket: &bucket, Key: &key})
	if gone := (*types.NoSuchKey)(nil); errors.As(err, &gone) {
		return o, false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	content, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	return object{string(content), aws.ToString(got.ContentType), aws.ToString(got.CacheControl),
		maps.Clone(got.Metadata)}, true
}

func TestBucketsConverge(t *testing.T) {
	providertest.Run(t, func(t *testing.T, calls *providertest.Calls) providertest.Setup {
		setup := start(t, calls)
		setup.Unmarked = func(in resource.PropertyMap) {
			name := in["name"].StringValue()
			if _, err := direct().CreateBucket(context.Background(), &awss3.CreateBucketInput{Bucket: &name}); err != nil {
				t.Fatal(err)
			}
		}
		return setup
	}, providertest.Case{
		Type:   "deployctl:s3:Bucket",
		Inputs: providertest.Inputs{"name": played + "bucket", "tags": map[string]any{"team": "web"}},
		Change: providertest.Inputs{"publicRead": true, "tags": map[string]any{"team": "ops", "cost": "1"},
			"forceDestroy": true},
		Replace: providertest.Inputs{"name": played + "other"},
		Unseen:  []string{"forceDestroy"},
	})
}

func TestObjectsConverge(t *testing.T) {
	soaktest.Only(t)
	const within = played + "with-objects"
	providertest.Run(t, func(t *testing.T, calls *providertest.Calls) providertest.Setup {
		setup := start(t, calls)
		if _, err := direct().CreateBucket(t.Context(), &awss3.CreateBucketInput{Bucket: aws.String(within)}); err != nil {
			t.Fatal(err)
		}
		return setup
	}, providertest.Case{
		Type:    "deployctl:s3:Object",
		Inputs:  providertest.Inputs{"bucket": within, "key": "a.txt", "content": "one"},
		Change:  providertest.Inputs{"content": "two", "contentType": "text/x-other", "cacheControl": "no-cache"},
		Replace: providertest.Inputs{"key": "b.txt"},
	})
}
