package client_test

import (
	"bytes"
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/filltest"
)

// recorder is a service that notes how each method was called last, and answers with values of which every field is
// set.
type recorder struct {
	t     *testing.T
	calls map[string][]any
	err   error // if not nil, what it answers
}

// note notes a call. The authority of a request is the edge's to set.
func (r *recorder) note(method string, args ...any) error {
	for i, arg := range args {
		switch arg := arg.(type) {
		case deployments.UpdateRequest:
			arg.Authority = nil
			args[i] = arg
		case deployments.Schedule:
			arg.Authority = nil
			args[i] = arg
		}
	}
	r.calls[method] = args
	return r.err
}

// answer notes a call, and answers it.
func answer[T any](r *recorder, method string, args ...any) (T, error) {
	if err := r.note(method, args...); err != nil {
		var none T
		return none, err
	}
	return filltest.Of[T](r.t), nil
}

// whole is a case of TestEveryArgumentAndAnswerTravels: a call of one method. It returns the answer.
type whole func(ctx context.Context, s deployments.Service) (any, error)

// of makes a whole of a method's answer.
func of[T any](v T, err error) (any, error) { return v, err }

var (
	live     = deployments.StackName{Organization: "acme", Project: "shop", Stack: "live"}
	version2 = deployments.UpdateName{StackName: dev, Version: "2"}
	nightly  = deployments.ScheduleName{StackName: dev, Name: "nightly"}
	digest   = "sha256:" + strings.Repeat("0a", 32)
	manifest = deployments.Manifest{Dir: "d", Files: []deployments.File{{Path: "d/f", Digest: digest, Mode: 0o755,
		Size: 3}}}
	grant      = deployments.Grant{Role: deployments.RoleViewer, Organization: "acme", Stacks: []string{"shop/*"}}
	passphrase = deployments.SecretsProvider{Type: deployments.SecretsPassphrase, Salt: "v1:a:b",
		Key: bytes.Repeat([]byte{1}, 32), URL: "awskms://k", EncryptedKey: "e"}
	moment     = time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	deployment = apitype.UntypedDeployment{Version: 3, Features: []string{"f"}, Deployment: []byte(`{"a":1}`)}
)

// soon is a time that is not over.
var soon = time.Now().UTC().Add(time.Hour)

const aURN = "urn:pulumi:dev::shop::a:b:C::n"

var three = 3

func fullRequest() deployments.UpdateRequest {
	return deployments.UpdateRequest{
		Stack: dev, RequestID: "r1", Kind: engine.KindUp, DryRun: true, OnBusy: deployments.OnBusySupersede,
		Bundle: digest, BaseVersion: &three,
		Config:      map[string]deployments.ConfigValue{"shop:size": {Value: "3", Secret: true, Object: true}},
		Environment: []string{"A=B"}, Secrets: passphrase, Refresh: true, Targets: []string{"t"},
		TargetDependents: true, ExcludeDependents: true, IgnoreProtect: true, Replace: []string{"r"},
		Adopt: []string{"a"}, Force: true, Survey: true,
		ContinueOnError: true, Parallel: 7, WaitOnUnknown: true, Message: "m", Initiator: "ann", Scheduled: true,
		PolicyPacks: []deployments.PolicyPack{{Dir: "pack", Config: "{}"}},
	}
}

