package display

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// label returns a resource's type and name: "deployctl:s3:Bucket site".
func label(r *projection.Row) string {
	return safetext.Visible(strings.TrimPrefix(shortType(r.Type)+" "+r.Name, " "))
}

// clipLabel is label in a number of columns. The name is what tells resources apart: of a type that does not fit, the
// beginning is left out, and all of it where hardly anything would be left of the name.
func clipLabel(r *projection.Row, columns int) string {
	whole, name := label(r), safetext.Visible(r.Name)
	if width(whole) <= columns {
		return whole
	}
	short := shortType(r.Type)
	for found := true; found; {
		if _, short, found = strings.Cut(short, ":"); found {
			if text := safetext.Visible(short) + " " + name; width(text) <= columns {
				return text
			}
		}
	}
	if room := columns - (width(whole) - width(name)); room >= leastName && width(name) > columns {
		return clip(whole, columns)
	}
	return clip(name, columns)
}

// leastName is the room for a name from which its type stands before it.
const leastName = 12

// notesText returns the notes of a row in brackets, after a space.
func notesText(r *projection.Row) string {
	if len(r.Notes) == 0 {
		return ""
	}
	return " (" + safetext.Visible(strings.Join(r.Notes, ", ")) + ")"
}

// shortType removes the middle of a type token if it only repeats the type's name: "aws:s3/bucket:Bucket" becomes
// "aws:s3:Bucket".
func shortType(token string) string {
	parts := strings.Split(token, ":")
	if len(parts) != 3 {
		return token
	}
	module, name, found := strings.Cut(parts[1], "/")
	if found && strings.EqualFold(name, parts[2]) {
		return parts[0] + ":" + module + ":" + parts[2]
	}
	return token
}

// diagLines formats a diagnostic; all lines but the first are indented.
func diagLines(d projection.Diag, paint painter) []string {
	lines := strings.Split(d.Message, "\n")
	switch d.Severity {
	case "error":
		lines[0] = strings.TrimPrefix(lines[0], "error: ")
		lines[0] = paint.paint(red, "error: ") + lines[0]
	case "warning":
		lines[0] = strings.TrimPrefix(lines[0], "warning: ")
		lines[0] = paint.paint(yellow, "warning: ") + lines[0]
	default:
		return lines
	}
	for i := range lines[1:] {
		lines[i+1] = "  " + lines[i+1]
	}
	return lines
}

// summaryLines returns the summary of an update.
func summaryLines(s *projection.State, o Options, paint painter) []string {
	end := *s.End
	if end.Kind != "" {
		o.Kind = string(end.Kind) // a client that attached by version learns the kind only here
	}
	out := policyLines(s, paint)
	if counts := append(countLines(end, o, paint), undone(s, o, paint)...); len(counts) > 0 {
		out = append(append(out, paint.paint(bold, "Resources:")), counts...)
	}
	if end.Error != "" && !reported(s, end.Error) {
		out = append(out, diagLines(projection.Diag{Severity: "error", Message: safetext.Message(end.Error)}, paint)...)
	}
	return append(out, verdict(s, o, paint))
}

// reported reports whether a diagnostic has the message already; that of a resource stands without its name.
func reported(s *projection.State, message string) bool {
	message = safetext.Message(message)
	said := func(message string) func(projection.Diag) bool {
		return func(d projection.Diag) bool { return d.Severity == "error" && strings.Contains(d.Message, message) }
	}
	return slices.ContainsFunc(s.Diags, said(message)) || slices.ContainsFunc(s.Rows, func(r *projection.Row) bool {
		return slices.ContainsFunc(r.Diags, said(strings.TrimPrefix(message, safetext.Message(r.Type+" "+r.Name+": "))))
	})
}

// countLines returns a line with the number of resources for each kind of change.
func countLines(end deployments.UpdateInfo, options Options, paint painter) []string {
	ops, changes := slices.Clone(summaryOrder), end.Changes
	if options.Kind == "refresh" {
		changes = found(changes)
	}
	for _, op := range slices.Sorted(maps.Keys(changes)) {
		if !slices.Contains(ops, apitype.OpType(op)) {
			ops = append(ops, apitype.OpType(op))
		}
	}
	var out []string
	for _, op := range ops {
		n := changes[string(op)]
		if n == 0 {
			continue
		}
		o := operationOf(op)
		out = append(out, fmt.Sprintf("  %s %d %s", paint.paint(o.color, o.sign), n, countWord(op, options.Preview)))
	}
	return out
}

