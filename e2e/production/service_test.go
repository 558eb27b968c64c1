package production

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/postgrestest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

const serves, workers = 2, 3

// process is a serve or a worker.
type process struct {
	*cluster.Part
	health string // address of /readyz
}

// service is a production service as docs/production.md sets it up, on servers that are not deployctl's.
type service struct {
	dir, binary string
	env         []string // of everybody
	postgres    *postgrestest.Server
	temporal    *cluster.Part
	s3          *objectStore
	serves      []*process
	workers     []*process
	balancer    *balancer
	keys        string // FILE with the service's keys
	disk        string // file system of the workers' temporary files; empty: they have none of their own
	admin       *harness.Tool
}

// newService starts one, with an admin.
func newService(t *testing.T) *service {
	t.Helper()
	s := &service{dir: shortDir(t), binary: harness.Binary(), postgres: postgreSQL(t)}
	t.Cleanup(func() { s.explain(t) })
	schemas(t, s.postgres.Address)
	s.keys = s.file(t, "key", newKey(t))
	s.file(t, "bootstrap-token", "the-first-token-of-this-service")
	s.certificate(t)
	s.environment(t)
	var address string
	s.temporal, address = temporal(t, s.dir, s.postgres.Address)
	s.s3 = newObjectStore(t, s.dir)
	s.file(t, "config.yaml", fmt.Sprintf(`temporal: {address: %q, namespace: %s, worker-deployment: deployctl}
s3: {endpoint: %q, bucket: %s, access-key-id: %s, secret-access-key-file: %s}
key-file: %[7]s/key
tls-cert: %[7]s/tls.crt
tls-key: %[7]s/tls.key
bootstrap-token-file: %[7]s/bootstrap-token
plugins: {download: "off"}
`, address, namespace, s.s3.endpoint, bucket, s3User, s.s3.secret, s.dir))
	s.disk = s.mount(t)
	s.start(t)
	return s
}

// shortDir is a directory whose sockets have names that are short enough, and that other users may enter.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "production")
	harness.Must(t, err)
	harness.Must(t, os.Chmod(dir, 0o711)) //nolint:gosec // programs run as other users
	t.Cleanup(func() {
		if !t.Failed() {
			_ = os.RemoveAll(dir)
		}
	})
	return dir
}

