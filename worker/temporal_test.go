package worker

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

// frontend is as much of a Temporal server as a client asks before it does anything: it has the namespace "ours", and
// one API key if any.
type frontend struct {
	workflowservice.UnimplementedWorkflowServiceServer
	key  string
	seen struct{ namespace, commonName string } // of who came in last
}

func (*frontend) GetSystemInfo(
	context.Context, *workflowservice.GetSystemInfoRequest,
) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{}, nil
}

func (f *frontend) DescribeNamespace(
	ctx context.Context, r *workflowservice.DescribeNamespaceRequest,
) (*workflowservice.DescribeNamespaceResponse, error) {
	said, _ := metadata.FromIncomingContext(ctx)
	if f.key != "" && strings.Join(said.Get("authorization"), "") != "Bearer "+f.key {
		return nil, serviceerror.ToStatus(serviceerror.NewPermissionDenied("Request unauthorized.", "")).Err()
	}
	if r.Namespace != "ours" {
		return nil, serviceerror.ToStatus(serviceerror.NewNamespaceNotFound(r.Namespace)).Err()
	}
	f.seen.namespace = strings.Join(said.Get("temporal-namespace"), "")
	if from, ok := peer.FromContext(ctx); ok {
		if secure, ok := from.AuthInfo.(credentials.TLSInfo); ok && len(secure.State.PeerCertificates) > 0 {
			f.seen.commonName = secure.State.PeerCertificates[0].Subject.CommonName
		}
	}
	return &workflowservice.DescribeNamespaceResponse{}, nil
}

// serve listens on loopback until the test ends.
func (f *frontend) serve(t *testing.T, secure *tls.Config) (address string) {
	t.Helper()
	listener := listen(t)
	f.serveOn(t, listener, secure)
	return listener.Addr().String()
}

func (f *frontend) serveOn(t *testing.T, listener net.Listener, secure *tls.Config) {
	serveTemporal(t, listener, f, secure)
}

func serveTemporal(t *testing.T, listener net.Listener, f workflowservice.WorkflowServiceServer, secure *tls.Config) {
	var options []grpc.ServerOption
	if secure != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(secure)))
	}
	server := grpc.NewServer(options...)
	workflowservice.RegisterWorkflowServiceServer(server, f)
	t.Cleanup(server.Stop)
	go func() { _ = server.Serve(listener) }() // until it is stopped
}

// authority signs certificates for 127.0.0.1, and keeps all that it makes in files.
type authority struct {
	t    *testing.T
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.cert, a.key = a.sign("authority", nil)
	return a
}

func (a *authority) path(name string) string { return filepath.Join(a.dir, name) }

// sign makes a certificate and its key; without a parent, the authority's own.
func (a *authority) sign(name string, parent *x509.Certificate) (*x509.Certificate, *ecdsa.PrivateKey) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(a.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: parent == nil, BasicConstraintsValid: true, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	signer := a.key
	if parent == nil {
		parent, signer = template, key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	must(a.t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	must(a.t, err)
	must(a.t, os.WriteFile(a.path(name+".crt"), pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(a.t, os.WriteFile(a.path(name+".key"), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
		0o600))
	cert, err := x509.ParseCertificate(der)
	must(a.t, err)
	return cert, key
}

// server is the configuration of a server with a certificate of this authority; clients need one too if it says so.
func (a *authority) server(clients tls.ClientAuthType) *tls.Config {
	a.t.Helper()
	a.sign("server", a.cert)
	pair, err := tls.LoadX509KeyPair(a.path("server.crt"), a.path("server.key"))
	must(a.t, err)
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: clients, ClientCAs: pool}
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	return listener
}

// emptyBucket is an S3 server with an empty bucket.
func emptyBucket(t *testing.T, listener net.Listener) bucket.S3Options {
	t.Helper()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch { // an empty bucket
		case r.URL.Query().Has("list-type"):
			_, _ = w.Write([]byte("<ListBucketResult></ListBucketResult>"))
		case r.Method == http.MethodPut:
			w.Header().Set("ETag", `"1"`)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte("<Error><Code>NoSuchKey</Code></Error>"))
		}
	}))
	must(t, server.Listener.Close())
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return bucket.S3Options{Endpoint: server.URL, Region: "us-east-1", Bucket: "b", AccessKey: "a", SecretKey: "s"}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (t Temporal) config(s3 bucket.S3Options, patience time.Duration) Config {
	keeper, err := seal.NewMasterKeeper(make([]byte, 32))
	if err != nil {
		panic(err) // only of a wrong size
	}
	return Config{Temporal: t, S3: s3, Keepers: []seal.Keeper{keeper}, SetUp: true, Patience: patience}
}

const ample = waittest.Patience // for what succeeds

