package s3

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/stamp"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

// Object is deployctl:s3:Object.
type Object struct{ conn *connection }

// ObjectIn declares an object.
type ObjectIn struct {
	Bucket       string       `pulumi:"bucket,replace" doc:"The bucket's name."`
	Key          string       `pulumi:"key,replace" doc:"The object's key."`
	Source       *asset.Asset `pulumi:"source,optional" doc:"The content as an asset. Set either this or content."`
	Content      *string      `pulumi:"content,optional" doc:"The content as text. Set either this or source."`
	ContentType  string       `pulumi:"contentType,optional" doc:"The media type; by default derived from the key's extension, else from the content."`
	CacheControl string       `pulumi:"cacheControl,optional" doc:"The Cache-Control header of responses."`
}

// ObjectOut describes an object that exists.
type ObjectOut struct {
	Bucket       string `pulumi:"bucket" doc:"The bucket's name."`
	Key          string `pulumi:"key" doc:"The object's key."`
	ContentType  string `pulumi:"contentType" doc:"The media type."`
	CacheControl string `pulumi:"cacheControl,optional" doc:"The Cache-Control header of responses."`
	URL          string `pulumi:"url,stable" doc:"The URL of the object."`
	ETag         string `pulumi:"etag" doc:"The entity tag that the server assigned to the content."`
	SHA256       string `pulumi:"sha256" doc:"The SHA-256 digest of the content, in hexadecimal."`
	Size         int    `pulumi:"size" doc:"The size in bytes."`
	Owner        string `pulumi:"owner" doc:"The owner in its metadata that marks it as this resource's."`
}

// owner is the mark that is remembered, empty when nothing is.
func (o *ObjectOut) owner() string {
	if o == nil {
		return ""
	}
	return o.Owner
}

// The metadata of an object that hold its stamp and the digest of its content.
const (
	ownerMeta  = "deployctl-owner"
	stackMeta  = "deployctl-stack"
	digestMeta = "deployctl-sha256"
)

// Describe is the type's text in the schema.
func (o *Object) Describe() string {
	return "An object in a bucket on an S3 endpoint. Its ID, for imports, is BUCKET/KEY."
}

// Check wants one content and a key that S3 takes.
func (o *Object) Check(_ context.Context, in provider.Inputs[ObjectIn]) []provider.Failure {
	var failures []provider.Failure
	fail := func(property, reason string) {
		failures = append(failures, provider.Failure{Property: property, Reason: reason})
	}
	if in.Known("source", "content") {
		switch {
		case in.Value.Source == nil && in.Value.Content == nil:
			fail("source", "must be given, unless content is")
		case in.Value.Source != nil && in.Value.Content != nil:
			fail("content", "may not be given together with source")
		}
	}
	if key := in.Value.Key; len(key) > 1024 || strings.HasPrefix(key, "/") || in.Known("key") && key == "" {
		fail("key", fmt.Sprintf("%q is not a key: 1 to 1024 bytes that do not start with a slash", key))
	}
	return failures
}

// digest is the SHA-256 of the content in hexadecimal, which assets carry with them.
func (in ObjectIn) digest() string {
	if in.Content != nil {
		sum := sha256.Sum256([]byte(*in.Content))
		return hex.EncodeToString(sum[:])
	}
	if in.Source != nil {
		return in.Source.Hash
	}
	return ""
}

// Preview knows all but what only the server can tell of new content.
func (o *Object) Preview(_ context.Context, r provider.Request[ObjectIn, ObjectOut]) (ObjectOut, error) {
	conn, err := o.conn.get()
	if err != nil {
		return ObjectOut{}, err
	}
	out := ObjectOut{ContentType: r.News.ContentType, CacheControl: r.News.CacheControl, SHA256: r.News.digest(),
		Owner: r.Owner()}
	if out.ContentType == "" && r.Known("key", "contentType") {
		out.ContentType = typeByName(r.News.Key)
	}
	if r.Known("bucket", "key") {
		out.URL = conn.objectURL(r.News.Bucket, r.News.Key)
	}
	if r.Output != nil && out.SHA256 != "" && r.Output.SHA256 == out.SHA256 {
		out.ETag, out.Size = r.Output.ETag, r.Output.Size
	}
	return out, nil
}

// observed is an object as the server describes it.
type observed struct {
	exists                   bool
	etag, mediaType, caching string
	size                     int
	mark                     stamp.Stamp
	digest                   string
}

