package postgres_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/postgrestest"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/provider/providertest"
	"github.com/deployctl/deployctl/providers/postgres"
	"github.com/jackc/pgx/v5"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/types/known/structpb"
)

// started starts the one server of the tests, for the first of them.
var started = sync.OnceValues(postgrestest.Start)

// using says whether a test has started the server.
var using bool

func TestMain(m *testing.M) {
	code := m.Run()
	if using {
		if s, err := started(); err == nil {
			s.Stop()
		}
	}
	os.Exit(code)
}

// server skips a test where none can be started.
func server(t *testing.T) *postgrestest.Server {
	t.Helper()
	using = true
	s, err := started()
	if errors.Is(err, postgrestest.ErrNone) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// ask runs statements in a database, and returns the rows of the last, their columns joined by a blank. They are also
// for clean-ups, when the test's context has ended.
func ask(t *testing.T, database string, statements ...string) (found []string) {
	t.Helper()
	found, err := try(t, "postgres", "", database, statements...)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// sessions are those of the tests themselves, by their URLs.
var sessions = struct {
	sync.Mutex
	open map[string]*pgx.Conn
}{open: map[string]*pgx.Conn{}}

func try(t *testing.T, user, password, database string, statements ...string) (found []string, err error) {
	t.Helper()
	ctx := context.Background()
	at := url.URL{Scheme: "postgres", User: url.UserPassword(user, password), Host: server(t).Address,
		Path: "/" + cmp.Or(database, "postgres"), RawQuery: "sslmode=disable"}
	sessions.Lock()
	defer sessions.Unlock()
	conn := sessions.open[at.String()]
	if conn == nil || conn.IsClosed() || conn.Ping(ctx) != nil { // its database was dropped
		if conn, err = pgx.Connect(ctx, at.String()); err != nil {
			return nil, err
		}
		sessions.open[at.String()] = conn
	}
	for _, sql := range statements {
		results, err := conn.PgConn().Exec(ctx, sql).ReadAll()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", sql, err)
		}
		found = nil
		for _, row := range results[len(results)-1].Rows {
			var columns []string
			for _, column := range row {
				columns = append(columns, string(column))
			}
			found = append(found, strings.Join(columns, " "))
		}
	}
	return found, nil
}

// settings are the configuration for the server.
func settings(t *testing.T) providertest.Inputs {
	t.Helper()
	host, port, _ := net.SplitHostPort(server(t).Address) // it has a port
	return providertest.Inputs{"postgresHost": host, "postgresPort": port, "postgresUser": "postgres",
		"postgresPassword": providertest.Secret("password of postgres"), "postgresSslMode": "disable"}
}

func over(in providertest.Inputs, others providertest.Inputs) providertest.Inputs {
	all := providertest.Inputs{}
	for _, from := range []providertest.Inputs{in, others} {
		for name, v := range from {
			all[name] = v
		}
	}
	return all
}

// engine calls a provider as an engine does, for a type.
type engine struct {
	pulumirpc.ResourceProviderClient
	t   *testing.T
	urn string
}

func engineFor(t *testing.T, token string, config providertest.Inputs) engine {
	t.Helper()
	t.Setenv(provider.StackVariable, "identity-of-dev")
	client, stop, err := provider.Client(provider.Server(provider.Package{Name: "deployctl", Version: "0.0.1",
		Modules: []provider.Module{postgres.Module()}}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	e := engine{client, t, "urn:pulumi:dev::project::" + token + "::it"}
	if _, err := client.Configure(t.Context(), &pulumirpc.ConfigureRequest{Args: wire(t, config)}); err != nil {
		t.Fatal(err)
	}
	return e
}

func wire(t *testing.T, in providertest.Inputs) *structpb.Struct {
	t.Helper()
	bag := resource.PropertyMap{}
	for name, v := range in {
		bag[resource.PropertyKey(name)] = resource.NewPropertyValue(v)
	}
	s, err := plugin.MarshalProperties(bag, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, SkipNulls: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// check completes inputs, and returns what is wrong with them.
func (e engine) check(in providertest.Inputs) (*structpb.Struct, string) {
	e.t.Helper()
	resp, err := e.Check(e.t.Context(), &pulumirpc.CheckRequest{Urn: e.urn, News: wire(e.t, in),
		RandomSeed: []byte("seed")})
	if err != nil {
		e.t.Fatal(err)
	}
	var wrong []string
	for _, f := range resp.GetFailures() {
		wrong = append(wrong, f.GetProperty()+" "+f.GetReason())
	}
	return resp.GetInputs(), strings.Join(wrong, "\n")
}

func (e engine) create(in providertest.Inputs) (*pulumirpc.CreateResponse, error) {
	e.t.Helper()
	checked, wrong := e.check(in)
	if wrong != "" {
		e.t.Fatal(wrong)
	}
	return e.Create(e.t.Context(), &pulumirpc.CreateRequest{Urn: e.urn, Properties: checked})
}

func (e engine) update(id string, was, is providertest.Inputs) error {
	e.t.Helper()
	olds, _ := e.check(was)
	news, _ := e.check(is)
	_, err := e.Update(e.t.Context(), &pulumirpc.UpdateRequest{Urn: e.urn, Id: id, OldInputs: olds, News: news})
	return err
}

func (e engine) delete(id string, in providertest.Inputs) error {
	e.t.Helper()
	olds, _ := e.check(in)
	_, err := e.Delete(e.t.Context(), &pulumirpc.DeleteRequest{Urn: e.urn, Id: id, OldInputs: olds})
	return err
}

func (e engine) read(id string, in providertest.Inputs) (provider.Ownership, resource.PropertyMap) {
	e.t.Helper()
	req := &pulumirpc.ReadRequest{Urn: e.urn, Id: id}
	if in != nil {
		req.Inputs, _ = e.check(in)
	}
	var trailer metadata.MD
	resp, err := e.Read(e.t.Context(), req, grpc.Trailer(&trailer))
	if err != nil {
		e.t.Fatal(err)
	}
	bag, err := plugin.UnmarshalProperties(resp.GetInputs(), plugin.MarshalOptions{})
	if err != nil {
		e.t.Fatal(err)
	}
	return provider.Ownership(trailer.Get(provider.OwnershipTrailer)[0]), bag
}

// list returns what the stack has.
func (e engine) list() (ids []string) {
	e.t.Helper()
	token := strings.Split(e.urn, "::")[2]
	stream, err := e.List(e.t.Context(), &pulumirpc.ListRequest{Token: token})
	for err == nil {
		var item *pulumirpc.ListResponse
		if item, err = stream.Recv(); err == nil {
			ids = append(ids, item.GetResult().GetId())
		}
	}
	if !errors.Is(err, io.EOF) {
		e.t.Error(err)
	}
	return ids
}
