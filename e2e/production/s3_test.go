package production

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

const (
	bucket = "deployctl-state"
	s3User = "deployctl"
)

// objectStore is an S3 server of its own, with users of its own.
type objectStore struct {
	*cluster.Part
	endpoint string

	admin  *harness.Tool
	secret string // FILE with the secret access key of the service's user
}

// newObjectStore starts one that has the service's bucket and user.
func newObjectStore(t *testing.T, dir string) *objectStore {
	t.Helper()
	const root, rootSecret = "root", "the-secret-of-the-root-user"
	program, address := cached(t, "versitygw", "github.com/versity/versitygw/cmd/versitygw"), porttest.Address(t)
	data, users := filepath.Join(dir, "s3"), filepath.Join(dir, "s3-users")
	harness.Must(t, os.Mkdir(data, 0o700))
	harness.Must(t, os.Mkdir(users, 0o700))
	s := &objectStore{endpoint: "http://" + address, secret: filepath.Join(dir, "s3-secret")}
	s.admin = &harness.Tool{Path: program, Dir: dir, Env: append(os.Environ(), "ADMIN_ACCESS_KEY_ID="+root,
		"ADMIN_SECRET_ACCESS_KEY="+rootSecret, "ADMIN_ENDPOINT_URL="+s.endpoint)}
	s.Part = cluster.NewPart("s3", dir, append(os.Environ(), "ROOT_ACCESS_KEY_ID="+root,
		"ROOT_SECRET_ACCESS_KEY="+rootSecret), program, "--port", address, "--iam-dir", users, "--quiet", "posix", data)
	harness.Must(t, s.Start())
	t.Cleanup(s.Stop)
	s.hand(t, "the-first-secret-access-key")
	waittest.Until(t, "the S3 server has the service's user", func() bool {
		return s.admin.Run(t, "admin", "create-user", "--access", s3User, "--secret", "the-first-secret-access-key",
			"--role", "userplus").Code == 0
	})
	s.admin.Must(t, "admin", "create-bucket", "--bucket", bucket, "--owner", s3User)
	return s
}

// rotate changes the secret on the server alone.
func (s *objectStore) rotate(t *testing.T, secret string) {
	t.Helper()
	s.admin.Must(t, "admin", "update-user", "--access", s3User, "--secret", secret)
}

// hand gives the service a secret.
func (s *objectStore) hand(t *testing.T, secret string) {
	t.Helper()
	harness.Must(t, os.WriteFile(s.secret, []byte(secret), 0o600))
}
