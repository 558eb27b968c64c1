//go:build unix

package attack

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/e2e/harness"
)

// narrow makes a connection of its own to the API, on which each stream takes no more than HTTP/2's smallest default.
func (a *apart) narrow(t *testing.T) *grpc.ClientConn {
	t.Helper()
	const window = 65_535
	conn, err := grpc.NewClient(a.address, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithStaticStreamWindowSize(window), grpc.WithStaticConnWindowSize(window))
	harness.Must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// unreadAnswers has serve encrypt 4 MB in each of many calls, and reads no answer.
func unreadAnswers(t *testing.T, f *field) {
	a := f.apart()
	plain := &api.EncryptRequest{Stack: watched, Plain: []string{strings.Repeat("x", 4_000_000)}}
	a.endure(t, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(size(5, 60))*time.Second)
		defer cancel()
		asked := 0
		for range size(1, 4) {
			conn := a.narrow(t)
			for range 95 { // serve takes 100 streams of one connection
				stream, err := conn.NewStream(as(ctx, a.flooder), &grpc.StreamDesc{}, api.Stacks_Encrypt_FullMethodName)
				if err != nil || stream.SendMsg(plain) != nil {
					break // serve takes no more of them, or the attack ends
				}
				_ = stream.CloseSend()
				asked++
			}
		}
		<-ctx.Done()
		t.Logf("%d calls were made whose answers were not read", asked)
	})
}

// endlessCalls begins calls that never send their message, with many tokens of another organization, and streams of the
// health service, which needs no token.
func endlessCalls(t *testing.T, f *field) {
	a := f.apart()
	admin := &harness.Tool{Path: a.tool.Path, Dir: a.tool.Dir, Env: a.Env}
	var tokens []string
	for i := range 8 {
		tokens = append(tokens, strings.TrimSpace(admin.Must(t, "token", "create", fmt.Sprint("endless-", i), "--role",
			"viewer", "--organization", "rival")))
	}
	for _, kind := range []struct {
		name  string
		begin func(ctx context.Context, conn *grpc.ClientConn, token string) (grpc.ClientStream, error)
	}{
		{"calls with a token", func(ctx context.Context, conn *grpc.ClientConn, token string) (grpc.ClientStream, error) {
			return conn.NewStream(as(ctx, token), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
				api.Deployments_Watch_FullMethodName)
		}},
		{"health without a token", func(ctx context.Context, conn *grpc.ClientConn, _ string) (grpc.ClientStream, error) {
			return grpc_health_v1.NewHealthClient(conn).Watch(ctx, &grpc_health_v1.HealthCheckRequest{})
		}},
	} {
		t.Run(kind.name, func(t *testing.T) {
			a.endure(t, func(ctx context.Context) {
				ctx, cancel := context.WithTimeout(ctx, time.Duration(size(5, 60))*time.Second)
				defer cancel()
				var begun, ended atomic.Int64
				var streams sync.WaitGroup
				for c := range size(40, 400) {
					conn := a.narrow(t)
					streams.Go(func() {
						for range 90 {
							stream, err := kind.begin(ctx, conn, tokens[c%len(tokens)])
							if err != nil {
								return // serve takes no more, or the attack ends
							}
							begun.Add(1)
							streams.Go(func() {
								var err error
								for err == nil {
									err = stream.RecvMsg(&grpc_health_v1.HealthCheckResponse{})
								}
								if ctx.Err() == nil {
									ended.Add(1)
								}
							})
						}
					})
				}
				streams.Wait()
				t.Logf("%d calls were begun, and serve ended %d of them", begun.Load(), ended.Load())
			})
		})
	}
	a.endure(t, func(context.Context) {}) // nothing of the flood holds anybody up later
}
