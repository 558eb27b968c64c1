package real

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// seedOf is a seed with which a kind befalls a call.
func seedOf(t *testing.T, call string, kind Kind) int {
	t.Helper()
	for seed := range 100 {
		f := NewFaults(seed, kind)
		f.Begin()
		if f.Of(call) == kind {
			return seed
		}
	}
	t.Fatal("no seed")
	return 0
}

func TestWhatGoesWrongWithACallFollowsFromTheSeed(t *testing.T) {
	kinds := []Kind{Refused, Cut, Error, Late}
	one, same, other := NewFaults(1, kinds...), NewFaults(1, kinds...), NewFaults(2, kinds...)
	differ := 0
	for _, f := range []*Faults{one, same, other} {
		f.Begin()
	}
	for i := range 100 {
		call := fmt.Sprint("call ", i)
		first := one.Of(call)
		if same.Of(call) != first {
			t.Errorf("%s: not the same", call)
		}
		if other.Of(call) != first {
			differ++
		}
		if one.Of(call) != Fine {
			t.Errorf("%s goes wrong twice", call)
		}
	}
	if differ == 0 || len(one.Struck()) != len(kinds) {
		t.Errorf("%d differ, %v", differ, one.Struck())
	}
}

func TestAnAnswerOverHTTPIsLostAfterTheEffect(t *testing.T) {
	for kind, c := range map[Kind]struct {
		effects int64
		status  int // 0: none arrives
	}{Fine: {1, 200}, Refused: {0, 0}, Cut: {1, 0}, Error: {1, 500}, PluginKilled: {1, 0}} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			var effects atomic.Int64
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.Method == http.MethodPost {
					effects.Add(1)
				}
				_, _ = io.WriteString(w, "done")
			}))
			defer server.Close()
			const body = "Action=CreateRole&RoleName=a"
			r, err := http.NewRequest(http.MethodPost, "/", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			call, changes := callOf(r, []byte(body))
			if !changes {
				t.Fatal("it changes something")
			}
			faults := NewFaults(seedOf(t, call, kind), kind)
			killed := false
			faults.Kill = func(Kind) { killed = true }
			p, err := NewHTTP(server.URL, faults)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			faults.Begin()
			status := 0
			res, err := http.Post(p.URL, "text/plain", strings.NewReader(body))
			if err == nil {
				status = res.StatusCode
				_ = res.Body.Close()
			}
			if effects.Load() != c.effects || status != c.status || killed != (kind == PluginKilled) {
				t.Errorf("%d effects, status %d, killed %v", effects.Load(), status, killed)
			}
			res, err = http.Get(p.URL)
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
		})
	}
}

// TestAnAnswerOfPostgreSQLIsLostWithTheEndOfItsTransaction plays a client and a server of one connection.
func TestAnAnswerOfPostgreSQLIsLostWithTheEndOfItsTransaction(t *testing.T) {
	for _, kind := range []Kind{Fine, Cut, Error} {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = l.Close() }()
			statements := make(chan string, 10)
			go func() {
				conn, err := l.Accept()
				for first := true; err == nil; first = false {
					var content []byte
					if _, content, err = read(conn, first); err == nil && !first {
						statements <- strings.Trim(string(content), "\x00")
						err = write(conn, commandComplete, []byte("OK\x00"))
					}
				}
			}()
			faults := NewFaults(seedOf(t, "CREATE ROLE a;", kind), kind)
			p, err := NewPostgreSQL(l.Addr().String(), faults)
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			faults.Begin()
			client, err := net.Dial("tcp", p.Address)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = client.Close() }()
			ask := func(sql string) (byte, error) {
				if err := write(client, query, []byte(sql+"\x00")); err != nil {
					return 0, err
				}
				answer, _, err := read(client, false)
				return answer, err
			}
			if err := write(client, 0, []byte{0, 3, 0, 0}); err != nil {
				t.Fatal(err)
			}
			for _, sql := range []string{"BEGIN", "CREATE ROLE a"} {
				if answer, err := ask(sql); err != nil || answer != commandComplete {
					t.Fatalf("%s: %c %v", sql, answer, err)
				}
			}
			answer, err := ask("COMMIT")
			switch kind {
			case Fine:
				if err != nil || answer != commandComplete {
					t.Errorf("%c %v", answer, err)
				}
			case Error:
				if err != nil || answer != errorResponse {
					t.Errorf("%c %v", answer, err)
				}
			default:
				if !errors.Is(err, io.EOF) {
					t.Errorf("%c %v", answer, err)
				}
			}
			for _, want := range []string{"BEGIN", "CREATE ROLE a", "COMMIT"} {
				if got := <-statements; got != want {
					t.Errorf("the server got %q, not %q", got, want)
				}
			}
		})
	}
}
