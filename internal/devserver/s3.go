package devserver

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/deployctl/deployctl/internal/devserver/parts"
)

// Region is the region that the S3 server signs for.
const Region = "us-east-1"

// Bucket is the bucket of the service's own state; every start makes sure of it.
const Bucket = "deployctl"

// parentPipe, set in the environment of a child that serves S3, says that its standard input ends with its parent.
const parentPipe = "DEPLOYCTL_PARENT_PIPE"

// ServeS3 serves the objects of a home on its S3 port until ctx ends, or until its parent does when Start started it.
// It is what Options.S3Command runs, in a process of its own: it changes the working directory and the file creation
// mask of the process, which is to end when it returns.
func ServeS3(ctx context.Context, homePath string, servers parts.Servers) error {
	privateFiles()
	h, err := openHome(homePath)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	if os.Getenv(parentPipe) != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			end()
		}()
	}
	var r reserved
	defer r.release()
	data, err := ensureData(ctx, h, Ports{}, &r)
	if err != nil {
		return err
	}
	lock, err := acquire(ctx, h, lockS3, 10*time.Second)
	if err != nil {
		return fmt.Errorf("open the objects in %s: %w", h.objects(), err)
	}
	defer func() { _ = lock.Close() }()
	listener, err := openPort(data.ports.S3)
	if err != nil {
		return err
	}
	defer func() { _ = listener.Close() }()
	socket, err := filepath.Rel(h.objects(), h.objectSocket())
	if err != nil {
		return err
	}
	accessKey, secretKey := data.keys.OfPrograms()
	return servers.ServeS3(ctx, parts.S3{
		Listener: listener,
		S3Keys:   parts.S3Keys{AccessKey: data.keys.S3AccessKey, SecretKey: data.keys.S3SecretKey},
		Others:   parts.S3Keys{AccessKey: accessKey, SecretKey: secretKey},
		Region:   Region, Objects: h.objects(), Socket: socket, Metadata: h.objectMeta(), Own: Bucket,
	})
}
