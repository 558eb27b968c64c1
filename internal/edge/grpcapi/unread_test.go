package grpcapi

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
)

// TestAnswersThatNobodyTakesCountUntilTheyGiveWay has a client ask for more than the memory there is, and take nothing.
func TestAnswersThatNobodyTakesCountUntilTheyGiveWay(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	service := memory.New()
	if err := service.CreateStack(t.Context(), own, nil); err != nil {
		t.Fatal(err)
	}
	server, _, err := newServer(t.Context(), Config{Service: service, Authority: OneToken("local", nil),
		Memory: mempool.New(8 << 20)})
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = server.Serve(Limited(listener)) }()
	t.Cleanup(server.Stop)
	connection, err := grpc.NewClient(listener.Addr().String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStaticStreamWindowSize(65535),
		grpc.WithStaticConnWindowSize(65535))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = connection.Close() })
	ctx := waittest.Context(t)
	plain := strings.Repeat("x", 600<<10)
	for range 30 {
		call, err := connection.NewStream(as(ctx, "local"), &grpc.StreamDesc{}, api.Stacks_Encrypt_FullMethodName)
		if err == nil {
			err = call.SendMsg(&api.EncryptRequest{Stack: wire.FromStack(own), Plain: []string{plain}})
		}
		if err == nil {
			err = call.CloseSend()
		}
		if err != nil {
			break // the connection was closed
		}
	}
	if connection.GetState() == connectivity.Ready && !connection.WaitForStateChange(ctx, connectivity.Ready) {
		t.Error("answers of 18 MiB stay where there are 8")
	}
}

func TestACallWhoseStreamItsClientHasEndedCountsNoLonger(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	for _, c := range []struct {
		ctx  context.Context
		ends bool
	}{{cancelled, true}, {late, false}, {t.Context(), false}} {
		var u unread
		u.sent(2)
		ended := 0
		u.end(c.ctx, nil, func() { ended++ })
		if (ended == 1) != c.ends {
			t.Errorf("%v: it has ended %d times", c.ctx.Err(), ended)
		}
		u.left(0)
		u.left(0)
		if ended != 1 {
			t.Errorf("%v: it has ended %d times after all has left", c.ctx.Err(), ended)
		}
	}
}

func TestAPartyAndATokenHaveSoManyCallsAtATime(t *testing.T) {
	calls := newCalls(100, 70, 40)
	enter := func(party, token string, times int) (leave func(), entered int) {
		for range times {
			one, err := calls.enter(party, token)
			if err == nil {
				entered, leave = entered+1, one
			}
		}
		return leave, entered
	}
	for _, c := range []struct {
		party, token  string
		times, enters int
	}{
		{"evil", "one", 50, 40}, {"evil", "two", 50, 30}, // all that the party may have
		{"other", "one", 35, 35}, // of a full process
		{"acme", "ann", 20, 20},
		{"other", "two", 70, leastOfOne - 35},
	} {
		leave, entered := enter(c.party, c.token, c.times)
		if entered != c.enters {
			t.Errorf("%s %s enters %d times, want %d", c.party, c.token, entered, c.enters)
		}
		if c.party == "acme" {
			leave()
			leave()
		}
	}
	if counted := calls.parties.Held(); counted != 40+30+35+20-1+leastOfOne-35 {
		t.Errorf("%d calls are counted", counted)
	}
}

// TestWaitingCallsAreFoundBySender has very many of one organization wait, and others enter beside them.
func TestWaitingCallsAreFoundBySender(t *testing.T) {
	places := newTurns(1)
	leave, err := places.enter(t.Context(), sender{"acme", "host", "first"}, waittest.Patience, func() {})
	if err != nil {
		t.Fatal(err)
	}
	entered := make(chan string, 100)
	for i := range 90 {
		of := sender{"evil", "host", fmt.Sprint(i % 3)}
		go func() {
			leave, err := places.enter(t.Context(), of, waittest.Patience, func() {})
			if err == nil {
				entered <- of[0]
				leave()
			}
		}()
	}
	waittest.Until(t, "all wait", func() bool {
		places.mu.Lock()
		defer places.mu.Unlock()
		return places.all.waiting == 90
	})
	places.mu.Lock()
	groups, queue := len(places.all.parts["evil"].parts["host"].parts), len(places.all.parts["evil"].queue)
	places.mu.Unlock()
	if groups != 3 || queue != 0 {
		t.Errorf("there are %d groups of tokens and %d in that of the organization", groups, queue)
	}
	leave()
	for range 90 {
		<-entered
	}
	waittest.Until(t, "nothing is left", func() bool {
		places.mu.Lock()
		defer places.mu.Unlock()
		return places.all.taken+places.all.waiting+len(places.all.parts)+len(places.taken) == 0
	})
}
