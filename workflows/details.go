package workflows

import (
	"fmt"
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
		out.Running = append(out.Running, deployments.RunningStep{URN: string(s.URN), Step: string(s.Step), Op: s.Op})
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

// table is a picture of an update at work, in Markdown.
func table(p engine.Progress, parked int) string {
	var b strings.Builder
	b.WriteString("| | |\n|---|---|\n")
	for _, kind := range append(shownKinds[:len(shownKinds):len(shownKinds)], engine.StepSame) {
		if n := p.Done[string(kind)]; n > 0 {
			fmt.Fprintf(&b, "| %s | %d |\n", kind, n)
		}
	}
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
