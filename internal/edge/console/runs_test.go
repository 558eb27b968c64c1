package console

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// running has the stack have an update that goes on.
func (b *bench) running(version string, events ...apitype.EngineEvent) {
	b.service.infos[version] = deployments.UpdateInfo{Kind: "up", Status: deployments.StatusRunning, Started: began}
	var log []deployments.WatchEvent
	for i := range events {
		log = append(log, deployments.WatchEvent{Event: &events[i]})
	}
	b.service.logs[version] = append(log,
		deployments.WatchEvent{Progress: &deployments.Progress{Running: []deployments.RunningStep{
			{URN: urnOf("pkg:index:Thing", "slow"), Step: "create", Attempt: 3, LastError: "the cloud is busy",
				Started: began}}}})
}

func TestAnUpdateThatRunsIsFollowedOnceForAllReadersUntilNobodyLooks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.service.watching = make(chan string, 10)
		b.running("1", ran("slow", "create", 0, 0, apitype.StepEventMetadata{})[:1]...)
		viewer := b.login("viewer")
		for range 5 {
			page := b.shows(http.StatusOK, "/console/acme/shop/dev/updates/1", viewer)
			for _, text := range []string{`data-refresh="2"`, "attempt 3", "the cloud is busy", `<meta http-equiv="refresh"`} {
				if !strings.Contains(page, text) {
					t.Errorf("the page does not have %q: %s", text, page)
				}
			}
			time.Sleep(unreadFor / 2)
		}
		if len(b.service.watching) != 1 || <-b.service.watching != "begin 1" {
			t.Error("the update is not followed once")
		}
		time.Sleep(3 * unreadFor)
		synctest.Wait()
		if got := len(b.service.watching); got != 1 || <-b.service.watching != "end 1" {
			t.Error("an update is followed that nobody looks at")
		}
		b.shows(http.StatusOK, "/console/acme/shop/dev/updates/1", viewer)
		if <-b.service.watching != "begin 1" {
			t.Error("the update is not followed again")
		}
		b.stop()
		synctest.Wait()
		if len(b.service.watching) != 1 || <-b.service.watching != "end 1" {
			t.Error("an update is followed after the end of the service")
		}
	})
}

func TestSoManyUpdatesAreFollowedAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		viewer := b.login("viewer")
		b.service.watching = make(chan string, 10*mostRuns)
		for i := range 2 * mostRuns {
			version := fmt.Sprint(i + 1)
			b.running(version)
			b.shows(http.StatusOK, "/console/acme/shop/dev/updates/"+version, viewer)
		}
		synctest.Wait()
		begun, ended := 0, 0
		for range len(b.service.watching) {
			if strings.HasPrefix(<-b.service.watching, "begin") {
				begun++
			} else {
				ended++
			}
		}
		if begun != 2*mostRuns || begun-ended > mostRuns {
			t.Errorf("%d are followed, of %d", begun-ended, begun)
		}
		b.stop()
		synctest.Wait()
	})
}

func TestAPageOfAnUpdateDoesNotChangeWhileItsLogGrows(t *testing.T) {
	b := newBench(t)
	b.running("1", ran("slow", "create", 0, 0, apitype.StepEventMetadata{})[:1]...)
	viewer := b.login("viewer")
	b.shows(http.StatusOK, "/console/acme/shop/dev/updates/1", viewer)
	k := b.console.runs.all[0]
	growing := make(chan struct{})
	go func() {
		defer close(growing)
		for i := range 300 {
			urn := urnOf("pkg:index:Thing", fmt.Sprint("r", i))
			events := append(ran(fmt.Sprint("r", i), "update", 1, 2, apitype.StepEventMetadata{}),
				apitype.EngineEvent{PolicyEvent: &apitype.PolicyEvent{ResourceURN: urn, PolicyName: "p", PolicyPackName: "pack"}},
				apitype.EngineEvent{PolicyRemediationEvent: &apitype.PolicyRemediationEvent{ResourceURN: urn,
					PolicyName: fmt.Sprint(i), PolicyPackName: "pack"}}, said(1, "info", urn, "said"))
			for _, e := range events {
				k.apply(deployments.WatchEvent{Event: &e})
			}
		}
	}()
	for range 20 {
		b.shows(http.StatusOK, "/console/acme/shop/dev/updates/1", viewer)
		b.shows(http.StatusOK, "/console/acme/shop/dev/updates/1/log", viewer)
	}
	<-growing
}

