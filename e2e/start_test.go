package e2e

import (
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

func TestACheckFailsExactlyWhereAStartDoes(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	good, _ := h.parts(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	missing, empty, short := filepath.Join(t.TempDir(), "missing"), filepath.Join(t.TempDir(), "empty"),
		filepath.Join(t.TempDir(), "short")
	must(t, os.WriteFile(empty, []byte("\n"), 0o600))
	must(t, os.WriteFile(short, []byte("aGFsZg==\n"), 0o600))
	for _, c := range []struct {
		name, says string
		args       []string
		changes    []string
	}{
		{"the API off loopback without TLS", "is not on loopback", []string{"serve", "--listen", "0.0.0.0:0"}, nil},
		{"no certificate where it should be", "cannot use the service's certificate",
			[]string{"serve", "--tls-cert", missing, "--tls-key", missing}, nil},
		{"an address of the API that is taken", "cannot listen on " + taken.Addr().String(),
			[]string{"serve", "--listen", taken.Addr().String()}, nil},
		{"an address of health checks that is taken", "health-listen",
			[]string{"worker", "--health-listen", taken.Addr().String()}, nil},
		{"metrics off loopback without a token", "metrics need a token",
			[]string{"worker", "--metrics-listen", "0.0.0.0:0"}, nil},
		{"no token where it should be", "cannot read bootstrap-token-file",
			[]string{"serve", "--listen", porttest.Address(t), "--bootstrap-token-file", missing},
			[]string{"DEPLOYCTL_BOOTSTRAP_TOKEN="}},
		{"an organization that cannot be", "organization", []string{"worker", "--organization", "a/b"}, nil},
		{"a sandbox that cannot be", "sandbox", []string{"worker", "--sandbox-mode", "nowhere"}, nil},
		{"a limit that is none", "sandbox.memory", []string{"worker", "--sandbox-memory", "much"}, nil},
		{"no place for files of programs", "TMPDIR", []string{"worker"}, []string{"TMPDIR=" + missing}},
		{"an audit log that is kept for ever", "retention.audit-days",
			[]string{"serve", "--listen", porttest.Address(t), "--retention-audit-days", "-1"}, nil},
		{"a key file that is empty", empty + " (key-file, set by flag --key-file), is empty: restore the key",
			[]string{"worker", "--key-file", empty}, []string{"DEPLOYCTL_KEY="}},
		{"a key file without a key", "the content of the file " + short + " (key-file, set by flag --key-file) is not",
			[]string{"worker", "--key-file", short}, []string{"DEPLOYCTL_KEY="}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := h.in(t.TempDir(), slices.Concat(good, c.changes)...)
			p.fails(t, 1, []string{"failed   ", c.says, "the process could not start; failed checks: 1"},
				append(c.args, "--check")...)
			if r := p.run(t, c.args...); r.code == 0 || !strings.Contains(r.said(), c.says) {
				t.Errorf("a start ends with %d and says\n%s", r.code, r.said())
			}
		})
	}
}

func TestAStartTellsAllThatIsWrongAtOnce(t *testing.T) {
	t.Parallel()
	h := running(t)
	good, _ := h.parts(t)
	nobody := porttest.Address(t)
	h.in(t.TempDir(), slices.Concat(good, []string{"DEPLOYCTL_S3_BUCKET=", "DEPLOYCTL_KEY=short"})...).
		fails(t, 2, []string{"4 reasons", "is not on loopback", "32 bytes in base64", "retention.days",
			"set --s3-bucket"},
			"serve", "--listen", "0.0.0.0:0", "--retention-days", "0")
	h.in(t.TempDir(), slices.Concat(good, []string{"DEPLOYCTL_S3_BUCKET=elsewhere", "DEPLOYCTL_TEMPORAL_ADDRESS=" +
		nobody})...).
		fails(t, 2, []string{"2 reasons", "no bucket elsewhere", nobody + " cannot be reached"}, "worker")
}

// TestServeTakesNoClientsTokenForItsOwn plays the first days of a service, in a part of the bucket that nobody has used
// before.
func TestServeTakesNoClientsTokenForItsOwn(t *testing.T) {
	t.Parallel()
	h := running(t)
	good, _ := h.parts(t)
	file := filepath.Join(t.TempDir(), "token")
	must(t, os.WriteFile(file, []byte("of-a-client\n"), 0o600))
	listen := porttest.Address(t)
	fresh := slices.Concat(h.namespaced(t, good, "fresh"), []string{"DEPLOYCTL_S3_PREFIX=fresh/",
		"DEPLOYCTL_BOOTSTRAP_TOKEN="})
	serve := func(says string, env ...string) *ran {
		r := h.in(t.TempDir(), slices.Concat(fresh, env)...).start(t, "serve", "--listen", listen)
		r.says(t, "msg=serving")
		if !strings.Contains(r.said(), says) {
			t.Errorf("serve does not say %q but\n%s", says, r.said())
		}
		return r
	}
	end := func(r *ran) {
		r.interrupt(t)
		r.mustEnd(t, 0)
	}
	client := func(token string) *project {
		return h.in(t.TempDir(), "DEPLOYCTL_SERVER="+listen, "DEPLOYCTL_TOKEN="+token)
	}

	r := serve("start serve with --bootstrap-token-file FILE")
	client("").fails(t, 6, []string{"token-file"}, "stack", "ls", "--all")
	end(r)

	r = serve("meant for clients", "DEPLOYCTL_TOKEN_FILE="+file)
	end(r)

	r = serve("", "DEPLOYCTL_BOOTSTRAP_TOKEN=of-serve")
	admin := strings.TrimSpace(client("of-serve").must(t, "token", "create", "root", "--role", "admin",
		"--organization", "*"))
	end(r)

	must(t, os.WriteFile(file, []byte(admin), 0o600)) // the admin starts serve in the shell of a client
	r = serve("", "DEPLOYCTL_TOKEN_FILE="+file)
	client(admin).must(t, "stack", "ls", "--all")
	end(r)
}

func TestTheStockCLIFindsTheEmbeddedServiceWhereItHasLoggedInOnce(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	usual, err := net.Listen("tcp", "localhost:8080")
	if err == nil { // else somebody else has it, which is as good
		defer func() { _ = usual.Close() }()
	}
	h := newHome(t)
	p := h.in(t.TempDir())
	p.must(t, "dev", "--background")
	first := h.status(t)
	if first.PulumiAddress == "localhost:8080" {
		t.Fatal("it has a port that is taken")
	}
	if usual != nil {
		must(t, usual.Close())
	}
	p.must(t, "dev", "stop")
	p.must(t, "dev", "--background")
	if again := h.status(t); again.PulumiAddress != first.PulumiAddress {
		t.Errorf("after a stop it is at %s, and was at %s", again.PulumiAddress, first.PulumiAddress)
	}
	h.killService(t)
	p.must(t, "dev", "--background")
	if again := h.status(t); again.PulumiAddress != first.PulumiAddress {
		t.Errorf("after a kill it is at %s, and was at %s", again.PulumiAddress, first.PulumiAddress)
	}
}