// wholes has a call of every method of deployments.Service, by its name.
var wholes = map[string]whole{
	"Submit": func(ctx context.Context, s deployments.Service) (any, error) {
		excluding := fullRequest()
		excluding.Kind, excluding.Targets, excluding.Excludes = engine.KindDestroy, nil, []string{"x"}
		excluding.ExcludeProtected, excluding.IgnoreProtect, excluding.RunProgram = true, false, true
		excluding.PolicyPacks, excluding.Adopt, excluding.Force, excluding.Survey = nil, nil, false, false
		refreshing := fullRequest()
		refreshing.Kind, refreshing.RunProgram, refreshing.ClearPendingCreates = engine.KindRefresh, true, true
		refreshing.PolicyPacks, refreshing.Adopt, refreshing.Force, refreshing.Survey = nil, nil, false, false
		if _, err := s.Submit(ctx, refreshing); err != nil {
			return nil, err
		}
		settling := refreshing
		settling.RunProgram, settling.ClearPendingCreates = false, false
		settling.Settle = &engine.Settling{Answers: []engine.Resolved{{URN: aURN, ID: "i"}}}
		if _, err := s.Submit(ctx, settling); err != nil {
			return nil, err
		}
		trying := refreshing
		trying.RunProgram, trying.ClearPendingCreates, trying.DryRun, trying.TrySettle = false, false, true, true
		if _, err := s.Submit(ctx, trying); err != nil {
			return nil, err
		}
		if _, err := s.Submit(ctx, excluding); err != nil {
			return nil, err
		}
		return of(s.Submit(ctx, fullRequest()))
	},
	"Watch": func(ctx context.Context, s deployments.Service) (any, error) {
		var seen []deployments.WatchEvent
		err := s.Watch(ctx, version2, func(e deployments.WatchEvent) error { seen = append(seen, e); return nil })
		return seen, err
	},
	"Cancel": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.Cancel(ctx, version2, true)
	},
	"Resolve": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.Resolve(ctx, version2, "urn:pulumi:dev::shop::a:b:C::n", "id")
	},
	"Ongoing": func(ctx context.Context, s deployments.Service) (any, error) { return of(s.Ongoing(ctx, "acme")) },
	"CreateStack": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.CreateStack(ctx, dev, map[string]string{"a": "b"})
	},
	"ListStacks": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.ListStacks(ctx, "acme", "shop"))
	},
	"Statuses": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.Statuses(ctx, deployments.Caller{}, deployments.StatusQuery{Organization: "acme", Project: "shop",
			After: "acme/shop/dev", Limit: 3}))
	},
	"Stack": func(ctx context.Context, s deployments.Service) (any, error) { return of(s.Stack(ctx, dev)) },
	"RemoveStack": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.RemoveStack(ctx, dev, true)
	},
	"RenameStack": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.RenameStack(ctx, deployments.RenameRequest{From: dev, To: live, Initiator: "ann"})
	},
	"RecreateStack": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.RecreateStack(ctx, deployments.Caller{}, dev, "acme/shop/old#2")
	},
	"ChangeTags": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.ChangeTags(ctx, dev, map[string]string{"a": "b"}, []string{"c"})
	},
	"TagStack": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.TagStack(ctx, dev, map[string]string{"a": "b"})
	},
	"Export": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.Export(ctx, dev, 3, passphrase, true))
	},
	"ExportRaw": func(ctx context.Context, s deployments.Service) (any, error) {
		var archive bytes.Buffer
		err := s.ExportRaw(ctx, dev, &archive)
		return archive.String(), err
	},
	"Import": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.Import(ctx, deployments.ImportRequest{Stack: dev, Deployment: deployment, Secrets: passphrase,
			Forget: true, BaseVersion: &three, Initiator: "ann"}))
	},
	"EditState": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.EditState(ctx, fullEdit()))
	},
	"MoveState": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.MoveState(ctx, deployments.MoveRequest{From: dev, To: live, Resources: []string{aURN},
			Parents: true, Forget: true, DryRun: true, BaseVersion: &three, FromSecrets: passphrase,
			ToSecrets: passphrase, Initiator: "ann"}))
	},
	"Restore": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.Restore(ctx, deployments.RestoreRequest{Stack: dev, Version: 3, Secrets: passphrase, Forget: true,
			Initiator: "ann"}))
	},
	"Recover": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.Recover(ctx, deployments.RecoverRequest{Stack: dev, Discard: true}))
	},
	"History": func(ctx context.Context, s deployments.Service) (any, error) { return of(s.History(ctx, dev, 3)) },
	"Encrypt": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.Encrypt(ctx, dev, []string{"a", ""}))
	},
	"Decrypt": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.Decrypt(ctx, dev, []string{"a", ""}))
	},
	"Missing": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.Missing(ctx, dev, manifest))
	},
	"PutFile": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.PutFile(ctx, dev, digest, bytes.Repeat([]byte("0123456789"), 1<<18)) // more than one chunk
	},
	"PutManifest": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.PutManifest(ctx, dev, manifest))
	},
	"CreateToken": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.CreateToken(ctx, deployments.Token{Name: "ci", Member: "ann", Organization: "acme", Grant: &grant,
			Expires: moment}))
	},
	"DeriveToken": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.DeriveToken(ctx, deployments.Token{Name: "cli", Expires: moment,
			Origin: &deployments.Origin{Token: deployments.LocalToken}})) // the edge sets the origin
	},
	"GrantTeam": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.GrantTeam(ctx, "dev", grant)
	},
	"ListTeams": func(ctx context.Context, s deployments.Service) (any, error) { return of(s.ListTeams(ctx)) },
	"RemoveTeam": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.RemoveTeam(ctx, "acme", "dev")
	},
	"JoinTeam": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.JoinTeam(ctx, "acme", "dev", "ann")
	},
	"LeaveTeam": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.LeaveTeam(ctx, "acme", "dev", "ann")
	},
	"PutTrust": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.PutTrust(ctx, deployments.Trust{Organization: "acme", Name: "ci", Issuer: "https://issuer.example",
			Audiences: []string{"a"}, Conditions: []deployments.Condition{{Claim: "sub", Pattern: "repo:*"}}, Grant: grant,
			Lifetime: time.Hour})
	},
	"ListTrusts": func(ctx context.Context, s deployments.Service) (any, error) { return of(s.ListTrusts(ctx)) },
	"RemoveTrust": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.RemoveTrust(ctx, "acme", "ci")
	},
	"ListTokens": func(ctx context.Context, s deployments.Service) (any, error) { return of(s.ListTokens(ctx)) },
	"WhoAmI": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.WhoAmI(ctx, deployments.Caller{Token: deployments.LocalToken, Authority: deployments.Everything(),
			Trusted: true})) // the edge sets the caller
	},
	"RemoveToken": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.RemoveToken(ctx, "x")
	},
	"GrantMember": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.GrantMember(ctx, "ann", grant)
	},
	"ListMembers": func(ctx context.Context, s deployments.Service) (any, error) { return of(s.ListMembers(ctx)) },
	"RemoveMember": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.RemoveMember(ctx, "x", "x")
	},
	"Audit": func(ctx context.Context, s deployments.Service) (any, error) {
		var seen []deployments.AuditEntry
		err := s.Audit(ctx, deployments.AuditQuery{Organization: "acme", Since: moment, User: "ann", Stack: "shop/dev",
			Until: moment},
			func(e deployments.AuditEntry) error { seen = append(seen, e); return nil })
		return seen, err
	},
	"CreateSchedule": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.CreateSchedule(ctx, deployments.Schedule{Name: nightly, Kind: deployments.ScheduleDrift,
			Every: time.Hour, Remediate: true, Initiator: "ann", Paused: true,
			Options: deployments.ScheduleOptions{Targets: []string{"t"}}})
	},
	"Schedules": func(ctx context.Context, s deployments.Service) (any, error) { return of(s.Schedules(ctx, dev)) },
	"Schedule": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.Schedule(ctx, nightly))
	},
	"RemoveSchedule": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.RemoveSchedule(ctx, nightly)
	},
	"PauseSchedule": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.PauseSchedule(ctx, nightly, true, "ann")
	},
	"RunSchedule": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.RunSchedule(ctx, nightly)
	},
	"ScheduleRuns": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.ScheduleRuns(ctx, nightly, 3))
	},
	"Drift": func(ctx context.Context, s deployments.Service) (any, error) { return of(s.Drift(ctx, dev)) },
	"Mode":  func(ctx context.Context, s deployments.Service) (any, error) { return of(s.Mode(ctx)) },
	"SetMode": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.SetMode(ctx, deployments.Mode{Kind: deployments.ModeReadOnly, Reason: "why",
			By: deployments.LocalToken, Since: moment, Until: soon}) // the edge sets who it is by
	},
	"Quotas": func(ctx context.Context, s deployments.Service) (any, error) { return of(s.Quotas(ctx, "acme")) },
	"SetQuota": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.SetQuota(ctx, deployments.QuotaChange{Organization: "acme",
			Set:     deployments.Quota{deployments.LimitStacks: 3},
			Removed: []deployments.Limit{deployments.LimitUpdates}, By: deployments.LocalToken}) // which the edge sets
	},
	"ChangeProfile": func(ctx context.Context, s deployments.Service) (any, error) {
		about, globs := "keys", []string{"shop/*"}
		return of(s.ChangeProfile(ctx, deployments.ProfileChange{Organization: "acme", Name: "aws", Base: &three,
			Description: &about, Stacks: &globs, Set: []deployments.ProfileVariable{{Name: "KEY", Value: "v", Secret: true}},
			Removed: []string{"OLD"}, Clouds: deployments.Clouds{Azure: &deployments.AzureClient{
				Tenant: "01234567-89ab-cdef-0123-456789abcdef", Client: "01234567-89ab-cdef-0123-456789abcdef"}},
			RemovedClouds: []string{"aws"}, By: deployments.LocalToken})) // which the edge sets
	},
	"Profile": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.Profile(ctx, "acme", "aws"))
	},
	"Profiles": func(ctx context.Context, s deployments.Service) (any, error) { return of(s.Profiles(ctx, "acme")) },
	"RemoveProfile": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.RemoveProfile(ctx, "acme", "aws")
	},
	"PutWebhook": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.PutWebhook(ctx, deployments.Webhook{Name: hook, Title: "t", URL: "https://example.com/in",
			Format: deployments.WebhookSlack, Events: []string{"update_failed"}, Groups: []string{"deployments"},
			Paused: true, Secret: "s", HasSecret: true}))
	},
	"Webhooks": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.Webhooks(ctx, deployments.ScopeOf(dev)))
	},
	"RemoveWebhook": func(ctx context.Context, s deployments.Service) (any, error) {
		return nil, s.RemoveWebhook(ctx, hook)
	},
	"SendWebhook": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.SendWebhook(ctx, hook, "e"))
	},
	"WebhookDeliveries": func(ctx context.Context, s deployments.Service) (any, error) {
		return of(s.WebhookDeliveries(ctx, hook))
	},
}

