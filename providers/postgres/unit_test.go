package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/stamp"
	"github.com/jackc/pgx/v5/pgconn"
)

// TestAVerifierIsThatOfTheStandard has the values of RFC 7677.
func TestAVerifierIsThatOfTheStandard(t *testing.T) {
	const want = "SCRAM-SHA-256$4096:W22ZaJ0SNY7soEsUEjb6gQ==$WG5d8oPm3OtcPnkdi4Uo7BkeZkBFzpcXkuLmtbsT4qY=:" +
		"wfPLwcE6nTWhTAmQ7tl2KeoiWGPlZqQxSrmfPwDl2dU="
	if !verifies(want, "pencil") || verifies(want, "pencils") {
		t.Error("the verifier of the standard is not one of its password alone")
	}
	one, err := newVerifier("pencil")
	if err != nil || one == want || !verifies(one, "pencil") {
		t.Errorf("%s: %v", one, err)
	}
	for _, other := range []string{"", "md5aabbcc", "SCRAM-SHA-256$", "SCRAM-SHA-256$0:W22Z$a:b",
		"SCRAM-SHA-256$x:W22Z$a:b", "SCRAM-SHA-256$99999999999:W22Z$a:b", "SCRAM-SHA-256$1:%$a:b"} {
		if verifies(other, "pencil") {
			t.Errorf("%q is taken for a verifier", other)
		}
	}
}

func TestAnAnswerOfTheServerHasAClass(t *testing.T) {
	pg := func(code string) error { return &pgconn.PgError{Code: code, Message: "no", Detail: "the details."} }
	for _, c := range []struct {
		err  error
		want class
		says string
	}{
		{pg("08006"), unknown, ""}, {pg("08001"), notDone, ""}, {pg("08004"), notDone, ""},
		{pg("22023"), refused, "the details"}, {pg("23505"), refused, ""}, {pg("25006"), notDone, ""},
		{pg("28P01"), refused, "check postgresUser"}, {pg("2BP01"), refused, ""}, {pg("3D000"), refused, ""},
		{pg("40001"), notDone, ""}, {pg("40P01"), notDone, ""}, {pg("40003"), unknown, ""},
		{pg("42501"), refused, "lacks the right"}, {pg("42601"), refused, ""}, {pg("42704"), refused, ""},
		{pg("53300"), notDone, "no connection left"}, {pg("53100"), notDone, ""}, {pg("55006"), notDone, ""},
		{pg("55P03"), notDone, ""}, {pg("55000"), refused, ""}, {pg("57014"), notDone, ""}, {pg("57P01"), notDone, ""},
		{pg("57P02"), unknown, ""}, {pg("57P03"), notDone, ""}, {pg("58030"), unknown, ""}, {pg("XX000"), unknown, ""},
		{&pgconn.PgError{Code: "XX000", Message: "tuple concurrently updated"}, notDone, ""},
		{io.ErrUnexpectedEOF, unknown, "the connection was lost"}, {context.Canceled, refused, ""},
		{plainf("no"), refused, "no"}, {&provider.Foreign{Thing: "it"}, refused, "it exists"},
	} {
		err := failed("the thing", c.err)
		var (
			later *provider.NotDone
			lost  *provider.Unknown
		)
		got := refused
		switch {
		case errors.As(err, &later):
			got = notDone
		case errors.As(err, &lost):
			got = unknown
		}
		if got != c.want || !strings.Contains(err.Error(), c.says) || !errors.Is(err, c.err) {
			t.Errorf("%v becomes %v, of class %d", c.err, err, got)
		}
	}
	if failed("it", nil) != nil {
		t.Error("no error is one")
	}
}

func TestAConnectionThatIsNotMadeDoesNothing(t *testing.T) {
	c := &connection{through: func(_ string, do func() error) error { return do() }, slots: make(chan struct{}, 1)}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	defer func() { _ = listener.Close() }()
	if err := c.open(t.Context(), Config{Host: "127.0.0.1", Port: port, Password: "very secret"}); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the slot is free again
		_, err = c.dial(t.Context(), "")
		var later *provider.NotDone
		if !errors.As(err, &later) || strings.Contains(err.Error(), "very secret") {
			t.Errorf("it ends with %v", err)
		}
	}
}

