package grpcapi

import (
	"bytes"
	"context"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"

	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

// unreadOf is a connection of a party that a backlog counts.
func unreadOf(t *testing.T, b *backlog, party string) *connection {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	c := newConnection(theirs, newPlaces(1), newPlaces(1), b)
	b.begin(c, party)
	return c
}

func TestThePartyThatHasSentTheMostUnreadGivesWay(t *testing.T) {
	t.Parallel()
	const most = 1000
	b := newBacklog(most)
	acme := unreadOf(t, b, "acme")
	var evil []*connection
	for range 20 {
		evil = append(evil, unreadOf(t, b, "evil"))
	}
	b.change(acme, 1, 0)
	if gone := b.change(acme, 0, 300); gone != nil {
		t.Fatal("a connection gives way, and there is room")
	}
	var gone *connection
	for i := range evil {
		b.change(evil[i], 1, 0)
		if gone = b.change(evil[i], 0, int64(40+i)); gone != nil {
			break
		}
	}
	if gone == nil || gone == acme || b.all > most {
		t.Errorf("another one's connection gives way, and %d bytes are unread", b.all)
	}
	if b.change(gone, 0, most) != nil || b.all > most {
		t.Error("a connection that has given way is still counted")
	}
}

func TestWhatIsReadOrOverIsUnreadNoLonger(t *testing.T) {
	t.Parallel()
	b := newBacklog(100 * unreadOfCall)
	var all []*connection
	for range 5 {
		all = append(all, unreadOf(t, b, "acme"))
	}
	random := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		c := all[random.IntN(len(all))]
		a := b.of[c]
		calls := int64(random.IntN(3) - 1)
		if a.calls+calls < 0 {
			calls = 0
		}
		b.change(c, calls, random.Int64N(4*windowSize)-2*windowSize)
		if calls < 0 && a.unread > a.calls*unreadOfCall {
			t.Fatalf("after the end of a call, %d bytes of %d others are unread", a.unread, a.calls)
		}
		sum := int64(0)
		for _, a := range b.of {
			if sum += a.unread; a.unread < 0 {
				t.Fatalf("%d bytes are unread", a.unread)
			}
		}
		if sum != b.all {
			t.Fatalf("%d bytes are unread, and %d are counted", sum, b.all)
		}
	}
	for _, c := range all {
		b.leave(c)
	}
	if b.all != 0 {
		t.Errorf("%d bytes are unread on no connection", b.all)
	}
}

// TestTheBodyOfARequestIsReadByItsHandler counts at both ends of a request.
func TestTheBodyOfARequestIsReadByItsHandler(t *testing.T) {
	t.Parallel()
	b := newBacklog(mostUnread)
	c := unreadOf(t, b, "acme")
	ctx := context.WithValue(t.Context(), connectionKey{}, c)
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(make([]byte, 1000)))
	Reading(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		c.received(0, 1000)
		if _, err := io.CopyN(io.Discard, r.Body, 400); err != nil || b.all != 600 {
			t.Errorf("%d of 1,000 bytes are unread after 400 were read: %v", b.all, err)
		}
	})).ServeHTTP(httptest.NewRecorder(), r)
	if b.all != 0 {
		t.Errorf("%d bytes are unread after the request", b.all)
	}
}

// TestFieldsOfOtherBuildsAreNotKept has a message bring a field that this build does not know, at both depths.
func TestFieldsOfOtherBuildsAreNotKept(t *testing.T) {
	t.Parallel()
	unknown := protowire.AppendBytes(protowire.AppendTag(nil, 9999, protowire.BytesType), make([]byte, 1<<20))
	name := &api.StackName{Organization: "acme"}
	name.ProtoReflect().SetUnknown(protoreflect.RawFields(unknown))
	sent := &api.GetStackRequest{Stack: name}
	sent.ProtoReflect().SetUnknown(protoreflect.RawFields(unknown))
	data, err := proto.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	var got api.GetStackRequest
	if err := newCodec().Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, &got); err != nil {
		t.Fatal(err)
	}
	if size := proto.Size(&got); size > 100 || got.GetStack().GetOrganization() != "acme" {
		t.Errorf("the message has %d bytes: %v", size, &got)
	}
}

// slowAuthority answers once it may.
type slowAuthority struct {
	Authority
	answers chan struct{}
}

func (a slowAuthority) Authenticate(context.Context, string) (deployments.Caller, error) {
	<-a.answers
	return deployments.Caller{Token: "known"}, nil
}

// TestCallsOfOneHostWhoseTokensAreLookedUpHaveABound has very many of a host, and one of another.
func TestCallsOfOneHostWhoseTokensAreLookedUpHaveABound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		authority := slowAuthority{answers: make(chan struct{})}
		gate := NewGate(authority, nil, nil)
		ended := make(chan error, 2*mostOfConnections)
		for range cap(ended) {
			go func() {
				_, err := gate.Caller(t.Context(), "token", "10.0.0.1:1")
				ended <- err
			}()
		}
		synctest.Wait()
		if len(ended) != mostOfConnections {
			t.Errorf("%d calls of %d are refused at once", len(ended), cap(ended))
		}
		for range len(ended) {
			if err := <-ended; deployments.CodeOf(err) != deployments.CodeUnavailable {
				t.Errorf("one is answered %v", err)
			}
		}
		other := make(chan error)
		go func() {
			_, err := gate.Caller(t.Context(), "token", "10.0.0.2:1")
			other <- err
		}()
		synctest.Wait()
		close(authority.answers)
		if err := <-other; err != nil {
			t.Errorf("a call of another host is answered %v", err)
		}
		for range mostOfConnections {
			if err := <-ended; err != nil {
				t.Errorf("one that was let in is answered %v", err)
			}
		}
	})
}

// wrongTokens knows no token.
type wrongTokens struct{ Authority }

func (wrongTokens) Authenticate(context.Context, string) (deployments.Caller, error) {
	return deployments.Caller{}, deployments.Errorf(deployments.CodeUnauthorized, "no such token")
}

// TestWrongTokensThatAreSlowedTakeNoPlaceOfOthersOfTheirHost has more wait than are answered at once.
func TestWrongTokensThatAreSlowedTakeNoPlaceOfOthersOfTheirHost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate, ended := NewGate(wrongTokens{}, nil, nil), make(chan error, 2*wrongBurst)
		for range cap(ended) {
			go func() {
				_, err := gate.Caller(t.Context(), "wrong", "10.0.0.1:1")
				ended <- err
			}()
		}
		synctest.Wait()
		if len(ended) == cap(ended) || gate.edge.entering.parties.Held() != 0 {
			t.Errorf("%d of %d have an answer; %d places are taken", len(ended), cap(ended), gate.edge.entering.parties.Held())
		}
		for range cap(ended) {
			if err := <-ended; deployments.CodeOf(err) != deployments.CodeUnauthorized {
				t.Errorf("one is answered %v", err)
			}
		}
	})
}
