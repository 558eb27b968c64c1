package statestore_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/providers/s3/s3test"
	"github.com/deployctl/deployctl/statestore/bucket"
)

func TestAnObjectThatIsLargerThanAnyOfItsKindIsNotRead(t *testing.T) {
	o, err := bucket.OpenS3(t.Context(), bucket.S3Options{Endpoint: s3test.Endpoint, Region: "us-east-1",
		Bucket: s3test.Bucket, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey, Prefix: "largest/"})
	must(t, err)
	for _, c := range []struct {
		key   string
		bytes int
		read  bool
	}{
		{"tokens/ci", 1 << 20, true},
		{"tokens/big", 1<<20 + 1, false},
		{"keys/ring.json", 2 << 20, false},
		{"stacks/o/p/s/head.json", 17 << 20, false},
		{"stacks/o/p/s/checkpoints/1.json.zst", 5 << 20, true},
		{"plugins/part", 16<<20 + 100, true},
	} {
		_, err := o.Put(t.Context(), c.key, bytes.Repeat([]byte{1}, c.bytes), bucket.Condition{})
		must(t, err)
		got, err := o.Get(t.Context(), c.key)
		refused := deployments.CodeOf(err) == deployments.CodeFormat && strings.Contains(err.Error(), "never writes")
		if (err == nil && len(got.Data) == c.bytes) != c.read || refused == c.read {
			t.Errorf("of %s, with %d bytes, %d are read: %v", c.key, c.bytes, len(got.Data), err)
		}
	}
}
