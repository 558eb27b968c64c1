// Command pulumi-language-scenario is the language host for scenarios. Its argument is the engine's address; it prints
// its port and serves until the engine goes away. With the arguments "analyze DIR" it is the policy pack in a
// directory.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"

	"github.com/deployctl/deployctl/internal/testkit/scenario"
)

func main() {
	log.SetFlags(0)
	log.SetOutput(os.Stderr) // a library discards it
	log.SetPrefix("pulumi-language-scenario: ")
	flag.String("tracing", "", "accepted and not used")
	flag.String("root", "", "accepted and not used")
	flag.Parse()
	register := func(s *grpc.Server) { rpc.RegisterLanguageRuntimeServer(s, scenario.NewHost(flag.Arg(0))) }
	engine := flag.Arg(0)
	if flag.Arg(0) == scenario.AnalyzeCommand {
		analyzer, err := scenario.NewAnalyzer(flag.Arg(1))
		if err != nil {
			log.Fatal(err)
		}
		register, engine = func(s *grpc.Server) { rpc.RegisterAnalyzerServer(s, analyzer) }, ""
	}
	if err := serve(engine, register); err != nil {
		log.Fatal(err)
	}
}

func serve(engine string, register func(*grpc.Server)) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if engine != "" {
		if err := rpcutil.Healthcheck(ctx, engine, 5*time.Minute, stop); err != nil {
			return err
		}
	}
	cancel := make(chan bool)
	context.AfterFunc(ctx, func() { close(cancel) })
	handle, err := rpcutil.ServeWithOptions(rpcutil.ServeOptions{
		Cancel: cancel,
		Init: func(s *grpc.Server) error {
			register(s)
			return nil
		},
	})
	if err != nil {
		return err
	}
	fmt.Println(handle.Port)
	return <-handle.Done
}
