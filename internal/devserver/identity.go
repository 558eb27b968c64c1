package devserver

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"
)

// identity is the certificate of a home, with its key: the Temporal server, its own parts among each other, and its
// clients all show it and accept no other. Whoever can read the file may do everything; nobody else gets past a
// handshake. The API of the home shows it, too, so that its clients know whose it is before they show a token.
type identity struct {
	path        string
	certificate tls.Certificate
	authority   *x509.CertPool // the certificate is its own
}

// ensureIdentity reads the identity of h, or makes one: it is no state, so a missing or damaged one is replaced. The
// caller holds lockHome.
func ensureIdentity(h home) (*identity, error) {
	id, err := readIdentity(h.identity())
	if err == nil {
		return id, id.publish(h)
	}
	if damaged := (*damagedIdentityError)(nil); !errors.Is(err, fs.ErrNotExist) && !errors.As(err, &damaged) {
		return nil, err
	}
	text, err := newIdentity()
	if err != nil {
		return nil, fmt.Errorf("make Temporal's certificate: %w", err)
	}
	if err := writeFile(h.identity(), text); err != nil {
		return nil, err
	}
	if id, err = readIdentity(h.identity()); err != nil {
		return nil, err
	}
	return id, id.publish(h)
}

// publish keeps the certificate without its key in a file of its own, for clients of the API.
func (id *identity) publish(h home) error {
	var text bytes.Buffer
	if err := pem.Encode(&text, &pem.Block{Type: "CERTIFICATE", Bytes: id.certificate.Certificate[0]}); err != nil {
		return err
	}
	if found, err := os.ReadFile(h.certificate()); err == nil && bytes.Equal(found, text.Bytes()) {
		return nil
	}
	return writeFile(h.certificate(), text.Bytes())
}

type damagedIdentityError struct {
	path string
	err  error
}

func (e *damagedIdentityError) Error() string {
	return fmt.Sprintf("%s holds no certificate with its key: %s", e.path, e.err)
}

func readIdentity(path string) (*identity, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	id := &identity{path: path, authority: x509.NewCertPool()}
	if id.certificate, err = tls.X509KeyPair(text, text); err != nil {
		return nil, &damagedIdentityError{path, err}
	}
	id.authority.AddCert(id.certificate.Leaf)
	return id, nil
}

// newIdentity makes a certificate for loopback that never expires: clocks may be wrong, and it is worth nothing
// elsewhere.
func newIdentity() ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "deployctl dev"},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC), // RFC 5280: no expiry
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = errors.Join(
		pem.Encode(&out, &pem.Block{Type: "CERTIFICATE", Bytes: certificate}),
		pem.Encode(&out, &pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	)
	return out.Bytes(), err
}

// client is the configuration of who calls the Temporal server.
func (id *identity) client() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{id.certificate},
		RootCAs: id.authority}
}

// server is the configuration of who is called.
func (id *identity) server() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{id.certificate},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: id.authority,
	}
}

// proof is the configuration of a server of the home whose clients show a token.
func (id *identity) proof() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{id.certificate}}
}

// TemporalTLS is the configuration of a client of a home's Temporal server, from the file that Status names.
func TemporalTLS(path string) (*tls.Config, error) {
	id, err := readIdentity(path)
	if err != nil {
		return nil, err
	}
	return id.client(), nil
}
