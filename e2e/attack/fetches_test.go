//go:build unix

package attack

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
)

// witness is a server that looks up who asks it.
type witness struct {
	mu    sync.Mutex
	asked map[string]string // by what was asked for: the user namespace and the name of the process that asked
}

func (w *witness) ServeHTTP(answer http.ResponseWriter, r *http.Request) {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	namespace, name := peer(r.RemoteAddr, local.String())
	w.mu.Lock()
	w.asked[strings.Trim(r.URL.Path, "/")] = namespace + " " + name
	w.mu.Unlock()
	answer.WriteHeader(http.StatusForbidden)
}

// peer returns the user namespace and the name of the process that has the end at address of a connection over IPv4 to
// server. The same port may have left a closed connection to another server behind, which is no process's.
func peer(address, server string) (namespace, name string) {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return "", err.Error()
	}
	from, to := inTable(address), inTable(server)
	socket := "no connection from " + from + " to " + to
	for line := range strings.Lines(string(table)) {
		if x := strings.Fields(line); len(x) > 9 && x[1] == from && x[2] == to {
			socket = "socket:[" + x[9] + "]"
		}
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*") // the pattern is well-formed
	for _, file := range files {
		if target, err := os.Readlink(file); err != nil || target != socket {
			continue
		}
		process := filepath.Dir(filepath.Dir(file))
		namespace, _ := os.Readlink(filepath.Join(process, "ns", "user"))
		arguments, _ := os.ReadFile(filepath.Join(process, "cmdline"))
		name, _, _ := strings.Cut(string(arguments), "\x00")
		return namespace, name
	}
	return "", "no process with " + socket
}

// inTable returns an address of IPv4 as /proc/net/tcp has it.
func inTable(address string) string {
	x, err := netip.ParseAddrPort(address)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%08X:%04X", binary.LittleEndian.Uint32(x.Addr().AsSlice()), x.Port())
}

// fetches names a server as an asset, as an archive, as what an object of S3 holds, and as an S3 endpoint: whoever asks
// it is a process of the program's sandbox, with its user, network and limits, and not the service.
func fetches(t *testing.T, f *field) {
	sandboxed(t)
	outside, err := os.Readlink("/proc/self/ns/user")
	harness.Must(t, err)
	w := &witness{asked: map[string]string{}}
	server := httptest.NewServer(w)
	defer server.Close()
	const signature = "4dabf18193072939515e22adb298388d"
	const asset, archive = "c44067f5952c0a294b673a41bacd8c17", "0def7320c3a5731c473e5ecbe6d01bc7"
	for what, step := range map[string]string{
		"asset": "fake:index:Auto, properties: {settings: {file: {" + signature + ": " + asset + ", uri: '" + server.URL +
			"/asset'}}}",
		"archive.zip": "fake:index:Auto, properties: {settings: {file: {" + signature + ": " + archive + ", uri: '" +
			server.URL + "/archive.zip'}}}",
		"content": "'deployctl:s3:Object', properties: {bucket: loot, key: it, source: {" + signature + ": " + asset +
			", hash: '" + strings.Repeat("0", 64) + "', uri: '" + server.URL + "/content'}}",
		"loot": "'deployctl:s3:Bucket', properties: {name: loot}",
	} {
		tool := f.project(t, "fetches-"+strings.TrimSuffix(what, ".zip"), "packages: [{name: fake, version: 0.1.0}]\n"+
			"steps:\n  - {register: thing, type: "+step+"}\n", "FAKECLOUD_ENDPOINT="+f.cloud.URL())
		if what == "loot" {
			for key, value := range map[string]string{"s3Endpoint": server.URL, "s3AccessKey": "id",
				"s3SecretKey": "secret"} {
				tool.Must(t, "config", "set", "deployctl:"+key, value)
			}
		}
		if end := tool.Run(t, "up", "--yes", "--skip-preview"); end.Code == 0 {
			t.Errorf("%s: the update succeeds: %s", what, end.Said())
		}
		w.mu.Lock()
		namespace, name, _ := strings.Cut(w.asked[what], " ")
		w.mu.Unlock()
		if namespace == "" || namespace == outside || !strings.HasPrefix(name, "deployctl-digest") &&
			!strings.HasPrefix(name, "pulumi-resource-deployctl") {
			t.Errorf("%s is asked for by %q in %q; the service is in %q", what, name, namespace, outside)
		}
	}
}

// serviceBucket has a program use the embedded S3 server, which it may, and the service's own bucket, which it may not.
func serviceBucket(t *testing.T, f *field) {
	tool := f.project(t, "own-bucket", `
steps:
  - {register: mine, type: 'deployctl:s3:Bucket', properties: {name: of-a-program, publicRead: true}}
  - {register: page, type: 'deployctl:s3:Object', properties: {bucket: "${mine.name}", key: page, content: text}}
`)
	tool.Expect(t, harness.Changes{"create": 3}, "up")
	tool.Expect(t, harness.Changes{"delete": 3}, "destroy")
	for name, c := range map[string]struct{ step, refusal string }{
		"writes": {"'deployctl:s3:Object', properties: {bucket: deployctl, key: planted, content: forged}", "403"},
		"reads":  {"'deployctl:s3:Object', properties: {bucket: deployctl, key: keys/ring.json, content: x}", "403"},
		"takes":  {"'deployctl:s3:Bucket', properties: {name: deployctl}", "was not made by this stack"},
	} {
		thief := f.project(t, "bucket-"+name, "steps:\n  - {register: thing, type: "+c.step+"}\n")
		end := thief.Run(t, "up", "--yes", "--skip-preview")
		if end.Code == 0 || !strings.Contains(end.Said(), c.refusal) {
			t.Errorf("%s: the update ends with %d: %s", name, end.Code, end.Said())
		}
	}
	if _, err := os.Stat(filepath.Join(f.objects(t), "planted")); err == nil {
		t.Error("it has put an object into the service's bucket")
	}
}
