//go:build unix

package attack

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"io"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
)

// floods ask more of serve than it has.
var floods = []attack{
	{"flood/unfinished-messages", unfinishedMessages},
	{"flood/many-tokens", manyTokens},
	{"flood/uploads", uploads},
	{"flood/pushes", pushes},
	{"flood/watchers", watchers},
	{"flood/connections", connections},
	{"flood/slow-filters", slowFilters},
	{"flood/huge-pages", hugePages},
	{"flood/slow-bodies", slowBodies},
	{"flood/written", written},
	{"flood/unread-answers", unreadAnswers},
	{"flood/endless-calls", endlessCalls},
}

const mib = 1 << 20

// unfinished is the body of a call that announces 16 MiB, sends 15 and then nothing, until ctx ends.
type unfinished struct {
	ctx   context.Context
	rest  []byte // of the announcement
	zeros int
	sent  *atomic.Int64
}

func (u *unfinished) Read(p []byte) (int, error) {
	switch n := copy(p, u.rest); {
	case n > 0:
		u.rest = u.rest[n:]
		return n, nil
	case u.zeros == 0:
		<-u.ctx.Done()
		return 0, io.ErrUnexpectedEOF
	}
	n := min(len(p), u.zeros)
	clear(p[:n])
	u.zeros -= n
	u.sent.Add(int64(n))
	return n, nil
}

// unfinishedMessages begins 100 calls on each of some connections, without a token and then with one. It finishes none.
func unfinishedMessages(t *testing.T, f *field) {
	a := f.apart()
	for _, caller := range []struct{ name, token string }{{"without a token", ""}, {"with a token", a.flooder}} {
		t.Run(caller.name, func(t *testing.T) {
			a.endure(t, func(ctx context.Context) {
				ctx, cancel := context.WithTimeout(ctx, time.Duration(size(3, 60))*time.Second)
				defer cancel()
				var calls sync.WaitGroup
				var sent atomic.Int64
				for range size(1, 20) {
					protocols := &http.Protocols{}
					protocols.SetUnencryptedHTTP2(true)
					client := &http.Client{Transport: &http.Transport{Protocols: protocols, MaxConnsPerHost: 1}}
					defer client.CloseIdleConnections()
					for range 100 {
						calls.Go(func() { a.beginMessage(ctx, t, client, caller.token, &sent) })
					}
				}
				calls.Wait()
				t.Logf("%d MiB were taken from the caller", sent.Load()/mib)
			})
		})
	}
}

// beginMessage makes a call whose message is unfinished.
func (a *apart) beginMessage(ctx context.Context, t *testing.T, client *http.Client, token string, sent *atomic.Int64) {
	body := &unfinished{ctx: ctx, rest: binary.BigEndian.AppendUint32([]byte{0}, 16*mib), zeros: 15 * mib, sent: sent}
	url := "http://" + a.address + api.Stacks_CreateStack_FullMethodName
	call, err := http.NewRequestWithContext(ctx, http.MethodPost, url, body)
	if err != nil {
		t.Error(err)
		return
	}
	call.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}}
	if token != "" {
		call.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := client.Do(call)
	if err != nil {
		return // the attack has ended, or serve has had enough of it
	}
	_, _ = io.Copy(io.Discard, answer.Body)
	_ = answer.Body.Close()
}