func (o *opened) observeObject(ctx context.Context, bucket, key string) (observed, error) {
	head, err := o.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &bucket, Key: &key})
	if absent(err) {
		return observed{}, nil
	}
	if err != nil {
		return observed{}, err
	}
	return observed{
		exists: true, etag: aws.ToString(head.ETag), mediaType: aws.ToString(head.ContentType),
		caching: aws.ToString(head.CacheControl), size: int(aws.ToInt64(head.ContentLength)),
		mark:   stamp.Stamp{Owner: head.Metadata[ownerMeta], Stack: head.Metadata[stackMeta]},
		digest: head.Metadata[digestMeta],
	}, nil
}

func (seen observed) out(conn *opened, in ObjectIn) ObjectOut {
	return ObjectOut{
		Bucket: in.Bucket, Key: in.Key, ContentType: seen.mediaType, CacheControl: seen.caching,
		URL: conn.objectURL(in.Bucket, in.Key), ETag: seen.etag, SHA256: seen.digest, Size: seen.size,
		Owner: seen.mark.Owner,
	}
}

// isStill says whether the content is what was remembered. The server's tag tells too, because some servers keep the
// metadata of an object that somebody else writes over.
func (seen observed) isStill(remembered ObjectOut) bool {
	return unquoted(seen.etag) == unquoted(remembered.ETag) && seen.digest == remembered.SHA256
}

// has says whether the content is the declared one.
func (seen observed) has(r provider.Request[ObjectIn, ObjectOut]) bool {
	return seen.exists && seen.digest != "" && seen.digest == r.News.digest() && r.Output != nil && seen.isStill(*r.Output)
}

// unquoted returns an entity tag without quotation marks, which some servers send with one answer and not with another.
func unquoted(etag string) string { return strings.Trim(etag, `"`) }

// Reconcile writes the object unless it is there as declared already.
func (o *Object) Reconcile(ctx context.Context, r provider.Request[ObjectIn, ObjectOut]) (string, ObjectOut, error) {
	var none ObjectOut
	conn, err := o.conn.get()
	if err != nil {
		return "", none, err
	}
	id := r.News.Bucket + "/" + r.News.Key
	seen, err := conn.observeObject(ctx, r.News.Bucket, r.News.Key)
	if err != nil {
		return "", none, failed("object "+id, err)
	}
	if seen.exists && seen.mark.Refuses(r.Identity, r.ID == id, r.Output.owner()) {
		return "", none, seen.mark.Foreign("object "+id, id)
	}
	body, err := open(ctx, r.News)
	if err != nil && seen.has(r) {
		body, err = conn.kept(ctx, r.News, seen)
	}
	if err != nil {
		return "", none, fmt.Errorf("content of object %s: %w", id, err)
	}
	defer body.close()
	want, err := wanted(r, body)
	if err != nil {
		return "", none, fmt.Errorf("content of object %s: %w", id, err)
	}
	want.exists, want.etag = seen.exists, seen.etag
	if want == seen && (r.Output == nil || seen.isStill(*r.Output)) {
		return id, seen.out(conn, r.News), nil
	}
	if want.etag, err = conn.write(ctx, r.News, body, want); err != nil && want.etag == "" {
		return "", none, failed("object "+id, err)
	} else if err != nil { // it exists
		return id, want.out(conn, r.News), failed("object "+id, err)
	}
	return id, want.out(conn, r.News), nil
}

// write writes the object and makes sure that the server has it so. Some keep, when an object is written over,
// headers of the old one that the new one has not: there the old one is removed first. A server that keeps all of one
// new object does so of every one. The entity tag is empty if nothing was written.
func (o *opened) write(ctx context.Context, in ObjectIn, body *content, want observed) (etag string, err error) {
	over := want.exists
	if want.etag, err = o.put(ctx, in, body, want); err != nil || !over && o.keepsObjects.Load() {
		return want.etag, err
	}
	want.exists = true
	seen, err := o.observeObject(ctx, in.Bucket, in.Key)
	if err != nil {
		return want.etag, err
	}
	if over && !seen.is(want) {
		if _, err := o.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &in.Bucket, Key: &in.Key}); err != nil {
			return want.etag, err
		}
		if _, err := body.reader.Seek(0, io.SeekStart); err != nil {
			return "", err
		}
		want.exists = false
		if want.etag, err = o.put(ctx, in, body, want); err != nil {
			return "", err
		}
		want.exists = true
	}
	err = provider.Aspect[observed]{
		Name: "metadata and headers of objects", Want: want, Same: observed.is,
		Observe: func(ctx context.Context) (observed, error) { return o.observeObject(ctx, in.Bucket, in.Key) },
	}.Kept(ctx)
	o.keepsObjects.CompareAndSwap(false, err == nil)
	return want.etag, err
}

