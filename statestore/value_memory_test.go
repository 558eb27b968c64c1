package statestore

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/journal"
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
		for _, err := range journal.Parse([]byte(`[{"kind":1,"sequenceID":1,`+entry+`}]`), journalChecks(fresh)) {
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

// TestMoreReferencesThanAWorkerCanHoldAreNotWritten has short references, which take far more than their text.
func TestMoreReferencesThanAWorkerCanHoldAreNotWritten(t *testing.T) {
	resource := func(n int, header string) string {
		return fmt.Sprintf(`{"urn":"urn:pulumi:dev::web::t:m:T::r%d","type":"t:m:T",%s}`, n, header)
	}
	list := func(n int) string { return `["urn:pulumi:dev::web::t:m:T::r0"` + strings.Repeat(`,""`, n-1) + `]` }
	many := func(header string) string { // four of a quarter of a million
		return resource(0, header) + "," + resource(1, header) + "," + resource(2, header) + "," + resource(3, header)
	}
	const quarter = deployments.MaxClientReferences / 4
	states := map[string]string{
		"dependencies":         `"dependencies":` + list(quarter),
		"in another case":      `"Dependencies":` + list(quarter),
		"propertyDependencies": `"propertyDependencies":{"a":` + list(quarter-1) + `}`,
		"empty ones":           `"propertyDependencies":{"a":[]` + strings.Repeat(`,"":[]`, quarter-1) + `}`,
		"aliases":              `"aliases":` + list(quarter),
		"values, too":          `"outputs":{"v":[1,2,3]},"ignoreChanges":` + list(quarter),
	}
	for what, header := range states {
		for more, resources := range map[bool]string{false: many(header), true: many(header) + "," +
			resource(4, `"dependencies":[""]`)} {
			j := newJournaling(t)
			write := map[string]error{
				"a deployment": j.store.Leases.WriteSnapshot(t.Context(), j.lease, 1,
					[]byte(`{"version":3,"deployment":{"resources":[`+resources+`]}}`)),
				"a journal": j.store.Leases.WriteJournal(t.Context(), j.lease,
					[]byte(`[{"sequenceID":0,"kind":5,"newSnapshot":{"resources":[`+resources+`]}}]`)),
			}
			for where, err := range write {
				if !more && err != nil || more && (!errors.Is(err, deployments.ErrTooLarge) ||
					!strings.Contains(err.Error(), "1000001 references")) {
					t.Errorf("%s with %s (one more: %v) is answered %v", where, what, more, err)
				}
			}
		}
	}
}

// TestAJournalWhoseStateHasTooManyReferencesEndsItsUpdate writes as many entries as its journal may have, each with
// half of what a state may have: those that fit are kept.
func TestAJournalWhoseStateHasTooManyReferencesEndsItsUpdate(t *testing.T) {
	j := newJournaling(t)
	entry := func(n int) json.RawMessage {
		return json.RawMessage(strings.Replace("["+made(n, 1)+"]", `"outputs"`,
			`"aliases":[""`+strings.Repeat(`,""`, deployments.MaxClientReferences/2-1)+`],"outputs"`, 1))
	}
	for n := range 10 {
		j.ok(j.store.Leases.WriteJournal(t.Context(), j.lease, entry(1+n)))
	}
	if err := j.store.Leases.WriteJournal(t.Context(), j.lease, entry(11)); !errors.Is(err, deployments.ErrTooLarge) {
		t.Errorf("more than a journal may have is answered %v", err)
	}
	w, err := j.store.FinishLease(t.Context(), j.lease.Update, "")
	if !errors.Is(err, deployments.ErrTooLarge) || w.Version != 1 || w.Resources != 3 {
		t.Errorf("it has written %+v, %v", w, err)
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