func TestAClientAuthenticatesAsTheClusterRequires(t *testing.T) {
	a := newAuthority(t)
	a.sign("client", a.cert)
	ca, cert, key := a.path("authority.crt"), a.path("client.crt"), a.path("client.key")
	for _, c := range []struct {
		name       string
		server     *tls.Config
		key        string
		client     Temporal
		commonName string
	}{
		{"nothing", nil, "", Temporal{}, ""},
		{"the certificate of a private authority", a.server(tls.NoClientCert), "", Temporal{CACert: ca}, ""},
		{"a client certificate", a.server(tls.RequireAndVerifyClientCert), "",
			Temporal{CACert: ca, TLSCert: cert, TLSKey: key}, "client"},
		{"an API key", a.server(tls.NoClientCert), "the-key", Temporal{CACert: ca, APIKey: "the-key"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := &frontend{key: c.key}
			c.client.Address, c.client.Namespace = f.serve(t, c.server), "ours"
			connection, err := Connect(t.Context(), c.client.config(emptyBucket(t, listen(t)), ample))
			must(t, err)
			connection.Close()
			if f.seen.commonName != c.commonName || f.seen.namespace != "ours" {
				t.Errorf("it saw %+v", f.seen)
			}
		})
	}
}

func TestAFaultOfAClusterIsReported(t *testing.T) {
	a, other := newAuthority(t), newAuthority(t)
	a.sign("client", a.cert)
	ca := a.path("authority.crt")
	nobody := listen(t)
	must(t, nobody.Close())
	const short = 2 * time.Second
	for _, c := range []struct {
		name     string
		patience time.Duration
		server   *tls.Config
		client   Temporal
		code     deployments.Code
		says     []string
	}{
		{"nobody at the address", short, nil, Temporal{Address: nobody.Addr().String()}, deployments.CodeUnavailable,
			[]string{"Temporal at " + nobody.Addr().String() + " cannot be reached: dial tcp",
				"connection refused; check that it runs"}},
		{"a namespace that does not exist", ample, nil, Temporal{Namespace: "theirs"}, deployments.CodeInvalid,
			[]string{"there is no namespace theirs", "temporal operator namespace create", "--namespace theirs"}},
		{"another API key", ample, a.server(tls.NoClientCert), Temporal{CACert: ca, APIKey: "guessed"},
			deployments.CodeForbidden, []string{"Request unauthorized."}},
		{"no client certificate", short, a.server(tls.RequireAndVerifyClientCert), Temporal{CACert: ca},
			deployments.CodeUnavailable, []string{"cannot be reached", "temporal.tls-cert"}},
		{"a certificate of an authority that is not known", short, a.server(tls.NoClientCert),
			Temporal{CACert: other.path("authority.crt")},
			deployments.CodeUnavailable, []string{"unknown authority", "temporal.ca-cert"}},
		{"a server without TLS", short, nil, Temporal{CACert: ca}, deployments.CodeUnavailable,
			[]string{"does not look like a TLS handshake"}},
		{"a client certificate without its key", ample, nil, Temporal{TLSCert: a.path("client.crt")},
			deployments.CodeInvalid, []string{"temporal.tls-key"}},
		{"a client certificate that is none", ample, nil, Temporal{TLSCert: ca, TLSKey: ca}, deployments.CodeInvalid,
			[]string{"client certificate"}},
		{"an authority that is not there", ample, nil, Temporal{CACert: a.path("none")}, deployments.CodeInvalid,
			[]string{"certificate authority"}},
		{"an authority that is none", ample, nil, Temporal{CACert: a.path("client.key")}, deployments.CodeInvalid,
			[]string{"holds no certificate"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := &frontend{}
			if c.client.APIKey != "" {
				f.key = "the-key"
			}
			if c.client.Address == "" {
				c.client.Address = f.serve(t, c.server)
			}
			if c.client.Namespace == "" {
				c.client.Namespace = "ours"
			}
			_, err := Connect(t.Context(), c.client.config(emptyBucket(t, listen(t)), c.patience))
			if deployments.CodeOf(err) != c.code {
				t.Fatalf("got %s: %v", deployments.CodeOf(err), err)
			}
			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %q", err, says)
				}
			}
			if strings.Contains(err.Error(), "desc =") || strings.Contains(err.Error(), "failed reaching server") {
				t.Errorf("it says %q", err)
			}
		})
	}
}

// late is a listener whose first connections are closed before anything is said.
type late struct {
	net.Listener
	refused atomic.Int32
}

const refusals = 3

func (l *late) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || l.refused.Load() == refusals {
			return conn, err
		}
		l.refused.Add(1)
		_ = conn.Close() // as a server does that is not up yet
	}
}

func TestServersThatAppearInTimeAreUsed(t *testing.T) {
	cluster, objects := &late{Listener: listen(t)}, &late{Listener: listen(t)}
	(&frontend{}).serveOn(t, cluster, nil)
	connection, err := Connect(t.Context(), Temporal{Address: cluster.Addr().String(),
		Namespace: "ours"}.config(emptyBucket(t, objects), ample))
	must(t, err)
	connection.Close()
	if cluster.refused.Load() != refusals || objects.refused.Load() != refusals {
		t.Errorf("they refused %d and %d times", cluster.refused.Load(), objects.refused.Load())
	}
}