// is reports whether the object is as another description says.
func (seen observed) is(want observed) bool {
	seen.etag, want.etag = unquoted(seen.etag), unquoted(want.etag)
	return seen == want
}

func wanted(r provider.Request[ObjectIn, ObjectOut], body *content) (observed, error) {
	want := observed{
		mediaType: r.News.ContentType, caching: r.News.CacheControl, size: int(body.size),
		mark: stamp.For(r.Identity), digest: r.News.digest(),
	}
	if want.mediaType == "" {
		want.mediaType = typeByName(r.News.Key)
	}
	var err error
	if want.mediaType == "" {
		want.mediaType, err = body.sniff()
	}
	return want, err
}

// put writes the object with its stamp in one request. One that was absent a moment ago is not overwritten if it is
// there now.
func (o *opened) put(ctx context.Context, in ObjectIn, body *content, want observed) (etag string, err error) {
	req := &s3.PutObjectInput{
		Bucket: &in.Bucket, Key: &in.Key, Body: body.reader, ContentLength: &body.size, ContentType: &want.mediaType,
		Metadata: map[string]string{ownerMeta: want.mark.Owner, stackMeta: want.mark.Stack, digestMeta: want.digest},
	}
	if want.caching != "" {
		req.CacheControl = &want.caching
	}
	if !want.exists {
		req.IfNoneMatch = aws.String("*")
	}
	resp, err := o.client.PutObject(ctx, req)
	if is(err, "PreconditionFailed", "ConditionalRequestConflict") {
		return "", &provider.NotDone{Err: fmt.Errorf("another writer is changing it: %w", err)}
	}
	if err != nil {
		return "", err
	}
	return aws.ToString(resp.ETag), nil
}

// Read answers by the id, or by the inputs when the id was never heard. Content that was changed from outside is
// reported as no content, so that the next update writes it again.
func (o *Object) Read(
	ctx context.Context, r provider.Lookup[ObjectIn, ObjectOut],
) (provider.Found[ObjectIn, ObjectOut], error) {
	var none provider.Found[ObjectIn, ObjectOut]
	conn, err := o.conn.get()
	if err != nil {
		return none, err
	}
	in, remembered := ObjectIn{}, ObjectOut{}
	if r.Inputs != nil {
		in = *r.Inputs
	}
	if r.Output != nil {
		remembered = *r.Output
	}
	if r.ID != "" {
		var ok bool
		if in.Bucket, in.Key, ok = strings.Cut(r.ID, "/"); !ok {
			return none, fmt.Errorf("%q is not the id of an object: it has the form BUCKET/KEY", r.ID)
		}
	}
	seen, err := conn.observeObject(ctx, in.Bucket, in.Key)
	if err != nil {
		return none, failed("object "+in.Bucket+"/"+in.Key, err)
	}
	if !seen.exists {
		return provider.Found[ObjectIn, ObjectOut]{Ownership: provider.Absent}, nil
	}
	if r.Output == nil && seen.digest != in.digest() || r.Output != nil && !seen.isStill(remembered) {
		in.Source, in.Content = nil, nil
	}
	if in.ContentType != "" || seen.mediaType != remembered.ContentType && remembered.ContentType != "" {
		in.ContentType = seen.mediaType
	}
	in.CacheControl = seen.caching
	out := seen.out(conn, in)
	out.Owner = seen.mark.Kept(r.Identity, remembered.Owner)
	owned := seen.mark.Ownership(r.Identity, remembered.Owner)
	if r.ID == "" {
		owned = seen.mark.LookedUp(r.Identity)
	}
	return provider.Found[ObjectIn, ObjectOut]{
		Ownership: owned, Owner: seen.mark.People(), ID: in.Bucket + "/" + in.Key, Inputs: in,
		Output: out,
	}, nil
}

// Delete leaves an object alone that another resource has taken over.
func (o *Object) Delete(ctx context.Context, r provider.Existing[ObjectIn, ObjectOut]) error {
	conn, err := o.conn.get()
	if err != nil {
		return err
	}
	bucket, key, _ := strings.Cut(r.ID, "/")
	seen, err := conn.observeObject(ctx, bucket, key)
	if err != nil {
		return failed("object "+r.ID, err)
	}
	if !seen.exists || seen.mark.Lost(r.Identity, r.Output.Owner) {
		return nil
	}
	_, err = conn.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &bucket, Key: &key})
	if err != nil && !absent(err) {
		return failed("object "+r.ID, err)
	}
	return nil
}
