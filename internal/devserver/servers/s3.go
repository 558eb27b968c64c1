package servers

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/deployctl/deployctl/internal/devserver/parts"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// ServeS3 implements parts.Servers.
func (All) ServeS3(ctx context.Context, s parts.S3) error {
	store, err := openObjects(s)
	if err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() {
		served <- embedgw.RunVersityGW(ctx, store, &embedgw.Config{
			RootUserAccess:    s.AccessKey,
			RootUserSecret:    s.SecretKey,
			IAMService:        newAccess(s),
			Region:            s.Region,
			Ports:             []string{s.Address},
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
// the file system has none; a directory keeps to what it began with.
func openObjects(s parts.S3) (backend.Backend, error) {
	opts := posix.PosixOpts{CopyObjectThreshold: 5 << 30} // as AWS; zero would refuse every copy
	opts.SetNewDirPerm(0o700)
	opts.SetNewFilePerm(0o600)
	inFolder := exists(s.Metadata)
	if !inFolder && !exists(s.Objects) {
		inFolder = !hasAttributes(filepath.Dir(s.Objects))
	}
	d := &durable{bucket: s.Own}
	var attributes meta.MetadataStorer = meta.XattrMeta{}
	if inFolder { // before the objects' own folder, whose existence decides
		if err := os.MkdirAll(s.Metadata, 0o700); err != nil {
			return nil, err
		}
		folder, err := meta.NewSideCar(s.Metadata)
		if err != nil {
			return nil, err
		}
		attributes, d.beside = folder, s.Metadata
	}
	if err := os.MkdirAll(s.Objects, 0o700); err != nil {
		return nil, err
	}
	var err error
	if d.Posix, err = posix.New(s.Objects, attributes, opts); err != nil {
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
