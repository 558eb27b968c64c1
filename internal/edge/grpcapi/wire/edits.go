package wire

import (
	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
)

// FromEdit writes an edit of a state.
func FromEdit(r deployments.EditRequest) *api.EditStateRequest {
	return &api.EditStateRequest{
		Stack: FromStack(r.Stack), Edit: string(r.Edit), Resources: r.Resources, All: r.All, Id: r.ID, Name: r.Name,
		Force: r.Force, Dependents: r.Dependents, Forget: r.Forget, DryRun: r.DryRun,
		BaseVersion: FromVersion(r.BaseVersion), Secrets: FromSecrets(r.Secrets), Initiator: r.Initiator,
		NewSecrets: FromSecrets(r.NewSecrets),
	}
}

// ToEdit reads an edit of a state.
func ToEdit(m *api.EditStateRequest) deployments.EditRequest {
	return deployments.EditRequest{
		Stack: ToStack(m.GetStack()), Edit: deployments.EditKind(m.GetEdit()), Resources: m.GetResources(),
		All: m.GetAll(), ID: m.GetId(), Name: m.GetName(), Force: m.GetForce(), Dependents: m.GetDependents(),
		Forget: m.GetForget(), DryRun: m.GetDryRun(), BaseVersion: ToVersion(m.BaseVersion),
		Secrets: ToSecrets(m.GetSecrets()), NewSecrets: ToSecrets(m.GetNewSecrets()), Initiator: m.GetInitiator(),
	}
}

// FromMove writes a move of resources.
func FromMove(r deployments.MoveRequest) *api.MoveStateRequest {
	return &api.MoveStateRequest{
		From: FromStack(r.From), To: FromStack(r.To), Resources: r.Resources, Parents: r.Parents, Forget: r.Forget,
		DryRun: r.DryRun, BaseVersion: FromVersion(r.BaseVersion), FromSecrets: FromSecrets(r.FromSecrets),
		ToSecrets: FromSecrets(r.ToSecrets), Initiator: r.Initiator,
	}
}

// ToMove reads a move of resources.
func ToMove(m *api.MoveStateRequest) deployments.MoveRequest {
	return deployments.MoveRequest{
		From: ToStack(m.GetFrom()), To: ToStack(m.GetTo()), Resources: m.GetResources(), Parents: m.GetParents(),
		Forget: m.GetForget(), DryRun: m.GetDryRun(), BaseVersion: ToVersion(m.BaseVersion),
		FromSecrets: ToSecrets(m.GetFromSecrets()), ToSecrets: ToSecrets(m.GetToSecrets()), Initiator: m.GetInitiator(),
	}
}