func TestTheLogOfAnUpdateThatHasEndedIsReadOnce(t *testing.T) {
	b := newBench(t)
	b.service.watching = make(chan string, 10)
	b.succeeded("1", said(1, "info", "", "hello"))
	viewer := b.login("viewer")
	for range 3 {
		page := b.shows(http.StatusOK, "/console/acme/shop/dev/updates/1", viewer)
		if !strings.Contains(page, "hello") || strings.Contains(page, "data-refresh") {
			t.Errorf("the page is %s", page)
		}
	}
	if len(b.service.watching) != 2 {
		t.Errorf("the log is read %d times", len(b.service.watching))
	}
}

func TestAnUpdateOfALaterStackOfTheNameIsAnotherOne(t *testing.T) {
	b := newBench(t)
	viewer := b.login("viewer")
	b.succeeded("1", said(1, "info", "", "of the first"))
	b.shows(http.StatusOK, "/console/acme/shop/dev/updates/1", viewer)
	b.succeeded("1", said(1, "info", "", "of the second"))
	info := b.service.infos["1"]
	info.Started = began.Add(time.Second)
	b.service.infos["1"] = info
	if page := b.shows(http.StatusOK, "/console/acme/shop/dev/updates/1", viewer); !strings.Contains(page,
		"of the second") {
		t.Errorf("the page is %s", page)
	}
}

func TestWhatIsKeptOfALogIsBounded(t *testing.T) {
	k := newTold()
	for i := range mostSteps + 500 {
		for _, e := range ran(fmt.Sprint("r", i), "create", 1, 2, apitype.StepEventMetadata{}) {
			k.apply(deployments.WatchEvent{Event: &e})
		}
	}
	if len(k.state.Rows) != mostSteps || k.omitted != 1000 {
		t.Errorf("%d steps are kept, and %d events omitted", len(k.state.Rows), k.omitted)
	}
	long := strings.Repeat("x", 100_000)
	for i := range 2 * mostMessages {
		e := said(1, "info", "", "short")
		if i < mostMessages/10 {
			e = said(1, "info", "", long)
		}
		k.apply(deployments.WatchEvent{Event: &e})
	}
	if k.bytes > messageBytes || len(k.messages) > mostMessages || k.dropped+len(k.messages) != 2*mostMessages ||
		len(k.state.Diags) != 0 {
		t.Errorf("%d messages with %d bytes are kept, and %d dropped", len(k.messages), k.bytes, k.dropped)
	}
	want := mostSteps*stepCost + k.bytes + 100*len(k.messages)
	for _, row := range k.state.Rows {
		want += 2 * len(row.URN)
	}
	if k.size != want {
		t.Errorf("it is said to take %d bytes, not %d", k.size, want)
	}
}

func TestLargeUpdatesAreForgottenForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		viewer := b.login("viewer")
		b.service.watching = make(chan string, 10)
		for i := range 4 {
			version := fmt.Sprint(i + 1)
			b.running(version)
			b.shows(http.StatusOK, "/console/acme/shop/dev/updates/"+version, viewer)
			k := b.console.runs.all[len(b.console.runs.all)-1]
			k.mu.Lock()
			k.told.size = mostKept / 2
			k.mu.Unlock()
			e := said(1, "info", "", "more")
			if !k.apply(deployments.WatchEvent{Event: &e}) || k.apply(deployments.WatchEvent{Event: &e}) {
				t.Error("it is not said once that an update has grown")
			}
			b.console.runs.bound()
		}
		synctest.Wait()
		if n := len(b.console.runs.all); n != 1 || b.console.runs.all[0].update.Version != "4" {
			t.Errorf("%d updates are kept", n)
		}
		if n := len(b.service.watching); n != 4+3 {
			t.Errorf("%d of 4 updates are followed", 2*4-n)
		}
		b.stop()
		synctest.Wait()
	})
}

