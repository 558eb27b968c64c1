package fakeprovider

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	comprovider "github.com/pulumi/pulumi/sdk/v3/go/pulumi/provider"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// fake is the provider; each of its exported methods is one of the protocol's.
type fake struct {
	cloud  *cloud // set by Configure
	manner string // of its errors; set by Configure
	habits bool   // see habits.go; set by Configure
	// account is a part of the ids of what is scoped; set by Configure.
	account string
	life    context.Context // ends when the engine says Cancel
	cancel  context.CancelFunc

	extensions extensions
}

// Serve runs the plugin: it prints its port and serves until the process ends.
func Serve(ctx context.Context, version string) error {
	return comprovider.MainContext(ctx, "fake", func(host *comprovider.HostClient) (rpc.ResourceProviderServer, error) {
		f := &fake{cloud: newCloud(os.Getenv("FAKECLOUD_ENDPOINT"), "")}
		f.life, f.cancel = context.WithCancel(ctx)
		inner, err := p.RawServer("fake", version, f.provider(version))(host)
		return &raw{ResourceProviderServer: inner, fake: f}, err
	})
}

func (f *fake) provider(version string) p.Provider {
	return p.Provider{
		Handshake: func(context.Context, p.HandshakeRequest) (p.HandshakeResponse, error) {
			return p.HandshakeResponse{SupportsAutonamingConfiguration: true}, nil
		},
		GetSchema: func(context.Context, p.GetSchemaRequest) (p.GetSchemaResponse, error) {
			schema, err := packageSchema(version)
			return p.GetSchemaResponse{Schema: schema}, err
		},
		Cancel:      f.Cancel,
		CheckConfig: f.CheckConfig,
		DiffConfig:  f.DiffConfig,
		Configure:   f.Configure,
		Invoke:      f.Invoke,
		Check:       f.Check,
		Diff:        f.Diff,
		Create:      f.Create,
		Read:        f.Read,
		Update:      f.Update,
		Delete:      f.Delete,
		Construct:   f.Construct,
	}
}

// Cancel ends what is under way and all that comes later.
func (f *fake) Cancel(ctx context.Context) error {
	f.cloud.cancelled(ctx)
	f.cancel()
	return nil
}

// CheckConfig makes the token a secret and wants the endpoint to be a URL.
func (f *fake) CheckConfig(_ context.Context, req p.CheckRequest) (p.CheckResponse, error) {
	var failures []p.CheckFailure
	in := req.Inputs
	if endpoint := text(in.Get("endpoint")); endpoint != "" {
		if u, err := url.Parse(endpoint); err != nil || u.Scheme == "" || u.Host == "" {
			failures = append(failures, p.CheckFailure{Property: "endpoint",
				Reason: fmt.Sprintf("%q is not a URL", endpoint)})
		}
	}
	if manner := text(in.Get("errors")); manner != "" && manners[manner] == nil {
		failures = append(failures, p.CheckFailure{Property: "errors", Reason: fmt.Sprintf("%q is no manner", manner)})
	}
	if token, given := in.GetOk("token"); given {
		in = in.Set("token", token.WithSecret(true))
	}
	return p.CheckResponse{Inputs: in, Failures: failures}, nil
}

// DiffConfig replaces the provider when the account is another.
func (f *fake) DiffConfig(_ context.Context, req p.DiffRequest) (p.DiffResponse, error) {
	diff := p.DiffResponse{DetailedDiff: map[string]p.PropertyDiff{}}
	for name, replaces := range map[string]bool{
		"endpoint": false, "token": false, "errors": false, "habits": false, "account": true,
	} {
		before, had := req.OldInputs.GetOk(name)
		after, has := req.Inputs.GetOk(name)
		if had == has && without(before).Equals(without(after)) {
			continue
		}
		diff.HasChanges = true
		diff.DetailedDiff[name] = p.PropertyDiff{Kind: change(had, has, replaces), InputDiff: true}
	}
	return diff, nil
}

// Configure sets where the cloud is. That it is nowhere is an error only of the first request to it.
func (f *fake) Configure(_ context.Context, req p.ConfigureRequest) error {
	endpoint := cmp.Or(text(req.Args.Get("endpoint")), os.Getenv("FAKECLOUD_ENDPOINT"))
	f.cloud, f.manner = newCloud(endpoint, text(req.Args.Get("token"))),
		cmp.Or(text(req.Args.Get("errors")), os.Getenv("FAKECLOUD_ERRORS"))
	if f.habits = chosen(req.Args.Get("habits")) || os.Getenv("FAKECLOUD_HABITS") != ""; f.habits {
		f.manner = cmp.Or(f.manner, "bridged")
	}
	f.account = cmp.Or(text(req.Args.Get("account")), os.Getenv("FAKECLOUD_ACCOUNT"))
	return nil
}

func (f *fake) kindOf(urn resource.URN) (kind, error) {
	k, ok := f.extensions.kind(urn.Type())
	if !ok {
		return kind{}, status.Errorf(codes.NotFound, "there is no resource type %s", urn.Type())
	}
	return k, nil
}
