package provider_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/provider"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// shelf lists three things of each stack, and then fails.
type shelf struct{ token }

func (shelf) List(_ context.Context, stack provider.Identity, found func(string) error) error {
	for _, id := range []string{"a", "b", "c"} {
		if err := found(stack.StackID + "-" + id); err != nil {
			return err
		}
	}
	return &provider.NotDone{Err: errors.New("the rest is away")}
}

func TestAListIsOfTheStackAndSaysThatItIsNotWhole(t *testing.T) {
	t.Setenv(provider.StackVariable, "one")
	c, stop, err := provider.Client(provider.Server(provider.Package{Name: "toy", Modules: []provider.Module{{
		Resources: []provider.Resource{provider.NewResource("toy:index:Token", token{}),
			provider.NewResource("toy:index:Shelf", shelf{})}}}}))
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	for name, c2 := range map[string]struct {
		of    string
		limit int64
		ids   []string
		code  codes.Code
	}{
		"all":                     {"toy:index:Shelf", 0, []string{"one-a", "one-b", "one-c"}, codes.ResourceExhausted},
		"no more than are wanted": {"toy:index:Shelf", 2, []string{"one-a", "one-b"}, codes.OK},
		"a type without a List":   {"toy:index:Token", 0, nil, codes.Unimplemented},
		"no type":                 {"toy:index:None", 0, nil, codes.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			stream, err := c.List(t.Context(), &pulumirpc.ListRequest{Token: c2.of, Limit: c2.limit})
			var ids []string
			for err == nil {
				var item *pulumirpc.ListResponse
				if item, err = stream.Recv(); err == nil {
					ids = append(ids, item.GetResult().GetId())
				}
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			if status.Code(err) != c2.code || !slices.Equal(ids, c2.ids) {
				t.Errorf("%q %v", ids, err)
			}
		})
	}
}
