//go:build unix

package attack

import (
	"net/http"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
)

// linksInHome leaves links to directories of the system in HOME, where the service hides or opens files: nobody's
// programs may find the system's directories empty, or others' opened, after that.
func linksInHome(t *testing.T, f *field) {
	sandboxed(t)
	tool, found := f.script(t, "homely", `
for name in .aws .azure .kube .config .docker .ssh .npmrc .pulumi .local; do
	ln -sfn /usr "$HOME/$name" && echo "left $name" >> $FOUND
done
ls /usr/bin/env >> $FOUND`)
	for range 2 {
		if end := tool.Run(t, "up", "--yes", "--skip-preview"); strings.Contains(end.Said(), "no such file") {
			t.Errorf("the update says %s", end.Said())
		}
		if said := found(); !strings.Contains(said, "/usr/bin/env") {
			t.Errorf("the program finds no /usr: %s", said)
		}
	}
	f.restart(t)
}

// pipeForTheService leaves pipes and links where the service has files of its own in a temporary directory, and has it
// started again.
func pipeForTheService(t *testing.T, f *field) {
	sandboxed(t)
	tool, found := f.script(t, "plumber", `
for dir in "${TMPDIR:-/tmp}" /tmp /var/tmp; do
	mkdir -p "$dir/deployctl-worker-zzz" && mkfifo "$dir/deployctl-worker-zzz/in-use"
	mkdir -p "$dir/deployctl-worker-yyy" && ln -s /etc/nologin-of-a-program "$dir/deployctl-worker-yyy/in-use"
done`)
	tool.Run(t, "up", "--yes", "--skip-preview")
	found()
	f.restart(t)
}

// restart stops the service and starts it again.
func (f *field) restart(t *testing.T) {
	t.Helper()
	f.Deployctl(f.Dir).Must(t, "dev", "stop")
	f.Start(t)
}

// askedMembers asks, as the admin of another organization, for members that are there and that are not.
func askedMembers(t *testing.T, f *field) {
	a := f.apart()
	tool := &harness.Tool{Path: a.tool.Path, Dir: t.TempDir(), Env: a.Env}
	tool.Must(t, "member", "add", "erin", "--role", "viewer", "--organization", "org")
	rival := strings.TrimSpace(tool.Must(t, "token", "create", "asker", "--role", "admin", "--organization", "rival"))
	for _, method := range []string{http.MethodGet, http.MethodDelete, http.MethodPatch} {
		answers := map[string]bool{}
		for _, name := range []string{"erin", "nobody"} {
			status, text := f.says(t, method, "/api/orgs/org/members/"+name, "token "+rival, `{"role":"admin"}`)
			if status/100 == 2 {
				t.Errorf("%s of %s is answered %d: %s", method, name, status, text)
			}
			answers[http.StatusText(status)+strings.ReplaceAll(text, name, "NAME")] = true
		}
		if len(answers) != 1 {
			t.Errorf("%s tells who is a member: %v", method, answers)
		}
	}
}