var hook = deployments.WebhookName{Scope: deployments.ScopeOf(dev), Name: "h"}

// TestEveryArgumentAndAnswerTravels makes every call twice: to a service itself, and through a client, the API and its
// handlers. The service must be asked the same and the caller be answered the same, with an error, too.
func TestEveryArgumentAndAnswerTravels(t *testing.T) {
	direct, remote := &recorder{t: t, calls: map[string][]any{}}, &recorder{t: t, calls: map[string][]any{}}
	c := newEdge(t, remote).dial(client.Options{})
	methods := reflect.TypeFor[deployments.Service]()
	for i := range methods.NumMethod() {
		name := methods.Method(i).Name
		t.Run(name, func(t *testing.T) {
			call, ok := wholes[name]
			if !ok {
				t.Fatal("no call of it is tested")
			}
			direct.err, remote.err = nil, nil
			want, _ := call(t.Context(), direct)
			if got, err := call(t.Context(), c); err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("the service answers\n%+v\nand the client\n%+v, %v", want, got, err)
			}
			for _, arg := range direct.calls[name] {
				wantFull(t, arg)
			}
			if !reflect.DeepEqual(remote.calls[name], direct.calls[name]) {
				t.Errorf("the client sent\n%+v\nand the service was asked\n%+v", direct.calls[name], remote.calls[name])
			}
			remote.err = deployments.Errorf(deployments.CodeConflict, "in the way")
			if _, err := call(t.Context(), c); deployments.CodeOf(err) != deployments.CodeConflict ||
				err.Error() != "in the way" {
				t.Errorf("an error of the service came back as %s: %v", deployments.CodeOf(err), err)
			}
		})
	}
}

