package s3

import (
	"context"
	"fmt"
	"maps"
	"regexp"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/deployctl/deployctl/provider"
)

// Bucket is deployctl:s3:Bucket.
type Bucket struct{ conn *connection }

// BucketIn declares a bucket.
type BucketIn struct {
	Name         string            `pulumi:"name,autoname,replace" doc:"The bucket's name; without it, the resource's name and a random suffix."`
	PublicRead   bool              `pulumi:"publicRead,optional" doc:"Whether anyone may read its objects; by default nobody may."`
	ForceDestroy bool              `pulumi:"forceDestroy,optional" doc:"Whether deleting the bucket also deletes the objects in it; by default a bucket that is not empty cannot be deleted."`
	Tags         map[string]string `pulumi:"tags,optional" doc:"Tags of the bucket."`
}

// BucketOut describes a bucket that exists.
type BucketOut struct {
	BucketIn
	URL   string `pulumi:"url,stable" doc:"The base URL of its objects."`
	ARN   string `pulumi:"arn,stable" doc:"Its Amazon Resource Name."`
	Owner string `pulumi:"owner" doc:"The owner tag that marks it as this resource's."`
}

// owner is the mark that is remembered, empty when nothing is.
func (o *BucketOut) owner() string {
	if o == nil {
		return ""
	}
	return o.Owner
}

// Describe is the type's text in the schema.
func (b *Bucket) Describe() string {
	return "A bucket on an S3 endpoint. Its ID, for imports, is its name."
}

// Naming are the rules of S3 without dots, which break TLS on AWS.
func (b *Bucket) Naming() provider.Naming {
	return provider.Naming{MaxLen: 63, Alphabet: "abcdefghijklmnopqrstuvwxyz0123456789-"}
}

var bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)

// Check knows the rules for names and that the tags of the stamp are taken.
func (b *Bucket) Check(_ context.Context, in provider.Inputs[BucketIn]) []provider.Failure {
	var failures []provider.Failure
	if name := in.Value.Name; name != "" && !bucketName.MatchString(name) {
		failures = append(failures, provider.Failure{Property: "name", Reason: fmt.Sprintf(
			"%q is not a bucket name: 3 to 63 lower-case letters, digits, dots and hyphens, a letter or digit at "+
				"both ends", name)})
	}
	for _, tag := range []string{ownerTag, stackTag} {
		if _, taken := in.Value.Tags[tag]; taken {
			failures = append(failures, provider.Failure{Property: "tags",
				Reason: fmt.Sprintf("may not hold %q, which marks ownership", tag)})
		}
	}
	return failures
}

func (o *opened) bucketOut(in BucketIn, owner string) BucketOut {
	return BucketOut{BucketIn: in, URL: o.bucketURL(in.Name), ARN: "arn:aws:s3:::" + in.Name, Owner: owner}
}

// Preview knows everything once the name is known.
func (b *Bucket) Preview(_ context.Context, r provider.Request[BucketIn, BucketOut]) (BucketOut, error) {
	conn, err := b.conn.get()
	if err != nil || !r.Known("name") {
		return BucketOut{}, err
	}
	return conn.bucketOut(r.News, r.Owner()), nil
}

// Reconcile creates the bucket with its stamp in one request, then brings tags and policy to what is declared. It reads
// back what it has written: servers ignore what they do not know, such as tags in a create.
func (b *Bucket) Reconcile(ctx context.Context, r provider.Request[BucketIn, BucketOut]) (string, BucketOut, error) {
	conn, err := b.conn.get()
	if err != nil {
		return "", BucketOut{}, err
	}
	name := r.News.Name
	want := stamped(r.News.Tags, r.Identity)
	have, made, err := conn.ensureBucket(ctx, r, want)
	if err != nil {
		return "", BucketOut{}, failed("bucket "+name, err)
	}
	if err := conn.tagsOf(name, want).SyncFrom(ctx, have); err != nil {
		err, gone := conn.withoutTags(ctx, name, made, failed("tags of bucket "+name, err))
		if gone {
			return "", BucketOut{}, err
		}
		return name, conn.bucketOut(r.News, r.Owner()), err
	}
	if err := conn.readableByAnyone(name, r.News.PublicRead).Sync(ctx); err != nil {
		return name, conn.bucketOut(r.News, r.Owner()), failed("policy of bucket "+name, err)
	}
	return name, conn.bucketOut(r.News, r.Owner()), nil
}

