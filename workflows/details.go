package workflows

import (
	"fmt"
	"net/url"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
)

// progress handles the progress query. Attempts and their errors are known only to the server; the caller adds them.
func (r *run) progress() (deployments.Progress, error) {
	if r.core == nil {
		return deployments.Progress{}, nil
	}
	p := r.core.Progress()
	out := deployments.Progress{Done: p.Done, Cancelling: p.Cancelled}
	for _, s := range p.Running {
		out.Running = append(out.Running, deployments.RunningStep{URN: string(s.URN), Step: string(s.Step), Op: s.Op,
			Ahead: s.Ahead})
	}
	for _, u := range p.Waiting {
		out.Waiting = append(out.Waiting, string(u))
	}
	return out, nil
}

// showProgress writes the progress to the workflow's details, which the Web UI shows.
func (r *run) showProgress(ctx workflow.Context) {
	if details := progressTable(r.core.Progress(), len(r.waitingForWorker)); details != workflow.GetCurrentDetails(
		ctx) {
		workflow.SetCurrentDetails(ctx, details)
	}
}

// linkToRun writes a link to the Run into the Update's details: a child workflow reports only its end to its parent.
func linkToRun(ctx workflow.Context, u deployments.UpdateName) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Its progress is on the page of [its "+
		"Run](/namespaces/%s/workflows/%s).",
		workflow.GetInfo(ctx).Namespace, url.PathEscape(deployments.RunWorkflowID(u))))
}

// showResult writes the result of the update to the workflow's details.
func showResult(ctx workflow.Context, r engine.Result) {
	var b strings.Builder
	writeCounts(&b, r.Changes)
	fmt.Fprintf(&b, "\n**%s**", r.Status)
	if r.Error != "" {
		fmt.Fprintf(&b, ": %s", r.Sentence())
	}
	if r.Pending > 0 {
		fmt.Fprintf(&b, "\n\n%d operations have an unknown outcome; the next update settles them.", r.Pending)
	}
	workflow.SetCurrentDetails(ctx, clip(b.String(), detailsBytes))
}

// writeCounts writes the head of a table, and how often each kind of step was done.
func writeCounts(b *strings.Builder, done map[string]int) {
	b.WriteString("| | |\n|---|---|\n")
	for _, kind := range append(countedKinds[:len(countedKinds):len(countedKinds)], engine.StepSame) {
		if n := done[string(kind)]; n > 0 {
			fmt.Fprintf(b, "| %s | %d |\n", kind, n)
		}
	}
}

// progressTable shows a running update as Markdown.
func progressTable(p engine.Progress, waitingForWorker int) string {
	var b strings.Builder
	writeCounts(&b, p.Done)
	fmt.Fprintf(&b, "| running | %d |\n", len(p.Running))
	if p.Queued > 0 {
		fmt.Fprintf(&b, "| queued | %d |\n", p.Queued)
	}
	if waitingForWorker > 0 {
		fmt.Fprintf(&b, "| waiting for a worker | %d |\n", waitingForWorker)
	}
	for _, u := range p.Waiting {
		fmt.Fprintf(&b, "\n**%s waits:** it is unknown whether it was created. Answer with `deployctl resolve`.\n",
			snapshot.NameOf(u))
	}
	for _, n := range p.NotReady {
		fmt.Fprintf(&b, "\n**%s is not ready:** it waits for %s.\n", snapshot.NameOf(n.URN), n.For)
	}
	if len(p.Running) > 0 {
		b.WriteString("\n| running | type | name |\n|---|---|---|\n")
	}
	for i, s := range p.Running {
		row := fmt.Sprintf("| %s | %s | %s |\n", s.Step, s.URN.Type(), strings.ReplaceAll(s.URN.Name(), "|", "\\|"))
		if b.Len()+len(row) > detailsBytes-100 {
			fmt.Fprintf(&b, "\nand %d more\n", len(p.Running)-i)
			break
		}
		b.WriteString(row)
	}
	return clip(b.String(), detailsBytes)
}
