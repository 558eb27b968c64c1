// Package hosted has what the rooms of one update share: what is known of the update, its providers, and what they need
// of its session.
package hosted

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/autonaming"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/identities"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Update is an update as its host knows it. Nothing of it changes.
type Update struct {
	Name     deployments.UpdateName
	Base     int // the version of the stack from which it starts
	Request  deployments.UpdateRequest
	StackID  string
	Identity identities.Identity
	Store    *statestore.Store
	Values   *bags.Codec
	Own      stackkeys.Settings
	Names    *autonaming.Rules
	// providers are those of the update.
	Providers *Providers
	Host      Host
}

// Host is what plans and steps need of the session of their update.
type Host interface {
	// Tell prints a message about a resource.
	Tell(severity diag.Severity, u urn.URN, text string)
	// Redactor returns a redactor of the secrets of the update and of bags.
	Redactor(ctx context.Context, bags ...engine.Bag) failure.Redactor
	// OpenViews lets a provider publish steps of views during a call.
	OpenViews(preview bool) *pluginhost.Views
	// ReplyEarly delivers a reply to the program; see runlink.Link.ReplyEarly.
	ReplyEarly(ctx context.Context, r engine.Reply) (delivered bool, next *deployments.Messages)
}
