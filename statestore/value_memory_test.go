package statestore

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// dense is an object whose values take a hundred times the memory of its text.
func dense(n int) string { return `{"a":[` + strings.Repeat(`{"":0},`, n) + `0]}` }

func tooLarge(t *testing.T, what string, err error) {
	t.Helper()
	if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), "at most") {
		t.Errorf("%s is answered %v", what, err)
	}
}

func TestWhatCostsFarMoreThanItsTextIsNotWritten(t *testing.T) {
	s := newInside(t, fresh)
	costly, state := dense(200_000), func(member, value string) string {
		return strings.Replace(string(stateWith(fresh, `{}`).Deployment), `"metadata":{}`,
			`"metadata":{},"`+member+`":`+value, 1)
	}
	resource := `{"urn":"urn:pulumi:made::web::t:m:T::b","type":"t:m:T","outputs":` + costly + `}`
	for what, deployment := range map[string]string{
		"a resource":          string(stateWith(fresh, costly).Deployment),
		"a pending operation": state("pending_operations", `[{"type":"creating","resource":`+resource+`}]`),
		"what is no resource": state("extensions", `{"a":`+costly+`}`),
		"many pending operations": state("pending_operations", `[`+strings.Repeat(`{"type":"creating"},`,
			deployments.MaxClientResources)+`{}]`),
		"many plugins": strings.Replace(state("a", `0`), `"magic"`, `"plugins":[`+strings.Repeat(`{},`, 200_000)+
			`{}],"magic"`, 1),
	} {
		in := apitype.UntypedDeployment{Version: 3, Deployment: json.RawMessage(deployment)}
		text, err := json.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		tooLarge(t, what+" of a lease", checkWritten(t.Context(), fresh, text))
		_, err = s.ImportAsIs(t.Context(), Exchange{Stack: fresh}, in)
		tooLarge(t, what+" of the stock CLI", err)
		_, err = s.Import(t.Context(), Exchange{Stack: fresh}, in)
		tooLarge(t, what+" of deployctl", err)
	}
	for what, entry := range map[string]string{"a state": `"state":` + resource, "an operation": `"operation":{"type":` +
		`"creating","resource":` + resource + `}`} {
		for _, err := range parseJournal(fresh, []byte(`[{"kind":1,"sequenceID":1,`+entry+`}]`)) {
			tooLarge(t, what+" of a journal", err)
		}
	}
	if _, err := elements([]byte(`[` + strings.Repeat(`0,`, 100_000) + `0]`)); err == nil {
		t.Error("100,000 numbers are resources")
	}
	if err := checkWritten(t.Context(), fresh, []byte(`{"version":3,"deployment":`+string(stateWith(fresh,
		dense(50_000)).Deployment)+`}`)); err != nil {
		t.Errorf("a resource that is dense and small is answered %v", err)
	}
}

func TestAStateThatNamesNoProviderIsExportedWithoutItsValues(t *testing.T) {
	s := newInside(t, fresh)
	state := stateWith(fresh, dense(50_000))
	if _, err := s.ImportAsIs(t.Context(), Exchange{Stack: fresh}, state); err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := s.Export(t.Context(), Exchange{Stack: fresh}, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	size := uint64(len(state.Deployment))
	if took := after.TotalAlloc - before.TotalAlloc; took > 20*size {
		t.Errorf("the export of %d bytes takes %d", size, took)
	}
	if !strings.Contains(string(got.Deployment), dense(50_000)) ||
		!strings.Contains(string(got.Deployment), `"secrets_providers":{"type":"service"`) {
		t.Errorf("it is exported as %.300s", got.Deployment)
	}
}