// file writes a file of the service.
func (s *service) file(t *testing.T, name, text string) (path string) {
	t.Helper()
	path = filepath.Join(s.dir, name)
	harness.Must(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

func newKey(t *testing.T) string {
	t.Helper()
	key := make([]byte, 32)
	_, err := rand.Read(key)
	harness.Must(t, err)
	return base64.StdEncoding.EncodeToString(key)
}

// certificate makes the one of serve, which clients are told to trust.
func (s *service) certificate(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	harness.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "deployctl.internal"},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: time.Now().Add(30 * 24 * time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	harness.Must(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	harness.Must(t, err)
	s.file(t, "tls.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	s.file(t, "tls.key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
}

// environment is that of serve, workers and clients, without what the caller has set for the tools.
func (s *service) environment(t *testing.T) {
	t.Helper()
	peers, err := harness.Peer("pulumi-language-yaml", "test-plugins")
	harness.Must(t, err)
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if name != "PATH" && !strings.HasPrefix(name, "DEPLOYCTL") && !strings.HasPrefix(name, "PULUMI_") &&
			!strings.HasPrefix(name, "AWS_") {
			s.env = append(s.env, variable)
		}
	}
	path := []string{peers, filepath.Join(harness.Root(), "bin"), os.Getenv("PATH")}
	s.env = append(s.env, "NO_COLOR=1", "PATH="+strings.Join(path, string(os.PathListSeparator)),
		"PULUMI_HOME="+filepath.Join(s.dir, "pulumi"), "XDG_STATE_HOME="+filepath.Join(s.dir, "state"),
		"XDG_CONFIG_HOME="+filepath.Join(s.dir, "config"))
}

// start starts serve and workers, all but the first serve at once, and makes the admin's token.
func (s *service) start(t *testing.T) {
	t.Helper()
	env := slices.Concat(s.env, []string{"DEPLOYCTL_SETTINGS=" + filepath.Join(s.dir, "config.yaml")})
	part := func(name string, env []string, args ...string) *process {
		p := &process{health: porttest.Address(t)}
		p.Part = cluster.NewPart(name, s.dir, env, s.binary, append(args, "--health-listen", p.health)...)
		t.Cleanup(p.Stop)
		return p
	}
	var addresses []string
	for i := range serves {
		address := porttest.Address(t)
		addresses = append(addresses, address)
		s.serves = append(s.serves, part(fmt.Sprint("serve-", i+1), env, "serve", "--listen", address))
	}
	if s.disk != "" {
		env = append(slices.Clip(env), "TMPDIR="+s.disk)
	}
	for i := range workers {
		s.workers = append(s.workers, part(fmt.Sprint("worker-", i+1), env, "worker"))
	}
	harness.Must(t, s.serves[0].Start())
	s.become(t, http.StatusOK, s.serves[0])
	for _, p := range s.processes()[1:] {
		harness.Must(t, p.Start())
	}
	s.become(t, http.StatusOK, s.processes()...)
	var err error
	s.balancer, err = newBalancer(addresses...)
	harness.Must(t, err)
	t.Cleanup(s.balancer.close)
	first := s.client(s.dir, filepath.Join(s.dir, "bootstrap-token"))
	token := first.Must(t, "token", "create", "root", "--role", "admin", "--organization", "*")
	s.admin = s.client(s.dir, s.file(t, "admin-token", token))
}

// client is deployctl in a directory, with the token of a file.
func (s *service) client(dir, tokenFile string) *harness.Tool {
	return &harness.Tool{Path: s.binary, Dir: dir, Env: append(slices.Clip(s.env),
		"DEPLOYCTL_SERVER="+s.balancer.address(), "DEPLOYCTL_TOKEN_FILE="+tokenFile,
		"DEPLOYCTL_CA_CERT="+filepath.Join(s.dir, "tls.crt"))}
}

// key runs a command for the service's keys, with the service's settings.
func (s *service) key(t *testing.T, args ...string) string {
	t.Helper()
	tool := &harness.Tool{Path: s.binary, Dir: s.dir, Env: append(slices.Clip(s.env),
		"DEPLOYCTL_SETTINGS="+filepath.Join(s.dir, "config.yaml"))}
	return tool.Must(t, append([]string{"key"}, args...)...)
}

// processes are those of deployctl.
func (s *service) processes() []*process { return slices.Concat(s.serves, s.workers) }

// readiness is what a process answers to whoever asks whether it is ready; 0: nothing.
func (p *process) readiness() int {
	ctx, cancel := context.WithTimeout(context.Background(), waittest.Patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+p.health+"/readyz", nil)
	if err != nil {
		return 0
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0
	}
	_ = res.Body.Close()
	return res.StatusCode
}

// become waits until each process answers so.
func (s *service) become(t *testing.T, status int, of ...*process) {
	t.Helper()
	for _, p := range of {
		harness.Eventually(t, fmt.Sprintf("/readyz of %s answers %d", p.Name, status), func() bool {
			return p.readiness() == status
		})
	}
}

// restart ends a process, as a supervisor does that replaces it, and starts it again.
func (s *service) restart(t *testing.T, p *process) {
	t.Helper()
	p.Stop()
	harness.Must(t, p.Start())
	s.become(t, http.StatusOK, p)
}

// roll replaces processes by those of a binary, one after another.
func (s *service) roll(t *testing.T, binary string, env []string, all ...*process) {
	t.Helper()
	for _, p := range all {
		p.Become(binary, env...)
		s.restart(t, p)
	}
}

// explain tells, after a failure, where the logs are.
func (s *service) explain(t *testing.T) {
	if !t.Failed() {
		return
	}
	t.Logf("the logs are in %s", s.dir)
	for _, p := range s.processes() {
		if text, err := os.ReadFile(filepath.Join(s.dir, p.Name+".log")); err == nil {
			t.Logf("%s ends with\n%s", p.Name, text[max(0, len(text)-1500):])
		}
	}
}