func TestOfAnUpdateThatIsTooLargeNoMoreChangesAreKept(t *testing.T) {
	k := newTold()
	for i := range 2 {
		for _, e := range ran(fmt.Sprint("r", i), "update", 1, 2, apitype.StepEventMetadata{
			Old: &apitype.StepEventStateMetadata{Custom: true, Inputs: map[string]any{"size": "small"}},
			New: &apitype.StepEventStateMetadata{Custom: true, Inputs: map[string]any{"size": "large"}}}) {
			k.apply(deployments.WatchEvent{Event: &e})
		}
		k.size = mostTold
	}
	first, second := k.details[urnOf("pkg:index:Thing", "r0")], k.details[urnOf("pkg:index:Thing", "r1")]
	if len(first.changes) != 1 || first.more != 0 || len(second.changes) != 0 || second.more != 1 {
		t.Errorf("of the steps are kept %+v and %+v", first, second)
	}
}

// TestWhatIsLookedAtOfAnEventIsBounded has events as large as those that a client may write: each part of them is one.
func TestWhatIsLookedAtOfAnEventIsBounded(t *testing.T) {
	huge := strings.Repeat("x", 1<<20)
	paths, packs, hide := map[string]apitype.PropertyDiff{}, map[string]string{}, []resource.PropertyPath{}
	for i := range 10_000 {
		path := fmt.Sprintf("p%05d", i)
		paths[path], packs[path] = apitype.PropertyDiff{Kind: apitype.DiffAdd, InputDiff: true}, "1"
		hide = append(hide, resource.PropertyPath{path})
	}
	state := func(hide []resource.PropertyPath) *apitype.StepEventStateMetadata {
		return &apitype.StepEventStateMetadata{Custom: true, HideDiffs: hide, Inputs: map[string]any{"p00000": "shown"}}
	}
	step := apitype.StepEventMetadata{URN: "urn:pulumi:s::p::t::a", DetailedDiff: paths, Old: state(nil), New: state(nil)}
	got := cut(&apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: step},
		ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: step}, SummaryEvent: &apitype.SummaryEvent{PolicyPacks: packs}})
	if got.ResOutputsEvent != nil || len(got.ResourcePreEvent.Metadata.DetailedDiff) != mostPaths ||
		len(got.SummaryEvent.PolicyPacks) != mostPacks {
		t.Errorf("of the paths are left %d, and of the packs %d", len(got.ResourcePreEvent.Metadata.DetailedDiff),
			len(got.SummaryEvent.PolicyPacks))
	}
	step.New = state(hide)
	got = cut(&apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: step}})
	if len(got.ResourcePreEvent.Metadata.New.Inputs) != 0 {
		t.Error("what hides more than is looked at is shown")
	}
	for name, e := range map[string]apitype.EngineEvent{
		"of a message": {DiagnosticEvent: &apitype.DiagnosticEvent{URN: huge, Severity: "info"}},
		"of a step":    {ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: apitype.StepEventMetadata{URN: huge}}},
		"of an operation": {ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: apitype.StepEventMetadata{
			Op: apitype.OpType(huge)}}},
		"of a policy": {PolicyEvent: &apitype.PolicyEvent{PolicyName: huge}},
		"beside a message": {DiagnosticEvent: &apitype.DiagnosticEvent{},
			PolicyEvent: &apitype.PolicyEvent{ResourceURN: huge}},
		"of a remediation": {PolicyRemediationEvent: &apitype.PolicyRemediationEvent{PolicyPackName: huge}},
	} {
		if cut(&e) != nil {
			t.Errorf("a name %s may have any length", name)
		}
	}
	told := newTold()
	for range 50 {
		told.apply(deployments.WatchEvent{Event: &apitype.EngineEvent{DiagnosticEvent: &apitype.DiagnosticEvent{
			Severity: huge, Prefix: huge, Message: huge, Color: huge}}})
		told.apply(deployments.WatchEvent{Event: &apitype.EngineEvent{PolicyEvent: &apitype.PolicyEvent{Message: huge}}})
	}
	kept := len(told.messages[0].Severity) + len(told.messages[0].Text)
	if kept > mostText+mostName+100 || told.size < 50*mostText {
		t.Errorf("of a message are kept %d bytes, and of all are counted %d", kept, told.size)
	}
}
