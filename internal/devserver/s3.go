package devserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
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
func ServeS3(ctx context.Context, homePath string) error {
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
	store, err := openObjects(h)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() {
		served <- embedgw.RunVersityGW(ctx, store, &embedgw.Config{
			RootUserAccess:    data.keys.S3AccessKey,
			RootUserSecret:    data.keys.S3SecretKey,
			Region:            Region,
			Ports:             []string{address(data.ports.S3)},
			MaxConnections:    4096,
			MaxRequests:       1024,
			MultipartMaxParts: 10_000,
			KeepAlive:         true,
			Quiet:             true,
		})
	}()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	}
	select { // open connections may outlast a cancelled server
	case err := <-served:
		return err
	case <-time.After(3 * time.Second):
		return nil
	}
}

// openObjects opens the folder of the objects. Their metadata is in extended attributes, or in a folder beside where
// the file system has none; a home keeps to what it began with.
func openObjects(h home) (backend.Backend, error) {
	opts := posix.PosixOpts{CopyObjectThreshold: 5 << 30} // as AWS; zero would refuse every copy
	opts.SetNewDirPerm(0o700)
	opts.SetNewFilePerm(0o600)
	inFolder := exists(h.objectMeta())
	if !inFolder && !exists(h.objects()) {
		inFolder = !hasAttributes(h.data())
	}
	d := &durable{}
	var attributes meta.MetadataStorer = meta.XattrMeta{}
	if inFolder { // before the objects' own folder, whose existence decides
		if err := os.MkdirAll(h.objectMeta(), 0o700); err != nil {
			return nil, err
		}
		folder, err := meta.NewSideCar(h.objectMeta())
		if err != nil {
			return nil, err
		}
		attributes, d.beside = folder, h.objectMeta()
	}
	if err := os.MkdirAll(h.objects(), 0o700); err != nil {
		return nil, err
	}
	var err error
	if d.Posix, err = posix.New(h.objects(), attributes, opts); err != nil {
		return nil, err
	}
	return d, d.dropUnnamed()
}

// hasAttributes tries whether files in dir can have extended attributes.
func hasAttributes(dir string) bool {
	probe, err := os.CreateTemp(dir, "probe-*")
	if err != nil {
		return false
	}
	defer func() { _ = errors.Join(probe.Close(), os.Remove(probe.Name())) }()
	return meta.XattrMeta{}.StoreAttribute(probe, "", "", "probe", []byte("1")) == nil
}
