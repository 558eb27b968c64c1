package auditfile

import (
	"encoding/csv"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

var entry = deployments.AuditEntry{
	Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Request: "R", Organization: "acme", Token: "ci",
	Identity: "=cmd|'/c calc'!A1", Peer: "[::1]:5", Method: "Stacks/Export", Stack: "shop/dev",
	Subject: "a=b\nCEF:0|x", Secrets: true, Code: deployments.CodeForbidden, Error: "no, \"not\"\nthis",
}

func TestACellOfCSVIsNoFormulaAndKeepsItsText(t *testing.T) {
	var text strings.Builder
	if err := CSV(&text, []deployments.AuditEntry{entry}); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(text.String())).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[0]) != len(rows[1]) {
		t.Fatalf("it is %q, %v", rows, err)
	}
	got := map[string]string{}
	for i, name := range rows[0] {
		got[name] = rows[1][i]
	}
	for name, want := range map[string]string{"identity": "'" + entry.Identity, "error": entry.Error, "secrets": "true",
		"time": "2026-01-02T03:04:05Z", "stack": "shop/dev", "code": "forbidden"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
}

func TestAnEntryIsOneLineOfCEFWhateverItsTexts(t *testing.T) {
	var text strings.Builder
	if err := CEF(&text, []deployments.AuditEntry{entry}); err != nil {
		t.Fatal(err)
	}
	want := `CEF:0|deployctl|deployctl|1|Stacks/Export|Stacks/Export|7|rt=1767323045000 externalId=R suid=ci src=::1 ` +
		`outcome=forbidden reason=no, "not"\nthis cs1Label=organization cs1=acme cs2Label=stack cs2=shop/dev ` +
		`cs3Label=subject cs3=a\=b\nCEF:0|x cs4Label=identity cs4=\=cmd|'/c calc'!A1` + "\n"
	if text.String() != want {
		t.Errorf("it is\n%s\nwant\n%s", text.String(), want)
	}
}
