// Command pulumi-resource-zone is a convergent provider of one type, zone:index:Record: a name in the zone of an HTTP
// service. docs/providers.md explains it.
package main

import (
	"context"
	"fmt"
	"net/url"
	"os"

	"github.com/deployctl/deployctl/provider"
)

func main() {
	if err := provider.Main(zone(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "pulumi-resource-zone:", err)
		os.Exit(1)
	}
}

// zone is the package: its configuration, and its types, which use what was configured.
func zone() provider.Package {
	api := &client{}
	return provider.Package{
		Name: "zone", Version: "0.1.0", Description: "Names in a zone.",
		Modules: []provider.Module{{
			Config:    provider.Configured(api.configure),
			Resources: []provider.Resource{provider.NewResource("zone:index:Record", &Record{api})},
		}},
	}
}

// Settings are the configuration of the package: zone:endpoint and zone:token.
type Settings struct {
	Endpoint string `pulumi:"endpoint" doc:"URL of the zone's service."`
	Token    string `pulumi:"token,optional,secret" doc:"Token for it."`
}

// RecordIn declares a record.
type RecordIn struct {
	Name    string `pulumi:"name,autoname,replace" doc:"The name; by default the resource's name and a suffix."`
	Address string `pulumi:"address" doc:"What the name stands for."`
	TTL     int    `pulumi:"ttl" default:"300" doc:"For how many seconds an answer may be remembered."`
}

// RecordOut describes a record that exists.
type RecordOut struct {
	RecordIn
	URL string `pulumi:"url,stable" doc:"Where the service has it."`
}

// Record is zone:index:Record.
type Record struct{ api *client }

// Naming returns the rules for names that the provider makes.
func (*Record) Naming() provider.Naming {
	return provider.Naming{MaxLen: 63, Alphabet: "abcdefghijklmnopqrstuvwxyz0123456789-"}
}

// Check reports every input that is not valid. In a preview, an input may not be known yet.
func (*Record) Check(_ context.Context, in provider.Inputs[RecordIn]) []provider.Failure {
	if in.Known("ttl") && in.Value.TTL < 1 {
		return []provider.Failure{{Property: "ttl", Reason: "must be at least 1"}}
	}
	return nil
}

// Reconcile makes the record as declared, whether it exists or not.
func (r *Record) Reconcile(ctx context.Context, req provider.Request[RecordIn, RecordOut]) (string, RecordOut, error) {
	name := req.News.Name
	have, err := r.api.get(ctx, name)
	if err != nil {
		return "", RecordOut{}, err
	}
	if have != nil && req.ID == "" && have.Owner != req.Owner() {
		return "", RecordOut{}, &provider.Foreign{Thing: "record " + name, ID: name}
	}
	want := record{Address: req.News.Address, TTL: req.News.TTL, Owner: req.Owner()}
	if have == nil || *have != want {
		if err := r.api.put(ctx, name, want, have == nil); err != nil {
			return "", RecordOut{}, err
		}
	}
	return name, r.out(req.News), nil
}

// Read returns what exists: by its id, or by its inputs if a create was interrupted and no id is known.
func (r *Record) Read(
	ctx context.Context, req provider.Lookup[RecordIn, RecordOut],
) (provider.Found[RecordIn, RecordOut], error) {
	found := provider.Found[RecordIn, RecordOut]{Ownership: provider.Absent, ID: req.ID}
	if found.ID == "" && req.Inputs != nil {
		found.ID = req.Inputs.Name
	}
	have, err := r.api.get(ctx, found.ID)
	if err != nil || have == nil {
		return found, err
	}
	found.Ownership = provider.Unowned
	if have.Owner == req.Owner() {
		found.Ownership = provider.Owned
	}
	found.Inputs = RecordIn{Name: found.ID, Address: have.Address, TTL: have.TTL}
	found.Output = r.out(found.Inputs)
	return found, nil
}

// Delete removes the record. If it is gone already, that is success.
func (r *Record) Delete(ctx context.Context, req provider.Existing[RecordIn, RecordOut]) error {
	return r.api.delete(ctx, req.ID)
}

func (r *Record) out(in RecordIn) RecordOut {
	return RecordOut{RecordIn: in, URL: r.api.endpoint + "/records/" + url.PathEscape(in.Name)}
}
