package grpcapi

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/programs"
)

// quotaCallers are callers of two organizations, and an operator.
func quotaCallers() tokensByText {
	known := callers()
	for token, g := range map[string]deployments.Grant{
		"whole": {Role: admin, Organization: "acme"}, "foreign": {Role: admin, Organization: "evil"},
		"writer": {Role: deployer, Organization: "acme"},
	} {
		known[token] = deployments.Caller{Token: token,
			Authority: deployments.Authority{Grants: [][]deployments.Grant{{g}}}}
	}
	known["operator"] = deployments.Caller{Token: "operator", Authority: deployments.Everything()}
	return known
}

func TestOnlyAnOperatorSetsAQuotaAndOnlyThoseOfTheOrganizationSeeIt(t *testing.T) {
	s := memory.New()
	connection := serving(t, Config{Authority: quotaCallers(), Service: s, Auditor: s}, nil)
	set := &api.SetQuotaRequest{Organization: "acme", Set: map[string]int64{"stacks": 3, "updates": 2},
		Removed: []string{"versions"}}
	for _, token := range []string{"viewer", "deployer", "admin", "whole", "foreign", "writer", "nothing"} {
		got := invoke(t, connection, api.Quotas_SetQuota_FullMethodName, token, set)
		if got.Code() != codes.PermissionDenied {
			t.Errorf("%s sets a quota: %v", token, got)
		}
	}
	if got := invoke(t, connection, api.Quotas_SetQuota_FullMethodName, "operator", set); got != nil {
		t.Fatal(got)
	}
	unknown := &api.SetQuotaRequest{Organization: "acme", Set: map[string]int64{"cores": 3}}
	if got := invoke(t, connection, api.Quotas_SetQuota_FullMethodName, "operator",
		unknown); got.Code() != codes.InvalidArgument {
		t.Errorf("a limit that the service does not know is answered %v", got)
	}
	if err := s.SetQuota(t.Context(), deployments.QuotaChange{Organization: "evil",
		Set: deployments.Quota{deployments.LimitStacks: 1}}); err != nil {
		t.Fatal(err)
	}
	for token, want := range map[string]string{"viewer": "acme", "writer": "acme", "whole": "acme", "foreign": "evil",
		"operator": "acme evil"} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		list := func(organization string) (names []string, err error) {
			m, err := api.NewQuotasClient(connection).ListQuotas(ctx, &api.ListQuotasRequest{Organization: organization})
			for _, q := range m.GetQuotas() {
				names = append(names, q.GetOrganization())
			}
			return names, err
		}
		if names, err := list(""); err != nil || strings.Join(names, " ") != want {
			t.Errorf("%s sees the quotas of %v, %v", token, names, err)
		}
		for _, name := range []string{"acme", "evil"} {
			names, err := list(name)
			if may := strings.Contains(want, name); may != (err == nil) || may != slices.Equal(names, []string{name}) {
				t.Errorf("%s asks for %s and gets %v, %v", token, name, names, err)
			}
		}
	}
	var recorded []string
	for _, e := range s.Audited {
		if e.Method == "Quotas/SetQuota" {
			recorded = append(recorded, fmt.Sprint(e.Token, " ", e.Organization, " ", e.Code, " ", e.Subject))
		}
	}
	if want := "operator acme  set=stacks:3,updates:2 removed=versions"; len(recorded) != 9 ||
		!slices.Contains(recorded, want) {
		t.Errorf("the audit log has %q", recorded)
	}
}

// bounding is the API over a store, without Temporal.
func bounding(t *testing.T, q deployments.Quota) (call func(full, token string, m proto.Message) (codes.Code, string),
	store *statestore.Store) {
	t.Helper()
	store, err := statestore.New(&bucket.Memory{}, statestore.Options{Master: make([]byte, 32)})
	if err == nil {
		err = store.Organizations.SetQuota(t.Context(), deployments.QuotaChange{Organization: "acme", Set: q})
	}
	if err != nil {
		t.Fatal(err)
	}
	connection := serving(t, Config{Authority: quotaCallers(), Service: service.New(nil, store, service.Readers{})}, nil)
	return func(full, token string, m proto.Message) (codes.Code, string) {
		t.Helper()
		s := invoke(t, connection, full, token, m)
		return s.Code(), s.Message()
	}, store
}

func TestOfManyCreatesAtOnceTheAPITakesAsManyAsTheQuotaAllows(t *testing.T) {
	call, store := bounding(t, deployments.Quota{deployments.LimitStacks: 3})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			name := deployments.StackName{Organization: "acme", Project: "shop", Stack: fmt.Sprint("s", i)}
			code, said := call(api.Stacks_CreateStack_FullMethodName, "writer", &api.CreateStackRequest{
				Stack: wire.FromStack(name)})
			if code != codes.OK && (code != codes.ResourceExhausted ||
				!strings.Contains(said, "has 3 stacks, and its quota allows 3: remove one")) {
				t.Errorf("a create ends with %s: %s", code, said)
			}
		})
	}
	all.Wait()
	if list, err := store.ListStacks(t.Context(), "acme", ""); err != nil || len(list) != 3 {
		t.Errorf("there are %d stacks, %v", len(list), err)
	}
	other := &api.CreateStackRequest{Stack: wire.FromStack(deployments.StackName{Organization: "evil", Project: "p",
		Stack: "s"})}
	if code, said := call(api.Stacks_CreateStack_FullMethodName, "foreign", other); code != codes.OK {
		t.Errorf("another organization is refused with %s: %s", code, said)
	}
}

func TestTheAPIRefusesWhatIsBeyondAQuotaWithASentence(t *testing.T) {
	call, store := bounding(t, deployments.Quota{deployments.LimitWorkerMinutes: 0, deployments.LimitUploadBytes: 4})
	if err := store.CreateStack(t.Context(), own, nil); err != nil {
		t.Fatal(err)
	}
	stack, file := wire.FromStack(own), []byte("12345")
	manifest := &api.Manifest{Files: []*api.File{{Path: "Pulumi.yaml", Digest: programs.Digest(file), Size: 5}}}
	for full, c := range map[string]struct {
		m    proto.Message
		want string
	}{
		api.Deployments_Submit_FullMethodName: {&api.SubmitRequest{Stack: stack, RequestId: "r", Kind: "refresh"},
			"has used 0 minutes of the workers, and its quota allows 0 within 30 days"},
		api.Bundles_PutFile_FullMethodName: {&api.PutFileRequest{Stack: stack, Digest: programs.Digest(file), Chunk: file},
			"is sent a program of 5 bytes, and its quota allows 4 bytes"},
		api.Bundles_Missing_FullMethodName:     {&api.MissingRequest{Stack: stack, Manifest: manifest}, "allows 4 bytes"},
		api.Bundles_PutManifest_FullMethodName: {&api.PutManifestRequest{Stack: stack, Manifest: manifest}, "allows 4 bytes"},
	} {
		if code, said := call(full, "writer", c.m); code != codes.ResourceExhausted || !strings.Contains(said, c.want) ||
			!strings.Contains(said, "ask an operator of the service for more (`deployctl quota set acme --") {
			t.Errorf("%s ends with %s: %s", full, code, said)
		}
	}
}
