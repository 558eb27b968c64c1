package s3_test

import (
	"os"
	"testing"

	"github.com/deployctl/deployctl/providers/s3/s3test"
)

// TestMain keeps the AWS SDK from looking for credentials of this machine.
func TestMain(m *testing.M) {
	if err := os.Setenv("AWS_EC2_METADATA_DISABLED", "true"); err != nil {
		panic(err)
	}
	os.Exit(s3test.Run(m))
}
