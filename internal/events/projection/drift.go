package projection

import (
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Drift lists the resources that a refresh found to be other than their state says, in the order of the refresh. What
// no update would put right, by the word of the resource's provider, is not among them.
func (s *State) Drift() []deployments.DriftedResource {
	var drifted []deployments.DriftedResource
	for _, row := range s.Rows {
		if row.Op != OpGone && row.Op != OpDrifted || row.Phase != PhaseDone {
			continue
		}
		r := deployments.DriftedResource{URN: row.URN, Gone: row.Op == OpGone}
		for _, c := range row.Changes {
			r.Properties = append(r.Properties, deployments.DriftedProperty{Path: c.Path,
				Expected: valueText(c.Old), Actual: valueText(c.New)})
		}
		drifted = append(drifted, r)
	}
	return drifted
}

// valueText is a value as JSON; empty when there is none.
func valueText(value any) string {
	if value == nil {
		return ""
	}
	return FormatValue(value)
}

// DriftRows lists what drifted in columns: resource, property, what was expected, what is.
func DriftRows(drifted []deployments.DriftedResource) [][]string {
	var rows [][]string
	for _, r := range drifted {
		name := resourceName(r.URN)
		if r.Gone {
			rows = append(rows, []string{name, "", "it exists", "it is gone"})
		}
		for _, p := range r.Properties {
			expected, actual := safetext.Apart(orNothing(p.Expected), orNothing(p.Actual))
			rows = append(rows, []string{name, safetext.Visible(p.Path), expected, actual})
		}
	}
	return rows
}

func orNothing(text string) string {
	if text == "" {
		return "(nothing)"
	}
	return text
}

// resourceName names a resource by type and name.
func resourceName(id string) string {
	u, err := urn.Parse(id)
	if err != nil {
		return safetext.Visible(id)
	}
	return safetext.Visible(fmt.Sprintf("%s %s", u.Type(), u.Name()))
}

// markdownRows bounds the table that DriftMarkdown makes, cellWidth what is shown of a value in it.
const markdownRows, cellWidth = 50, 120

// DriftMarkdown tells what drifted in a table for a page that renders Markdown.
func DriftMarkdown(drifted []deployments.DriftedResource) string {
	if len(drifted) == 0 {
		return "Nothing has drifted."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "**Drifted resources: %d**\n\n| resource | property | expected | actual "+
		"|\n|---|---|---|---|\n", len(drifted))
	rows := DriftRows(drifted)
	for i, row := range rows {
		if i == markdownRows {
			fmt.Fprintf(&b, "\nand %d more: `deployctl drift status`\n", len(rows)-i)
			break
		}
		for _, cell := range row {
			if runes := []rune(cell); len(runes) > cellWidth {
				cell = string(runes[:cellWidth-1]) + "…"
			}
			fmt.Fprintf(&b, "| %s ", strings.ReplaceAll(cell, "|", "\\|"))
		}
		b.WriteString("|\n")
	}
	return b.String()
}
