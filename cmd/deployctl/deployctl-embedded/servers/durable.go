package servers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3response"
)

// durable is a store in which a kill leaves nothing half made, and a power cut nothing in the service's own bucket.
// Paths are relative: the store's folder is the working directory.
type durable struct {
	*posix.Posix
	bucket string // whose objects survive a power cut
	beside string // the folder of the metadata, empty where that is in attributes
	making sync.Mutex
	names  names // of the bucket
}

// unnamed is the folder of the bucket that is being made, which no request can name.
const unnamed = ".bucket"

// CreateBucket makes the bucket where nobody sees it and then gives it its name, so that it never stands there without
// its owner or its tags.
func (d *durable) CreateBucket(ctx context.Context, in *s3.CreateBucketInput, acl []byte) error {
	d.making.Lock()
	defer d.making.Unlock()
	name := *in.Bucket
	if exists(name) {
		return d.Posix.CreateBucket(ctx, in, acl) // knows whose it is
	}
	if err := d.dropUnnamed(); err != nil {
		return err
	}
	made := *in
	made.Bucket = aws.String(unnamed)
	if err := d.Posix.CreateBucket(ctx, &made, acl); err != nil {
		return err
	}
	if d.beside != "" { // what a kill leaves of it below is of no bucket, and is replaced
		err := os.RemoveAll(filepath.Join(d.beside, name))
		err = errors.Join(err, os.Rename(filepath.Join(d.beside, unnamed), filepath.Join(d.beside, name)))
		if err != nil {
			return err
		}
	}
	return os.Rename(unnamed, name)
}

// ListBuckets leaves out the service's own bucket, in which others may do nothing. Who lists buckets looks into each:
// `stack orphans` does.
func (d *durable) ListBuckets(
	ctx context.Context, in s3response.ListBucketsInput,
) (s3response.ListAllMyBucketsResult, error) {
	out, err := d.Posix.ListBuckets(ctx, in)
	out.Buckets.Bucket = slices.DeleteFunc(out.Buckets.Bucket, func(b s3response.ListAllMyBucketsEntry) bool {
		return b.Name == d.bucket
	})
	return out, err
}

// dropUnnamed removes the bucket that a kill has left without its name.
func (d *durable) dropUnnamed() error {
	err := os.RemoveAll(unnamed)
	if d.beside != "" {
		err = errors.Join(err, os.RemoveAll(filepath.Join(d.beside, unnamed)))
	}
	return err
}

// PutObject has an object of the service's own bucket on disk before it is acknowledged, because Temporal's database
// beside it is: after a power cut the two must not disagree. Other buckets hold what updates can make again. It syncs
// the object before it takes its name, so that a cut never puts half of it in the place of the one before, and then the
// name.
func (d *durable) PutObject(
	ctx context.Context, in s3response.PutObjectInput,
) (out s3response.PutObjectOutput, err error) {
	if *in.Bucket != d.bucket || in.Key == nil {
		return d.Posix.PutObject(ctx, in)
	}
	err = d.names.put(*in.Bucket, *in.Key, func() (err error) {
		out, err = d.PutObjectWithPostFunc(ctx, in, (*os.File).Sync)
		return err
	})
	return out, err
}

// DeleteObject removes an object, and its folders if it was the last one in them.
func (d *durable) DeleteObject(ctx context.Context, in *s3.DeleteObjectInput) (out *s3.DeleteObjectOutput, err error) {
	if aws.ToString(in.Bucket) != d.bucket {
		return d.Posix.DeleteObject(ctx, in)
	}
	err = d.names.remove(d.bucket, []string{aws.ToString(in.Key)}, func() (err error) {
		out, err = d.Posix.DeleteObject(ctx, in)
		return err
	})
	return out, err
}

// DeleteObjects is DeleteObject of several.
func (d *durable) DeleteObjects(
	ctx context.Context, in *s3.DeleteObjectsInput,
) (out s3response.DeleteResult, err error) {
	if aws.ToString(in.Bucket) != d.bucket {
		return d.Posix.DeleteObjects(ctx, in)
	}
	var keys []string
	if in.Delete != nil {
		for _, o := range in.Delete.Objects {
			keys = append(keys, aws.ToString(o.Key))
		}
	}
	err = d.names.remove(d.bucket, keys, func() (err error) {
		out, err = d.Posix.DeleteObjects(ctx, in)
		return err
	})
	return out, err
}

// CompleteMultipartUpload syncs an object that came in parts. Those are large and never replace one another here.
func (d *durable) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput) (
	out s3response.CompleteMultipartUploadResult, version string, err error,
) {
	if *in.Bucket != d.bucket {
		return d.Posix.CompleteMultipartUpload(ctx, in)
	}
	err = d.names.put(*in.Bucket, *in.Key, func() (err error) {
		if out, version, err = d.Posix.CompleteMultipartUpload(ctx, in); err != nil {
			return err
		}
		return syncFile(filepath.Join(*in.Bucket, *in.Key))
	})
	return out, version, err
}
