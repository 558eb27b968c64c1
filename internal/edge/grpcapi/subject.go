package grpcapi

import (
	"fmt"
	"slices"
	"strings"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// about fills an entry of the audit log from the first message.
func (r rule) about(m proto.Message, e *deployments.AuditEntry) {
	if names := r.stacks(m); len(names) > 0 {
		e.Organization, e.Stack = names[0].Organization, names[0].Project+"/"+names[0].Stack
	} else {
		e.Organization = organizationOf(m)
		if scope := scopeOf(m); wire.ToScope(scope).OfStack() {
			e.Stack = scope.GetProject() + "/" + scope.GetStack()
		}
	}
	if deployments.ValidateName("organization", e.Organization) != nil {
		e.Organization = ""
	}
	e.Secrets = r.secrets && (r.raised == "" || r.isRaised(m))
	e.Subject = fields(m, r.subject)
}

// organizationOf returns the organization that a first message without stacks is about; empty if it names none.
func organizationOf(m proto.Message) string {
	switch m := m.(type) {
	case *api.CreateTokenRequest:
		return wire.ToNewToken(m).Within()
	case *api.GrantMemberRequest:
		return m.GetGrant().GetOrganization()
	case *api.GrantTeamRequest:
		return m.GetGrant().GetOrganization()
	case *api.PutTrustRequest:
		return m.GetTrust().GetOrganization()
	case interface{ GetOrganization() string }: // RemoveMember, ReadAudit, and others about one organization
		return m.GetOrganization()
	}
	return scopeOf(m).GetOrganization()
}

// fields returns those fields of a message that are set, as NAME=VALUE with a space between.
func fields(m proto.Message, paths []string) string {
	var set []string
	for _, path := range paths {
		if text := shown(at(m.ProtoReflect(), path)); text != "" && text != "false" && text != "0" {
			set = append(set, path[strings.LastIndexByte(path, '.')+1:]+"="+text)
		}
	}
	return strings.Join(set, " ")
}

// shown returns the text of a value: of a list as A,B, of a map as A:1,B:2 in the order of its keys.
func shown(value protoreflect.Value) string {
	var parts []string
	switch value := value.Interface().(type) {
	case protoreflect.List:
		for i := range value.Len() {
			parts = append(parts, fmt.Sprint(value.Get(i).Interface()))
		}
	case protoreflect.Map:
		value.Range(func(key protoreflect.MapKey, one protoreflect.Value) bool {
			parts = append(parts, key.String()+":"+fmt.Sprint(one.Interface()))
			return true
		})
		slices.Sort(parts)
	default:
		return fmt.Sprint(value)
	}
	return strings.Join(parts, ",")
}
