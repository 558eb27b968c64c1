// Package auditfile writes entries of the audit log in the formats that other tools read: CSV and CEF.
package auditfile

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// columns are the header of CSV.
var columns = []string{"time", "request", "organization", "member", "token", "identity", "peer", "method", "stack",
	"subject", "secrets", "code", "error", "repeated"}

// CSV writes entries as CSV, with a header. A cell that a spreadsheet would take for a formula begins with an
// apostrophe: callers choose some of the texts.
func CSV(w io.Writer, entries []deployments.AuditEntry) error {
	out := csv.NewWriter(w)
	if err := out.Write(columns); err != nil {
		return err
	}
	for _, e := range entries {
		row := []string{e.Time.UTC().Format(time.RFC3339Nano), e.Request, e.Organization, e.Member, e.Token, e.Identity,
			e.Peer, e.Method, e.Stack, e.Subject, strconv.FormatBool(e.Secrets), string(e.Code), e.Error,
			strconv.Itoa(e.Repeated)}
		for i, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				row[i] = "'" + cell
			}
		}
		if err := out.Write(row); err != nil {
			return err
		}
	}
	out.Flush()
	return out.Error()
}

// The severities of the Common Event Format, from 0 to 10.
const (
	severityRead, severitySecrets, severityRefused = 3, 5, 7
)

var (
	escapeHeader = strings.NewReplacer(`\`, `\\`, `|`, `\|`, "\n", " ", "\r", " ")
	escapeValue  = strings.NewReplacer(`\`, `\\`, `=`, `\=`, "\n", `\n`, "\r", `\r`)
)

// CEF writes entries in ArcSight's Common Event Format, a line each.
func CEF(w io.Writer, entries []deployments.AuditEntry) error {
	for _, e := range entries {
		if _, err := io.WriteString(w, cefLine(e)+"\n"); err != nil {
			return err
		}
	}
	return nil
}

func cefLine(e deployments.AuditEntry) string {
	severity, outcome := severityRead, "success"
	if e.Secrets {
		severity = severitySecrets
	}
	if e.Code != "" {
		severity, outcome = severityRefused, string(e.Code)
	}
	method := escapeHeader.Replace(e.Method)
	line := fmt.Sprintf("CEF:0|deployctl|deployctl|1|%s|%s|%d|rt=%d", method, method, severity, e.Time.UnixMilli())
	for _, field := range []struct{ name, value string }{
		{"externalId", e.Request}, {"suser", e.Member}, {"suid", e.Token}, {"src", hostOf(e.Peer)},
		{"outcome", outcome}, {"reason", e.Error}, {"cs1Label", "organization"}, {"cs1", e.Organization},
		{"cs2Label", "stack"}, {"cs2", e.Stack}, {"cs3Label", "subject"}, {"cs3", e.Subject},
		{"cs4Label", "identity"}, {"cs4", e.Identity},
	} {
		if field.value != "" {
			line += " " + field.name + "=" + escapeValue.Replace(field.value)
		}
	}
	return line
}

// hostOf returns the host of HOST:PORT.
func hostOf(address string) string {
	if i := strings.LastIndexByte(address, ':'); i > 0 {
		return strings.Trim(address[:i], "[]")
	}
	return address
}
