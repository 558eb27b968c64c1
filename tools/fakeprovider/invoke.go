package fakeprovider

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"

	p "github.com/pulumi/pulumi-go-provider"
	"github.com/pulumi/pulumi/sdk/v3/go/property"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Invoke looks things up.
func (f *fake) Invoke(ctx context.Context, req p.InvokeRequest) (p.InvokeResponse, error) {
	ctx, cancel := f.within(ctx, 0)
	defer cancel()
	switch req.Token {
	case "fake:index:lookup":
		return f.lookup(ctx, req.Args)
	case "fake:index:find":
		return f.find(ctx, req.Args)
	case "fake:index:search":
		return f.search(ctx, req.Args)
	}
	return p.InvokeResponse{}, status.Errorf(codes.NotFound, "there is no function %s", req.Token)
}

func (f *fake) lookup(ctx context.Context, args property.Map) (p.InvokeResponse, error) {
	kind, name := cmp.Or(text(args.Get("kind")), "named"), text(args.Get("name"))
	all, err := f.list(ctx, kind, url.Values{"name": {name}})
	if err != nil {
		return p.InvokeResponse{}, err
	}
	if len(all) == 0 {
		return p.InvokeResponse{Failures: []p.CheckFailure{{
			Property: "name", Reason: fmt.Sprintf("there is no %s named %q", kind, name)}}}, nil
	}
	return p.InvokeResponse{Return: property.NewMap(map[string]property.Value{
		"id":   property.New(all[0].ID),
		"arn":  property.New("fake:" + kind + ":" + all[0].ID),
		"size": fromJSON(all[0].Properties["size"]),
		"zone": fromJSON(all[0].Properties["zone"]),
	})}, nil
}

func (f *fake) find(ctx context.Context, args property.Map) (p.InvokeResponse, error) {
	kind := cmp.Or(text(args.Get("kind")), "tagged")
	all, err := f.list(ctx, kind, url.Values{"tag." + urnTag: {text(args.Get("urn"))}})
	if err != nil {
		return p.InvokeResponse{}, err
	}
	ids := []property.Value{}
	for _, o := range all {
		ids = append(ids, property.New(o.ID))
	}
	return p.InvokeResponse{Return: property.NewMap(map[string]property.Value{"ids": property.New(ids)})}, nil
}

// search finds things of a kind by the mark in their settings, as objects with their ARN.
func (f *fake) search(ctx context.Context, args property.Map) (p.InvokeResponse, error) {
	kind := cmp.Or(text(args.Get("kind")), "filed")
	all, err := f.list(ctx, kind, url.Values{})
	if err != nil {
		return p.InvokeResponse{}, err
	}
	found := []property.Value{}
	for _, o := range all {
		if settings, _ := o.Properties["settings"].(map[string]any); settings["mark"] == text(args.Get("mark")) {
			found = append(found, property.New(map[string]property.Value{
				"arn": property.New("fake:" + kind + ":" + o.ID),
			}))
		}
	}
	return p.InvokeResponse{Return: property.NewMap(map[string]property.Value{"things": property.New(found)})}, nil
}

func (f *fake) list(ctx context.Context, kind string, query url.Values) (all []object, err error) {
	return all, f.cloud.call(ctx, request{http.MethodGet, path(kind) + "?" + query.Encode(), "", nil}, &all)
}