// countWord is the word for what was done, or is to be done, to the resources that are counted.
func countWord(op apitype.OpType, preview bool) string {
	o := operationOf(op)
	switch op {
	case apitype.OpSame, projection.OpGone, projection.OpDrifted: // the words of a preview are the same
		return o.past
	}
	if preview {
		return "to " + o.plan
	}
	return o.past
}

// found renames the changes of a refresh, which updates and deletes nothing: "drifted" and "gone".
func found(changes map[string]int) map[string]int {
	names := map[string]string{string(apitype.OpUpdate): string(projection.OpDrifted),
		string(apitype.OpDelete): string(projection.OpGone)}
	out := map[string]int{}
	for op, n := range changes {
		if name, ok := names[op]; ok {
			op = name
		}
		out[op] += n
	}
	return out
}

// verdict returns the last line.
func verdict(s *projection.State, o Options, paint painter) string {
	end, what := *s.End, o.what()
	took := elapsed(end.Took())
	text := ""
	switch end.Status {
	case deployments.StatusSucceeded:
		text = paint.paint(green, what+" succeeded")
		if !o.Preview && !changed(end.Changes) && !s.Changed() && !s.Noted() {
			text += ", nothing changed,"
		}
	case deployments.StatusCancelled:
		text = paint.paint(yellow, what+" cancelled")
	default:
		text = paint.paint(red, what+" "+end.Status)
	}
	text += " in " + took
	if !o.Preview {
		text += paint.paint(dim, " ("+end.Update.String()+")")
	}
	return text
}

func changed(changes map[string]int) bool {
	for op, n := range changes {
		if n > 0 && op != string(apitype.OpSame) && op != string(apitype.OpRefresh) && op != string(apitype.OpRead) {
			return true
		}
	}
	return false
}

// elapsed formats a duration: "0.4s", "12s", "3m05s", "2h07m".
func elapsed(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Second:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", d.Seconds()), ".0") + "s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	default:
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
}

// waitLine returns the question to the user about a create with an undecidable outcome.
func waitLine(s *projection.State, urn string) string {
	name := urn
	if row, ok := s.ByURN[urn]; ok {
		name = label(row)
	}
	return fmt.Sprintf("was %s created? Look, and answer: deployctl resolve '%s' --created ID, or --absent", name,
		safetext.Message(urn))
}

// queueLine returns the position of a queued update; "" if the update runs.
func queueLine(p deployments.Progress) string {
	if p.Position == 0 {
		return ""
	}
	ahead := "those before it"
	if p.Behind != nil {
		ahead = Holder(*p.Behind)
	}
	return fmt.Sprintf("waiting for %s; position %d", ahead, p.Position)
}

// Holder describes a running update that others wait for: its version, its initiator and its start.
func Holder(u deployments.UpdateInfo) string {
	text := "update " + u.Update.Version
	if u.Initiator != "" {
		text += " of " + safetext.Message(u.Initiator)
	}
	if u.Lease != nil {
		text += " by the stock CLI"
	}
	if !u.Started.IsZero() {
		text += ", running since " + u.Started.Local().Format(time.TimeOnly)
	}
	switch {
	case len(u.Waiting) > 0:
		text += ", which waits for an answer (deployctl resolve)"
	case u.Cancelling:
		text += ", which is being cancelled"
	}
	return text
}

// LostClient says what to do if the client is gone that executes an update itself; "" if the service executes it.
func LostClient(u *deployments.UpdateInfo) string {
	if u == nil || u.Lease == nil || u.Cancelling {
		return ""
	}
	text := "The stock CLI executes update " + u.Update.Version
	if l := u.Lease; !l.Heard.IsZero() {
		text += ", and was last heard of at " + l.Heard.Local().Format(time.TimeOnly)
	}
	text += ". If it is gone, deployctl cancel " + u.Update.String() + " frees the stack at once"
	if l := u.Lease; !l.Ends.IsZero() {
		text += "; else it is free at " + l.Ends.Local().Format(time.TimeOnly)
	}
	return text + "."
}
