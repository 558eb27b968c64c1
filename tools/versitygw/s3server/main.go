// Command s3server is the S3 server of unit tests: s3server DIR HOST:PORT ACCESSKEY SECRETKEY BUCKET. It serves what is
// below DIR, with the bucket there from the beginning, until its standard input ends.
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

func main() {
	if len(os.Args) != 6 {
		fmt.Fprintln(os.Stderr, "usage: s3server DIR HOST:PORT ACCESSKEY SECRETKEY BUCKET")
		os.Exit(2)
	}
	go func() { // ends with its parent
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	fmt.Fprintln(os.Stderr, serve(os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]))
	os.Exit(1)
}

func serve(dir, address, accessKey, secretKey, bucket string) error {
	side, objects := dir+"/meta", dir+"/objects"
	for _, d := range []string{side, objects + "/" + bucket} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	sidecar, err := meta.NewSideCar(side)
	if err != nil {
		return err
	}
	store, err := posix.New(objects, sidecar, posix.PosixOpts{})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), store, &embedgw.Config{
		RootUserAccess: accessKey, RootUserSecret: secretKey, Region: "us-east-1", Ports: []string{address},
		MaxConnections: 1024, MaxRequests: 512, MultipartMaxParts: 10_000, Quiet: true, KeepAlive: true,
	})
}
