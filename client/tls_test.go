package client_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// certify makes a certificate for 127.0.0.1 and the file of its own authority.
func certify(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, path
}

func TestOverTLSTheServicesCertificateIsChecked(t *testing.T) {
	pair, ca := certify(t)
	secure := &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
	listener, err := grpcapi.Listen("127.0.0.1:0", secure)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- grpcapi.Serve(ctx, listener, grpcapi.Config{Service: memory.New(),
			Authority: grpcapi.OneToken(token, nil), TLS: secure})
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()

	_, otherCA := certify(t)
	for name, c := range map[string]struct {
		ca       string
		patience time.Duration
		code     deployments.Code
	}{
		"the right authority": {ca, waittest.Patience, ""},
		"another authority":   {otherCA, time.Millisecond, deployments.CodeUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			c1, err := client.Dial(client.Options{Address: listener.Addr().String(), Token: token, CAFile: c.ca,
				Patience: c.patience})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c1.Close() }()
			_, err = c1.ListStacks(t.Context(), "organization", "")
			if c.code == "" && err != nil || c.code != "" && deployments.CodeOf(err) != c.code {
				t.Fatal(err)
			}
			if c.code != "" && !strings.Contains(err.Error(), "no secure connection") {
				t.Errorf("it says %q", err)
			}
		})
	}
}

// TestAHandshakeThatIsBrokenOffIsNoFaultOfACertificate has something accept connections and close them, as a balancer
// does while it has no server.
func TestAHandshakeThatIsBrokenOffIsNoFaultOfACertificate(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	go func() {
		var all []net.Conn
		for {
			conn, err := listener.Accept()
			if err != nil {
				break
			}
			_ = conn.(*net.TCPConn).CloseWrite() // an end, and no reset
			all = append(all, conn)
		}
		for _, conn := range all {
			_ = conn.Close()
		}
	}()
	_, ca := certify(t)
	c, err := client.Dial(client.Options{Address: listener.Addr().String(), Token: token, CAFile: ca,
		Patience: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, err = c.ListStacks(t.Context(), "organization", "")
	if deployments.CodeOf(err) != deployments.CodeUnavailable || strings.Contains(err.Error(), "tls-cert") ||
		!strings.Contains(err.Error(), "load balancer") {
		t.Errorf("it says %q", err)
	}
}