// ensureBucket returns the tags of the bucket, which exists afterwards and is ours, and whether this call has made it.
func (o *opened) ensureBucket(
	ctx context.Context, r provider.Request[BucketIn, BucketOut], want map[string]string,
) (have map[string]string, made bool, err error) {
	name := r.News.Name
	have, exists, err := o.observeBucket(ctx, name)
	if err == nil && !exists {
		err = o.createBucket(ctx, name, want)
		if err == nil {
			have, _ = o.tags(ctx, name) // those that cannot be read are set once more
			return have, true, nil
		}
		if !is(err, "BucketAlreadyExists", "BucketAlreadyOwnedByYou") {
			return nil, false, err
		}
		have, exists, err = o.observeBucket(ctx, name)
	}
	mark, known := stampIn(have), r.ID == name
	switch {
	case forbidden(err) && !known, err == nil && exists && mark.Refuses(r.Identity, known, r.Output.owner()):
		return nil, false, mark.Foreign("bucket "+name, name)
	case err == nil && !exists:
		return nil, false, &provider.Unknown{Err: fmt.Errorf("bucket %s comes and goes", name)}
	}
	return have, false, err
}

func (o *opened) observeBucket(ctx context.Context, name string) (tags map[string]string, exists bool, err error) {
	if _, err := o.client.HeadBucket(ctx, &s3.HeadBucketInput{Bucket: &name}); err != nil {
		if absent(err) {
			return nil, false, nil
		}
		return nil, false, err
	}
	switch tags, err = o.tags(ctx, name); {
	case absent(err):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return tags, true, nil
}

// createBucket creates a bucket with its tags, or without, if the server refuses a create for them.
func (o *opened) createBucket(ctx context.Context, name string, tags map[string]string) error {
	in := &s3.CreateBucketInput{Bucket: &name,
		CreateBucketConfiguration: &types.CreateBucketConfiguration{Tags: tagSet(tags)}}
	if o.region != "us-east-1" {
		in.CreateBucketConfiguration.LocationConstraint = types.BucketLocationConstraint(o.region)
	}
	_, err := o.client.CreateBucket(ctx, in)
	if !is(err, "InvalidArgument", "InvalidRequest", "MalformedXML") && !unsupported(err) {
		return err
	}
	// Ceph's gateway takes no configuration without a place, for which us-east-1 has no name.
	if in.CreateBucketConfiguration.Tags = nil; in.CreateBucketConfiguration.LocationConstraint == "" {
		in.CreateBucketConfiguration = nil
	}
	_, err = o.client.CreateBucket(ctx, in)
	return err
}

// Read answers by the id, or by the name in the inputs when the id was never heard. A bucket that may not be looked at
// is somebody else's then; by an id it is an error, and the state keeps what it knew.
func (b *Bucket) Read(
	ctx context.Context, r provider.Lookup[BucketIn, BucketOut],
) (provider.Found[BucketIn, BucketOut], error) {
	var none provider.Found[BucketIn, BucketOut]
	conn, err := b.conn.get()
	if err != nil {
		return none, err
	}
	in, remembered := BucketIn{}, r.Output.owner()
	if r.Inputs != nil {
		in = *r.Inputs
	}
	if r.ID != "" {
		in.Name = r.ID
	}
	tags, exists, err := conn.observeBucket(ctx, in.Name)
	switch {
	case forbidden(err) && r.ID == "":
		return provider.Found[BucketIn, BucketOut]{Ownership: provider.Unowned, ID: in.Name, Inputs: in}, nil
	case err != nil:
		return none, failed("bucket "+in.Name, err)
	case !exists:
		return provider.Found[BucketIn, BucketOut]{Ownership: provider.Absent}, nil
	}
	if in.PublicRead, err = conn.publicRead(ctx, in.Name); err != nil {
		return none, failed("policy of bucket "+in.Name, err)
	}
	mark := stampIn(tags)
	in.Tags = maps.Clone(tags)
	maps.DeleteFunc(in.Tags, func(tag, _ string) bool { return tag == ownerTag || tag == stackTag })
	if len(in.Tags) == 0 {
		in.Tags = nil
	}
	owned := mark.Ownership(r.Identity, remembered)
	if r.ID == "" {
		owned = mark.LookedUp(r.Identity)
	}
	return provider.Found[BucketIn, BucketOut]{
		Ownership: owned, Owner: mark.People(), ID: in.Name, Inputs: in,
		Output: conn.bucketOut(in, mark.Kept(r.Identity, remembered)),
	}, nil
}

// List asks for the tags of every bucket. Those that may not be looked at are counted.
func (b *Bucket) List(ctx context.Context, stack provider.Identity, found func(id string) error) error {
	conn, err := b.conn.get()
	if err != nil {
		return err
	}
	closed, all := 0, 0
	for pages := s3.NewListBucketsPaginator(conn.client, &s3.ListBucketsInput{}); pages.HasMorePages(); {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return failed("the list of buckets", err)
		}
		for _, bucket := range page.Buckets {
			all++
			name := aws.ToString(bucket.Name)
			tags, err := conn.tags(ctx, name)
			switch {
			case forbidden(err):
				closed++
			case absent(err): // deleted meanwhile
			case err != nil:
				return failed("tags of bucket "+name, err)
			case stampIn(tags).Of(stack):
				if err := found(name); err != nil {
					return err
				}
			}
		}
	}
	if closed > 0 {
		return fmt.Errorf("the tags of %d of %d buckets may not be read, so it is not known whose these are; allow the "+
			"credentials s3:GetBucketTagging", closed, all)
	}
	return nil
}

