// Package servers has the servers of the embedded service: Temporal on SQLite, its Web UI, and an S3 server over a
// directory. It takes minutes to compile and starts slowly: only deployctl-embedded and tests import it.
package servers

import (
	"errors"
	"io/fs"
	"os"

	"github.com/deployctl/deployctl/internal/devserver/parts"
)

// All implements parts.Servers.
type All struct{}

var _ parts.Servers = All{}

// exists reports whether there is something at path; an error other than absence counts as there.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
