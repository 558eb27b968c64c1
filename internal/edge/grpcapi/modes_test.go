package grpcapi

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
)

// TestWhichMethodsGoOnInAMode is the table once more, in words: what is not named here is refused in read-only mode if
// it changes or uploads something, and taken in maintenance.
func TestWhichMethodsGoOnInAMode(t *testing.T) {
	want := map[inModes]string{
		begins: "Deployments/Submit Schedules/RunSchedule",
		goesOn: "Deployments/Cancel Deployments/Resolve Modes/SetMode Stacks/Recover",
	}
	got := map[inModes][]string{}
	for _, full := range slices.Sorted(maps.Keys(rules)) {
		r := rules[full]
		got[r.modes] = append(got[r.modes], shortMethod(full))
		if reads := r.does != changes && r.does != uploads; reads && r.modes != writes {
			t.Errorf("%s reads, and its rule says what becomes of it in a mode", full)
		} else if (r.work() == deployments.WorkReads) != (reads || r.modes == goesOn) {
			t.Errorf("%s is work of the kind %d", full, r.work())
		}
	}
	for modes, methods := range want {
		if have := strings.Join(got[modes], " "); have != methods {
			t.Errorf("%d:\n%s\nwant\n%s", modes, have, methods)
		}
	}
}

func TestEachMethodIsRefusedInTheModesThatItsRuleNames(t *testing.T) {
	mode := deployments.Mode{Kind: deployments.ModeMaintenance, Reason: "Temporal is upgraded",
		Until: time.Now().Add(time.Hour)}
	known := callers()
	known["operator"] = deployments.Caller{Token: "operator", Authority: deployments.Everything()}
	connection := served(t, Config{Authority: known}, reached, func(e *edge) {
		e.mode = func(context.Context) (deployments.Mode, error) { return mode, nil }
	})
	for _, kind := range []deployments.ModeKind{deployments.ModeMaintenance, deployments.ModeReadOnly} {
		mode.Kind = kind
		for full, r := range rules {
			if r.scope == open {
				continue
			}
			m := messageOf(t, full)
			for _, path := range r.touches {
				assign(m.ProtoReflect(), path, protoreflect.ValueOfMessage(wire.FromStack(own).ProtoReflect()))
			}
			s := invoke(t, connection, full, "operator", m)
			if s.Code() == codes.InvalidArgument {
				continue // nothing else is in the message
			}
			refused := s.Code() == codes.FailedPrecondition && strings.Contains(s.Message(), "Temporal is upgraded")
			if want := mode.Refuse(r.work(), time.Now()) != nil; refused != want {
				t.Errorf("%s in the mode %s is answered %v", shortMethod(full), kind, s)
			}
		}
	}
}

func TestOnlyAnOperatorSetsAModeAndItEndsInEachMode(t *testing.T) {
	known := callers()
	known["whole"] = deployments.Caller{Token: "whole", Authority: deployments.Authority{Grants: [][]deployments.Grant{{
		{Role: admin, Organization: "acme"}}}}}
	known["operator"] = deployments.Caller{Token: "operator", Authority: deployments.Everything()}
	service := memory.New()
	connection := serving(t, Config{Authority: known, Service: service, Auditor: service}, nil)
	set := &api.SetModeRequest{Mode: wire.FromMode(deployments.Mode{Kind: deployments.ModeReadOnly,
		Reason: "the bucket moves", Until: time.Now().Add(time.Hour)})}
	for _, token := range []string{"viewer", "admin", "whole"} {
		if s := invoke(t, connection, api.Modes_SetMode_FullMethodName, token, set); s.Code() != codes.PermissionDenied {
			t.Errorf("%s sets a mode: %v", token, s)
		}
	}
	for range 2 { // the second time in the mode
		if s := invoke(t, connection, api.Modes_SetMode_FullMethodName, "operator", set); s != nil {
			t.Fatal(s)
		}
	}
	if m, err := service.Mode(t.Context()); err != nil || m.Kind != deployments.ModeReadOnly || m.By != "operator" {
		t.Errorf("the mode is %+v, %v", m, err)
	}
	for _, token := range []string{"viewer", "operator"} {
		ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer "+token)
		if m, err := api.NewModesClient(connection).GetMode(ctx, &api.GetModeRequest{}); err != nil ||
			m.GetMode().GetReason() != "the bucket moves" {
			t.Errorf("%s does not learn of the mode: %v, %v", token, m, err)
		}
	}
	create := &api.CreateStackRequest{Stack: wire.FromStack(own)}
	if s := invoke(t, connection, api.Stacks_CreateStack_FullMethodName, "operator",
		create); s.Code() != codes.FailedPrecondition {
		t.Errorf("a stack is created: %v", s)
	}
	if s := invoke(t, connection, api.Modes_SetMode_FullMethodName, "operator", &api.SetModeRequest{}); s != nil {
		t.Fatal(s)
	}
	if s := invoke(t, connection, api.Stacks_CreateStack_FullMethodName, "operator", create); s != nil {
		t.Errorf("no stack is created after the mode: %v", s)
	}
	var recorded []string
	for _, e := range service.Audited {
		if e.Method == "Modes/SetMode" && e.Code == "" {
			recorded = append(recorded, e.Subject)
		}
	}
	if len(recorded) != 3 || !strings.Contains(recorded[0], "kind=read-only") ||
		!strings.Contains(recorded[0], "reason=the bucket moves") {
		t.Errorf("the audit log has %q", recorded)
	}
}
