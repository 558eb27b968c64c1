package servers

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/deployctl/deployctl/internal/devserver/parts"
	"github.com/gofiber/fiber/v3"
	"github.com/versity/versitygw/backend"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
	"github.com/versity/versitygw/s3api"
)

// ServeS3 implements parts.Servers.
func (All) ServeS3(ctx context.Context, s parts.S3) error {
	store, err := openObjects(s)
	if err != nil {
		return err
	}
	found := make(chan *fiber.App, 1)
	served := make(chan error, 2)
	go func() {
		served <- embedgw.RunVersityGW(ctx, store, &embedgw.Config{
			RootUserAccess:    s.AccessKey,
			RootUserSecret:    s.SecretKey,
			IAMService:        newAccess(s),
			Region:            s.Region,
			Ports:             []string{s.Socket},
			SocketPerm:        "0600",
			S3Options:         []s3api.Option{revealing(found)},
			MaxConnections:    4096,
			MaxRequests:       1024,
			MultipartMaxParts: 10_000,
			KeepAlive:         true,
			Quiet:             true,
		})
	}()
	if err := reveal(ctx, s.Socket, served); err != nil {
		if ctx.Err() != nil { // it is to end while it starts
			return nil
		}
		return err
	}
	go func() { served <- (<-found).Server().Serve(s.Listener) }()
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

// The gateway listens at addresses alone. So it listens at a socket in a file, whose only request gives the server that
// serves the listener.
const revealPath = "/-/server"

func revealing(found chan<- *fiber.App) s3api.Option {
	return s3api.WithRoute(http.MethodGet, revealPath, func(c fiber.Ctx) error {
		select {
		case found <- c.App():
		default: // somebody asks once more
		}
		return c.SendStatus(http.StatusNoContent)
	})
}

// reveal makes that request, once the server listens, and removes the file.
func reveal(ctx context.Context, socket string, served <-chan error) error {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn,
		error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://s3"+revealPath, nil)
		if err != nil {
			return err
		}
		if answer, err := transport.RoundTrip(r); err == nil {
			return errors.Join(answer.Body.Close(), os.Remove(socket))
		}
		select {
		case err := <-served:
			return errors.Join(err, errors.New("the S3 server ended"))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Millisecond):
		}
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
	d := &durable{bucket: s.Own, names: names{sync: syncFile}}
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
	if err := whole(attributes, s); err != nil {
		return nil, err
	}
	var err error
	if d.Posix, err = posix.New(s.Objects, attributes, opts); err != nil {
		return nil, err
	}
	return d, d.dropUnnamed()
}

// bucketAttribute is metadata that each bucket has.
const bucketAttribute = "acl"

// whole reports that the bucket of the service has lost its metadata: many tools that copy files leave extended
// attributes out.
func whole(attributes meta.MetadataStorer, s parts.S3) error {
	if !exists(filepath.Join(s.Objects, s.Own)) {
		return nil
	}
	probe := filepath.Join(s.Objects, s.Own)
	if _, beside := attributes.(meta.XattrMeta); !beside {
		probe = s.Own
	}
	if _, err := attributes.RetrieveAttribute(nil, probe, "", bucketAttribute); errors.Is(err, meta.ErrNoSuchKey) {
		return fmt.Errorf("the objects in %s have no metadata: this is a copy by a tool that leaves out extended "+
			"attributes; copy the home again, with cp -a, rsync -aX, or tar --xattrs for packing and unpacking", s.Objects)
	}
	return nil
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
