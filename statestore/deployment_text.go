package statestore

import (
	"encoding/json"

	"github.com/deployctl/deployctl/internal/values/rawjson"
)

// deploymentText is deployment JSON. What is around the deployment may be a text of its own, whose member deployment is
// left empty: a whole would be a copy.
type deploymentText struct{ around, deployment []byte }

func (t deploymentText) size() int { return len(t.around) + len(t.deployment) }

// of returns the deployment.
func (t deploymentText) of() []byte {
	if t.deployment != nil {
		return t.deployment
	}
	return rawjson.Member(t.around, "deployment")
}

// check reports why a text is no JSON.
func (t deploymentText) check() error {
	data := t.around
	if t.deployment != nil && json.Valid(data) {
		data = t.deployment
	}
	if json.Valid(data) {
		return nil
	}
	return jsonError(data, json.Unmarshal(data, &struct{}{}))
}
