// Command fakecloud serves a fake cloud on the loopback interface. It prints its URL as its first line and then serves
// until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/deployctl/deployctl/e2e/fakecloud"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("fakecloud: ")
	listen := flag.String("listen", "127.0.0.1:0", "address to listen on")
	journal := flag.String("journal", "", "file that keeps objects and effects over a restart")
	untilEOF := flag.Bool("until-stdin-closes", false, "end when standard input does")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if *untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			stop()
		}()
	}
	// The token comes by the environment, never by the arguments: those can be read by every process.
	if err := serve(ctx, *listen, fakecloud.Options{Journal: *journal,
		Token: os.Getenv("FAKECLOUD_TOKEN")}); err != nil {
		log.Fatal(err)
	}
}

func serve(ctx context.Context, address string, options fakecloud.Options) error {
	cloud, err := fakecloud.New(options)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return errors.Join(err, cloud.Close())
	}
	server := &http.Server{Handler: cloud}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	fmt.Printf("http://%s\n", listener.Addr())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return errors.Join(err, cloud.Close())
	}
	return cloud.Close()
}