// Delete leaves a bucket alone that another resource has taken over.
func (b *Bucket) Delete(ctx context.Context, r provider.Existing[BucketIn, BucketOut]) error {
	conn, err := b.conn.get()
	if err != nil {
		return err
	}
	tags, exists, err := conn.observeBucket(ctx, r.ID)
	switch {
	case err != nil:
		return failed("bucket "+r.ID, err)
	case !exists || stampIn(tags).Lost(r.Identity, r.Output.Owner):
		return nil
	}
	if r.Output.ForceDestroy {
		if err := conn.empty(ctx, r.ID); err != nil {
			return failed("emptying bucket "+r.ID, err)
		}
	}
	_, err = conn.client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: &r.ID})
	switch {
	case err == nil, absent(err):
		return nil
	case is(err, "BucketNotEmpty"):
		return fmt.Errorf("bucket %s is not empty; remove its objects, or set forceDestroy: true and update first",
			r.ID)
	}
	return failed("bucket "+r.ID, err)
}

// empty removes all objects and all their versions.
func (o *opened) empty(ctx context.Context, bucket string) error {
	for {
		page, err := o.client.ListObjectVersions(ctx, &s3.ListObjectVersionsInput{Bucket: &bucket})
		if absent(err) {
			return nil
		}
		if err != nil {
			return err
		}
		ids := versionsOf(page)
		if len(ids) == 0 {
			return nil
		}
		gone, err := o.client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: &bucket,
			Delete: &types.Delete{Objects: ids}})
		if err != nil {
			return err
		}
		if len(gone.Errors) > 0 {
			first := gone.Errors[0]
			return fmt.Errorf("object %s: %s", aws.ToString(first.Key), aws.ToString(first.Message))
		}
	}
}

func versionsOf(page *s3.ListObjectVersionsOutput) []types.ObjectIdentifier {
	var ids []types.ObjectIdentifier
	for _, v := range page.Versions {
		ids = append(ids, types.ObjectIdentifier{Key: v.Key, VersionId: v.VersionId})
	}
	for _, m := range page.DeleteMarkers {
		ids = append(ids, types.ObjectIdentifier{Key: m.Key, VersionId: m.VersionId})
	}
	return ids
}
