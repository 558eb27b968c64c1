package devserver

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3response"
)

// durable is a store whose objects in the service's own bucket are on disk before they are acknowledged, because Temporal's
// database beside it is: after a power cut the two must not disagree. Other buckets hold what updates can make again. Paths
// are relative: the store's folder is the working directory.
type durable struct{ *posix.Posix }

// PutObject syncs the object before it takes its name, so that a cut never puts half of it in the place of the one before,
// and then the name.
func (d durable) PutObject(ctx context.Context, in s3response.PutObjectInput) (s3response.PutObjectOutput, error) {
	if *in.Bucket != Bucket || in.Key == nil {
		return d.Posix.PutObject(ctx, in)
	}
	out, err := d.PutObjectWithPostFunc(ctx, in, (*os.File).Sync)
	if err == nil {
		err = syncNames(*in.Bucket, *in.Key)
	}
	return out, err
}

// CompleteMultipartUpload syncs an object that came in parts. Those are large and never replace one another here.
func (d durable) CompleteMultipartUpload(ctx context.Context, in *s3.CompleteMultipartUploadInput) (
	s3response.CompleteMultipartUploadResult, string, error,
) {
	out, version, err := d.Posix.CompleteMultipartUpload(ctx, in)
	if err == nil && *in.Bucket == Bucket {
		err = errors.Join(syncFile(filepath.Join(*in.Bucket, *in.Key)), syncNames(*in.Bucket, *in.Key))
	}
	return out, version, err
}

// syncNames puts the folders on disk that lead from the bucket to an object, the nearest first.
func syncNames(bucket, key string) error {
	for dir := filepath.Dir(filepath.Join(bucket, key)); ; dir = filepath.Dir(dir) {
		if err := syncFile(dir); err != nil && !errors.Is(err, os.ErrNotExist) { // a delete may have emptied and removed it
			return err
		}
		if dir == bucket || dir == "." {
			return nil
		}
	}
}

func syncFile(path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(file.Sync(), file.Close())
}
