package s3_test

import (
	"os"
	"testing"

	"github.com/deployctl/deployctl/providers/s3/s3test"
)

func TestMain(m *testing.M) { os.Exit(s3test.Run(m)) }
