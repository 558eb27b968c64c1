package pulumiapi

import (
	"bytes"
	"encoding/json"
	"strconv"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/deployctl/deployctl/statestore/stacksecrets"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// exportStack returns a stored deployment, the newest one by default.
func exportStack(c *call) (any, error) {
	version := 0
	var err error
	if text := c.PathValue("version"); text != "" {
		if version, err = strconv.Atoi(text); err != nil || version < 1 {
			return nil, deployments.Errorf(deployments.CodeInvalid, "%q is not the version of a stack", clean(text))
		}
		c.entry.Subject = "version=" + text
	}
	return c.export(version)
}

// exported is a deployment as the stock CLI reads it.
type exported struct {
	apitype.UntypedDeployment // as it is stored
	// section is the secrets provider as the stock CLI writes it; nil: it is that of the deployment.
	section json.RawMessage
}

// parts returns the JSON of the deployment, of which nothing large is a copy.
func (e exported) parts() ([][]byte, error) {
	deployment := [][]byte{e.Deployment}
	if e.section != nil {
		deployment = [][]byte{[]byte("{")}
		for name, value := range rawjson.Members(e.Deployment) {
			quoted, err := json.Marshal(name)
			if err != nil {
				return nil, err
			}
			if value = stacksecrets.WithBase64(value); name == secretsMember {
				value = e.section
			}
			if len(deployment) > 1 {
				deployment = append(deployment, []byte(","))
			}
			deployment = append(deployment, quoted, []byte(":"), value)
		}
		deployment = append(deployment, []byte("}"))
	}
	return rawjson.With(apitype.UntypedDeployment{Version: e.Version, Features: e.Features}, "deployment", deployment...)
}

// secretsMember is the member of a deployment that is its secrets provider.
const secretsMember = "secrets_providers"

// export returns a deployment as the stock CLI reads it; version 0 is the newest. That of a stack without a state is
// null: the CLI rejects an empty object. Whoever answers with a deployment has one of the places for that until the
// call ends.
func (c *call) export(version int) (e exported, err error) {
	release, err := c.edge.gate.HoldExport(c.Context(), c.party())
	c.release = append(c.release, release)
	if err != nil {
		return e, err
	}
	if version == 0 {
		head, err := c.edge.Service.Head(c.Context(), c.stack)
		if err != nil || head.Version == 0 {
			e.UntypedDeployment = apitype.UntypedDeployment{Version: apitype.DeploymentSchemaVersionCurrent,
				Deployment: json.RawMessage("null")}
			return e, err
		}
		version = head.Version
	}
	e.UntypedDeployment, err = c.edge.Service.Export(c.Context(), c.stack, version, deployments.SecretsProvider{}, false)
	if err == nil {
		e.section, err = c.clientSection(e.Deployment)
	}
	return e, err
}

// clientSection returns the secrets provider of a deployment as the stock CLI writes it, so that the CLI decrypts the
// secrets by the address at which it has logged in; nil: it is as it is stored.
func (c *call) clientSection(deployment json.RawMessage) (json.RawMessage, error) {
	var section *apitype.SecretsProvidersV1
	if raw := rawjson.Member(deployment, secretsMember); raw != nil {
		if err := json.Unmarshal(raw, &section); err != nil {
			return nil, err
		}
	}
	if section == nil || section.Type != deployments.SecretsService {
		return nil, nil
	}
	section, err := c.clientProvider()
	if err != nil {
		return nil, err
	}
	return json.Marshal(section)
}

// clientProvider returns the service's secrets provider of a stack as the stock CLI writes it.
func (c *call) clientProvider() (*apitype.SecretsProvidersV1, error) {
	state, err := json.Marshal(struct {
		URL     string `json:"url"`
		Owner   string `json:"owner"`
		Project string `json:"project"`
		Stack   string `json:"stack"`
	}{c.address(), c.stack.Organization, c.stack.Project, c.stack.Stack})
	return &apitype.SecretsProvidersV1{Type: deployments.SecretsService, State: state}, err
}

// address returns the address at which the client has called: that of a proxy, if there is one.
func (c *call) address() string {
	scheme := "http"
	if c.TLS != nil || c.Header.Get("X-Forwarded-Proto") == "https" {
		scheme = "https"
	}
	host := c.Host
	if forwarded := c.Header.Get("X-Forwarded-Host"); forwarded != "" {
		host = forwarded
	}
	return scheme + "://" + host
}

// stackOutputs returns the outputs of a stack as they are stored.
func stackOutputs(c *call) (any, error) {
	exported, err := c.export(0)
	if err != nil || isEmpty(exported.UntypedDeployment) {
		return rootOutputs{}, err
	}
	for r := range rawjson.Elements(rawjson.Member(exported.Deployment, "resources")) {
		var of struct{ Type, Parent string }
		if err := json.Unmarshal(r, &of); err != nil {
			return nil, err
		}
		if of.Type == string(resource.RootStackType) && of.Parent == "" {
			return exported.outputs(r), nil
		}
	}
	return rootOutputs{}, nil
}

// outputs returns the outputs of the root resource of a deployment.
func (e exported) outputs(root []byte) rootOutputs {
	if e.section == nil {
		return rootOutputs{rawjson.Member(root, "outputs"), rawjson.Member(e.Deployment, secretsMember)}
	}
	return rootOutputs{stacksecrets.WithBase64(rawjson.Member(root, "outputs")), e.section}
}

// rootOutputs is apitype.StackOutputsResponse, whose values nobody looks at.
type rootOutputs struct {
	Outputs json.RawMessage `json:"outputs,omitempty"`
	Secrets json.RawMessage `json:"secretsProviders,omitempty"`
}

func isEmpty(d apitype.UntypedDeployment) bool {
	text := bytes.TrimSpace(d.Deployment)
	return len(text) == 0 || string(text) == "null"
}

// importStack replaces a stack's deployment.
func importStack(c *call) (any, error) {
	data, err := c.text()
	if err != nil {
		return nil, err
	}
	d, err := c.untyped(data)
	if err != nil {
		return nil, err
	}
	if isEmpty(d) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "there is no deployment to import")
	}
	// All of the stack's resources may be dropped from the state if the caller has the role for that: the stock CLI has no
	// flag to confirm it.
	version, err := c.edge.Service.ImportAsIs(c.Context(), deployments.ImportRequest{Stack: c.stack, Deployment: d,
		Initiator: c.caller.Name(), Forget: c.caller.May(deployments.RoleAdmin, c.stack)})
	c.entry.Subject = "version=" + strconv.Itoa(version)
	return apitype.ImportStackResponse{UpdateID: strconv.Itoa(version)}, err
}

// untyped returns a deployment of a text, of which it is a part; without one it is empty.
func (c *call) untyped(text []byte) (d apitype.UntypedDeployment, err error) {
	d.Deployment, err = c.around(text, &d, "deployment")
	return d, err
}
