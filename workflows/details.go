package workflows

import (
	"fmt"
	"net/url"
	"strings"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// progress answers the query. Attempts and their errors are known to the server only; whoever asks adds them.
func (r *run) progress() (deployments.Progress, error) {
	if r.core == nil {
		return deployments.Progress{}, nil
	}
	p := r.core.Progress()
	out := deployments.Progress{Done: p.Done}
	for _, s := range p.Running {
		out.Running = append(out.Running, deployments.RunningStep{URN: string(s.URN), Step: string(s.Step), Op: s.Op,
			Ahead: s.Ahead})
	}
	for _, u := range p.Waiting {
		out.Waiting = append(out.Waiting, string(u))
	}
	return out, nil
}

// show puts the progress where the Web UI finds it.
func (r *run) show(ctx workflow.Context) {
	if details := table(r.core.Progress(), len(r.parked)); details != workflow.GetCurrentDetails(ctx) {
		workflow.SetCurrentDetails(ctx, details)
	}
}

// lead says on the Update's page where its progress is: a child tells its parent only of its end.
func lead(ctx workflow.Context, u deployments.UpdateName) {
	workflow.SetCurrentDetails(ctx, fmt.Sprintf("Its progress is on the page of [its "+
		"Run](/namespaces/%s/workflows/%s).",
		workflow.GetInfo(ctx).Namespace, url.PathEscape(deployments.RunWorkflowID(u))))
}

// conclude shows what the update came to.
func conclude(ctx workflow.Context, r engine.Result) {
	var b strings.Builder
	count(&b, r.Changes)
	fmt.Fprintf(&b, "\n**%s**", r.Status)
	if r.Error != "" {
		fmt.Fprintf(&b, ": %s", r.Error)
	}
	if r.Pending > 0 {
		fmt.Fprintf(&b, "\n\nOf %d steps nobody knows whether they happened.", r.Pending)
	}
	workflow.SetCurrentDetails(ctx, clip(b.String(), detailsBytes))
}

// count begins a table with how often each kind of step was done.
func count(b *strings.Builder, done map[string]int) {
	b.WriteString("| | |\n|---|---|\n")
	for _, kind := range append(shownKinds[:len(shownKinds):len(shownKinds)], engine.StepSame) {
		if n := done[string(kind)]; n > 0 {
			fmt.Fprintf(b, "| %s | %d |\n", kind, n)
		}
	}
}

// table is a picture of an update at work, in Markdown.
func table(p engine.Progress, parked int) string {
	var b strings.Builder
	count(&b, p.Done)
	fmt.Fprintf(&b, "| running | %d |\n", len(p.Running))
	if p.Queued > 0 {
		fmt.Fprintf(&b, "| queued | %d |\n", p.Queued)
	}
	if parked > 0 {
		fmt.Fprintf(&b, "| waiting for a worker | %d |\n", parked)
	}
	for _, u := range p.Waiting {
		fmt.Fprintf(&b, "\n**%s waits for an answer:** was it created? `deployctl resolve`\n", u.Name())
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