// wantFull reports the fields of a request that this test does not set.
func wantFull(t *testing.T, arg any) {
	t.Helper()
	v := reflect.ValueOf(arg)
	if v.Kind() != reflect.Struct {
		return
	}
	// Authority, Lease, Submitted, Profile and Trace are set on the other side; a request has only some of the others.
	elsewhere := []string{"Authority", "Lease", "Submitted", "Profile", "Trace", "Targets", "Excludes", "ExcludeProtected",
		"IgnoreProtect", "RunProgram", "ClearPendingCreates", "TrySettle", "Imports", "Variables", "Plan", "Settle"}
	switch arg.(type) {
	case deployments.Schedule: // of the times, a schedule has one, and no check removes; the rest is told
		elsewhere = append(elsewhere, "Cron", "At", "RemoveStack", "Note", "Created", "Next", "Last")
	case deployments.EditRequest: // it names resources instead
		elsewhere = append(elsewhere, "All")
	case deployments.Webhook:
		elsewhere = append(elsewhere, "Created")
	case deployments.Token:
		elsewhere = append(elsewhere, "Created", "Used", "Damaged", "Origin", "Limit", // a derived one has no more
			"Member", "Organization", "Grant")
	case deployments.Caller: // the edge names it: the local user
		elsewhere = append(elsewhere, "Member", "Made", "Identity", "TokensOnly")
	case deployments.Trust:
		elsewhere = append(elsewhere, "Created", "Damaged")
	}
	for i := range v.NumField() {
		if name := v.Type().Field(i).Name; v.Field(i).IsZero() && !slices.Contains(elsewhere, name) {
			t.Errorf("the test does not set %s of %T", name, arg)
		}
	}
}

func fullEdit() deployments.EditRequest {
	return deployments.EditRequest{
		Stack: dev, Edit: deployments.EditRename, Resources: []string{aURN}, ID: "i", Name: "m", Force: true,
		Dependents: true, Forget: true, DryRun: true, BaseVersion: &three, Secrets: passphrase, NewSecrets: passphrase,
		Initiator: "ann",
	}
}