// uploads sends large files at a time.
func uploads(t *testing.T, f *field) {
	a := f.apart()
	files, length := size(4, 12), size(64, 200)
	a.endure(t, func(ctx context.Context) {
		chunk := make([]byte, mib)
		_, _ = rand.NewChaCha8([32]byte{9}).Read(chunk) // never fails
		var sending sync.WaitGroup
		for i := range files {
			sending.Go(func() {
				own := append([]byte{byte(i)}, chunk[1:]...)
				hash := sha256.New()
				for range length {
					hash.Write(own)
				}
				put, err := api.NewBundlesClient(a.connect(t)).PutFile(as(ctx, a.flooder))
				if err != nil {
					t.Error(err)
					return
				}
				m := &api.PutFileRequest{Stack: watched, Digest: "sha256:" + hex.EncodeToString(hash.Sum(nil)),
					Size: int64(length) * mib}
				for range length {
					m.Chunk = own
					if put.Send(m) != nil {
						break // the answer says why
					}
					m = &api.PutFileRequest{}
				}
				if _, err := put.CloseAndRecv(); err != nil && status.Code(err) != codes.Unavailable {
					t.Errorf("upload %d: %v", i, err)
				}
			})
		}
		sending.Wait()
	})
}

// watchers watch one update that does nothing: few, for what they cost at S3, and then very many.
func watchers(t *testing.T, f *field) {
	a := f.apart()
	gate, end := a.sleep(t, f)
	var ended sync.WaitGroup
	watch := func(ctx context.Context, many int) {
		var begun sync.WaitGroup
		begun.Add(many)
		var streams api.DeploymentsClient
		for i := range many {
			if i%50 == 0 { // serve takes 100 streams of one connection
				streams = api.NewDeploymentsClient(a.connect(t))
			}
			stream, err := streams.Watch(as(ctx, a.flooder), &api.WatchRequest{
				Update: &api.UpdateName{Stack: watched, Version: "1"}})
			harness.Must(t, err)
			ended.Go(func() {
				if _, err := stream.Recv(); err != nil {
					t.Errorf("watcher %d: %v", i, err)
				}
				begun.Done()
				for err == nil {
					_, err = stream.Recv()
				}
			})
		}
		begun.Wait()
	}
	const few = 60 // the service's own requests are counted, too
	window := time.Duration(size(6, 60)) * time.Second
	counted := func() (requests int64, rate float64) {
		before, begun := a.requests.Load(), time.Now()
		<-time.After(window)
		requests = a.requests.Load() - before
		return requests, float64(requests) / time.Since(begun).Seconds()
	}
	counted() // by its end the log of the update is looked at as seldom as it ever is
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	watch(ctx, few)
	asked, rate := counted()
	each := rate / few
	t.Logf("%d watchers of a sleeping update cost %d requests to S3 in %v, %.3f a second each", few, asked, window,
		each)
	if each > 0.1 {
		t.Errorf("a watcher costs %.2f requests to S3 a second", each)
	}
	a.endure(t, func(context.Context) { watch(ctx, size(200, 2_000)) })
	cancel()
	ended.Wait()
	harness.Must(t, gate.Open(t.Context()))
	end(t)
}

// sleep starts an update of watched that waits for a gate, and returns when it does.
func (a *apart) sleep(t *testing.T, f *field) (gate fakecloud.Gate, end func(*testing.T)) {
	t.Helper()
	gate, err := f.cloud.SetGate(t.Context(), fakecloud.Fault{Name: "sleep", Op: fakecloud.Create, Object: "sleeper",
		Times: 1})
	harness.Must(t, err)
	harness.Files{"scenario.yaml": `
packages: [{name: fake, version: 0.1.0}]
steps:
  - {register: sleeper, type: fake:index:Named, properties: {name: sleeper}}
`}.Write(t, a.tool.Dir)
	a.tool.Must(t, "config", "set", "fake:endpoint", f.cloud.URL())
	up := exec.Command(a.tool.Path, "up", "--yes", "--skip-preview")
	up.Dir, up.Env = a.tool.Dir, a.tool.Env
	var said strings.Builder
	up.Stdout, up.Stderr = &said, &said
	harness.Must(t, up.Start())
	harness.Must(t, gate.Wait(patient(t)))
	return gate, func(t *testing.T) {
		t.Helper()
		if err := up.Wait(); err != nil {
			t.Errorf("the update that was watched ends with %v: %s", err, said.String())
		}
		a.tool.Must(t, "destroy", "--yes", "--skip-preview")
	}
}
