package pluginhost

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/plugin/intake"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/process"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// pluginRun describes a plugin that a language host runs from its source.
type pluginRun struct {
	name     string    // for messages
	language *endpoint // ends with the plugin
	request  *pulumirpc.RunPluginRequest
	box      *sandbox.Box
	intake   *intake.Intake
	output   func(diag.Severity, string) // Info for stdout, Infoerr for stderr
	shown    bool                        // users see the output as it is written
}

// runPlugin has a language host run a plugin, reads its port from its first line of output, and connects.
func runPlugin(ctx context.Context, run pluginRun) (*endpoint, error) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	e := &endpoint{name: run.name, died: make(chan struct{}), tail: &tail{shown: run.shown}, intake: run.intake}
	e.shutdown = func(grace time.Duration) {
		cancel()
		run.language.stop(grace)
		<-e.died
	}
	stream, err := pulumirpc.NewLanguageRuntimeClient(run.language.conn).RunPlugin(running, run.request)
	if err != nil {
		cancel()
		run.language.stop(0)
		return nil, fmt.Errorf("starting %s: %w", run.name, err)
	}
	first, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		defer close(e.died)
		ended <- e.relay(stream, run.output, first)
	}()
	if err := e.connectTo(ctx, first, ended, run.box); err != nil {
		e.stop(0)
		return nil, fmt.Errorf("starting %s: %w%s", run.name, err, e.tail.text())
	}
	go func() {
		<-e.died
		_ = e.conn.Close() // prevents a reconnect: another process may have the port by then
		run.language.stop(stopGrace)
	}()
	return e, nil
}

// connectTo waits for the line with the port, and then for the connection.
func (e *endpoint) connectTo(ctx context.Context, first <-chan string, ended <-chan error, box *sandbox.Box) error {
	select {
	case line := <-first:
		return e.connectPort(ctx, line, box)
	case err := <-ended:
		return fmt.Errorf("it ended before it said where it listens: %w", err)
	case <-ctx.Done():
		return fmt.Errorf("it did not say where it listens: %w", context.Cause(ctx))
	}
}

// relay passes the lines of a plugin on until it ends; the first line of stdout goes to first. It returns how the
// plugin ended.
func (e *endpoint) relay(
	stream pulumirpc.LanguageRuntime_RunPluginClient, output func(diag.Severity, string), first chan<- string,
) error {
	var reading sync.WaitGroup
	said := false
	sink := func(severity diag.Severity) io.WriteCloser {
		r, w := io.Pipe()
		reading.Go(func() {
			process.Lines(r, func(line string) {
				if severity == diag.Info && !said {
					said = true
					first <- line
					return
				}
				e.tail.add(line)
				output(severity, line)
			})
		})
		return w
	}
	stdout, stderr := sink(diag.Info), sink(diag.Infoerr)
	defer reading.Wait()
	defer func() { _ = errors.Join(stdout.Close(), stderr.Close()) }()
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return errors.New("it ended")
		}
		if err != nil {
			return err
		}
		switch part := part.GetOutput().(type) {
		case *pulumirpc.RunPluginResponse_Stdout:
			_, _ = stdout.Write(part.Stdout)
		case *pulumirpc.RunPluginResponse_Stderr:
			_, _ = stderr.Write(part.Stderr)
		case *pulumirpc.RunPluginResponse_Exitcode:
			return fmt.Errorf("exit code %d", part.Exitcode)
		}
	}
}
