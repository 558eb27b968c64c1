package scenario

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"

	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// AnalyzeCommand is the first argument with which the host's executable is a policy pack; the second is its directory.
const AnalyzeCommand = "analyze"

// RunPlugin runs a policy pack: this executable, as a process of its own.
func (h *Host) RunPlugin(req *rpc.RunPluginRequest, stream grpc.ServerStreamingServer[rpc.RunPluginResponse]) error {
	if req.GetKind() != "analyzer" {
		return status.Errorf(codes.InvalidArgument, "a scenario is no plugin of the kind %q", req.GetKind())
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	pack := exec.CommandContext(stream.Context(), self, AnalyzeCommand, req.GetInfo().GetProgramDirectory())
	pack.Env, pack.Dir = req.GetEnv(), req.GetPwd()
	var sending sync.Mutex
	send := func(part *rpc.RunPluginResponse) {
		sending.Lock()
		defer sending.Unlock()
		_ = stream.Send(part)
	}
	stdout, err := pack.StdoutPipe()
	if err != nil {
		return err
	}
	stderr, err := pack.StderrPipe()
	if err != nil {
		return err
	}
	if err := pack.Start(); err != nil {
		return err
	}
	var reading sync.WaitGroup
	relay := func(from io.Reader, part func(line []byte) *rpc.RunPluginResponse) {
		for lines := bufio.NewScanner(from); lines.Scan(); {
			send(part(fmt.Appendln(nil, lines.Text())))
		}
	}
	reading.Go(func() {
		relay(stdout, func(line []byte) *rpc.RunPluginResponse {
			return &rpc.RunPluginResponse{Output: &rpc.RunPluginResponse_Stdout{Stdout: line}}
		})
	})
	reading.Go(func() {
		relay(stderr, func(line []byte) *rpc.RunPluginResponse {
			return &rpc.RunPluginResponse{Output: &rpc.RunPluginResponse_Stderr{Stderr: line}}
		})
	})
	reading.Wait()
	_ = pack.Wait()
	send(&rpc.RunPluginResponse{Output: &rpc.RunPluginResponse_Exitcode{
		Exitcode: int32(pack.ProcessState.ExitCode()), //nolint:gosec // an exit code
	}})
	return nil
}
