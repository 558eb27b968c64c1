package access

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/auditfile"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/urfave/cli/v2"
)

// AuditCommand returns deployctl audit.
func AuditCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "audit", Usage: "show the audit log: who did what",
		Description: "Shows the entries of one organization, oldest first. --organization '*' shows every " +
			"organization that you administer, " +
			"and entries without an organization, such as calls with a wrong token.",
		Flags: console.Common(console.JSONFlag,
			&cli.StringFlag{Name: "since", Value: "7d",
				Usage: "show what was done since `TIME`, such as 2006-01-02T15:04:05Z, or in the last 12h or 90d"},
			&cli.StringFlag{Name: "format", Usage: "print as `FORMAT`: table, json, csv or cef", Value: formatTable},
			&cli.StringFlag{Name: "user", Usage: "show only the member, token or identity of this `NAME`"},
			&cli.StringFlag{Name: "stack", Aliases: []string{"s"},
				Usage: "show only entries about this `STACK`, or ORG/PROJECT/STACK"}),
		Action: console.Action(s, runAudit),
	}
}

// The formats of the audit log.
const (
	formatTable = "table"
	formatJSON  = "json"
	formatCSV   = "csv"
	formatCEF   = "cef"
)

// AuditFormats are the values of --format of deployctl audit.
var AuditFormats = []string{formatTable, formatJSON, formatCSV, formatCEF}

func runAudit(ctx context.Context, s *console.Session) error {
	format := s.Flags.String("format")
	if s.Flags.Bool("json") {
		format = formatJSON
	}
	if !slices.Contains(AuditFormats, format) {
		return deployments.Errorf(deployments.CodeInvalid, "--format takes table, json, csv or cef, not %q", format)
	}
	since, err := console.Moment("since", s.Flags.String("since"))
	if err != nil {
		last, err := console.Duration("since", s.Flags.String("since"))
		if err != nil {
			return deployments.Errorf(deployments.CodeInvalid, "--since takes a time such as 2006-01-02T15:04:05Z, or a "+
				"duration such as 12h or 7d, not %q", s.Flags.String("since"))
		}
		since = time.Now().Add(-last)
	}
	query := deployments.AuditQuery{
		Organization: s.Settings.Get(settings.Organization), Since: since,
		User: s.Flags.String("user"), Stack: s.Flags.String("stack"),
	}
	if strings.Count(query.Stack, "/") == 1 {
		return deployments.Errorf(deployments.CodeInvalid, "two parts are ORG/STACK, and %q may be meant as PROJECT/STACK: "+
			"write all three parts, such as %s/%s", query.Stack, deployments.DefaultOrganization, query.Stack)
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	entries := []deployments.AuditEntry{}
	err = s.Service.Audit(ctx, query, func(e deployments.AuditEntry) error {
		entries = append(entries, e)
		return nil
	})
	if err != nil {
		return err
	}
	switch format {
	case formatJSON:
		return s.SayJSON(entries)
	case formatCSV:
		return auditfile.CSV(s.Out, entries)
	case formatCEF:
		return auditfile.CEF(s.Out, entries)
	}
	return s.SayTable(auditRows(entries, query.Organization == deployments.AnyOrganization))
}

// auditRows returns the audit log as a table. It has a column for the organization only if several are shown.
func auditRows(entries []deployments.AuditEntry, several bool) [][]string {
	rows := [][]string{{"TIME", "WHO", "FROM", "WHAT", "ORGANIZATION", "STACK", "ABOUT", "RESULT"}}
	for _, e := range entries {
		rows = append(rows, []string{console.When(e.Time), whoText(e), e.Peer, e.Method, e.Organization, e.Stack,
			aboutText(e),
			resultText(e)})
	}
	if several {
		return rows
	}
	for i := range rows {
		rows[i] = slices.Delete(rows[i], 4, 5)
	}
	return rows
}

func whoText(e deployments.AuditEntry) string {
	switch {
	case e.Token == "":
		return "unknown"
	case e.Identity != "":
		return fmt.Sprintf("%s (%s)", e.Identity, e.Token)
	case e.Member != "":
		return fmt.Sprintf("%s (%s)", e.Member, e.Token)
	}
	return e.Token
}

func aboutText(e deployments.AuditEntry) string {
	if e.Secrets {
		return "secrets shown " + e.Subject
	}
	return e.Subject
}

func resultText(e deployments.AuditEntry) string {
	text := "ok"
	if e.Code != "" {
		text = string(e.Code)
	}
	if e.Repeated > 0 {
		text += fmt.Sprintf("; %d rejected calls before it", e.Repeated)
	}
	return text
}