func TestTheEnvironmentCountsOnlyIfNothingIsConfigured(t *testing.T) {
	t.Setenv("PGHOST", "of.the.environment")
	t.Setenv("PGUSER", "its-user")
	t.Setenv("PGPASSWORD", "its password")
	got, err := Config{}.parse()
	if err != nil || got.Host != "of.the.environment" || got.Password != "its password" || got.Database != "its-user" {
		t.Errorf("without settings: %v, %v", got, err)
	}
	got, err = Config{Host: `a'b\c`}.parse()
	if err != nil || got.Host != `a'b\c` || got.User != "postgres" || got.Password != "" || got.Port != defaultPort {
		t.Errorf("with a host: %v, %v", got, err)
	}
	for says, wrong := range map[string]Config{
		"postgresHost must be given": {Password: "x"}, "postgresSslMode must be one of": {Host: "h", SSLMode: "maybe"},
		"postgresPort must be": {Host: "h", Port: 70000},
	} {
		if _, err := wrong.parse(); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v: %v", wrong, err)
		}
	}
}

func TestACommentKeepsTheUsersTextAndTheMark(t *testing.T) {
	for _, text := range []string{"", "one", "two\nlines\n", "deployctl: owner=ab stack=x"} {
		want := remark{text, stamp.Stamp{Owner: "0123abcd", Stack: "project/dev@00ff"}}
		if got := parseRemark(want.String()); got != want {
			t.Errorf("%q comes back as %+v", want, got)
		}
	}
	if got := parseRemark("by hand"); got != (remark{text: "by hand"}) {
		t.Errorf("what has no mark is %+v", got)
	}
	by := remark{text: "by hand"}
	for _, c := range [][3]string{{"", "", "by hand"}, {"new", "", "new"}, {"", "old", ""}} {
		if got := by.toBe(c[0], c[1], provider.Identity{}).text; got != c[2] {
			t.Errorf("declared %q, before %q: %q", c[0], c[1], got)
		}
	}
}

func TestStatementsQuoteWhatTheyNameAndSay(t *testing.T) {
	three := 3
	sql := createDatabase(`a"b`, DatabaseIn{Owner: "o w", Encoding: "UTF'8", ConnectionLimit: &three})
	if want := `CREATE DATABASE "a""b" OWNER "o w" TEMPLATE "template0" ENCODING 'UTF''8' CONNECTION LIMIT 3`; sql != want {
		t.Errorf("it is %s", sql)
	}
	g := grant{targets["table"], `r"`, "table", "d", []string{"s", "t"}}
	have := map[string]bool{"SELECT": false, "DELETE": true, "UPDATE": false}
	got := g.change(have, []string{"SELECT", "INSERT", "DELETE"}, []string{"UPDATE", "TRUNCATE"}, false)
	want := []string{lock, `GRANT INSERT ON TABLE "s"."t" TO "r"""`,
		`REVOKE GRANT OPTION FOR DELETE ON TABLE "s"."t" FROM "r"""`, `REVOKE UPDATE ON TABLE "s"."t" FROM "r"""`}
	if !slices.Equal(got, want) {
		t.Errorf("it is %q", got)
	}
	if left := g.change(have, []string{"DELETE"}, nil, true); len(left) > 0 {
		t.Errorf("what is there is granted again: %q", left)
	}
}

func TestAnIDNamesWhatItIsOf(t *testing.T) {
	c := &connection{}
	for id, works := range map[string]bool{"r/database/d": true, "r/schema/d/s": true, "r/table/d/s/a%2Fb": true,
		"r/table/d/s": false, "r/view/d/s/t": false, "r": false, "": false, "r/database/": false, "r/database/%": false} {
		g, err := c.grant(id, GrantIn{})
		if (err == nil) != works || works && g.id() != id {
			t.Errorf("%q: %v, %v", id, g.id(), err)
		}
	}
	if _, _, err := c.locate("no-slash", "", ""); err == nil {
		t.Error("an ID without a database leads somewhere")
	}
}
