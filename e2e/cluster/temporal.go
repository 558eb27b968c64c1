package cluster

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"os"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
)

// Temporal is the way to a home's Temporal server for its user, who can read the credentials.
type Temporal struct{ TemporalAddress, TemporalCredentials, Namespace string }

// Temporal is the way to this home's Temporal server.
func (h *Home) Temporal() Temporal {
	return Temporal{h.TemporalAddress, h.TemporalCredentials, h.Namespace}
}

// Options are those of a client that logs nothing.
func (t Temporal) Options() (client.Options, error) {
	config, err := t.TLS()
	return client.Options{
		HostPort: t.TemporalAddress, Namespace: t.Namespace, Logger: log.NewStructuredLogger(
			slog.New(slog.DiscardHandler)),
		ConnectionOptions: client.ConnectionOptions{TLS: config},
	}, err
}

// TLS shows the server the certificate that it shows itself.
func (t Temporal) TLS() (*tls.Config, error) {
	text, err := os.ReadFile(t.TemporalCredentials)
	if err != nil {
		return nil, err
	}
	pair, err := tls.X509KeyPair(text, text)
	if err != nil {
		return nil, err
	}
	authority := x509.NewCertPool()
	if !authority.AppendCertsFromPEM(text) {
		return nil, errors.New(t.TemporalCredentials + " holds no certificate")
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{pair}, RootCAs: authority}, nil
}

// Dial connects a client.
func (t Temporal) Dial() (client.Client, error) {
	options, err := t.Options()
	if err != nil {
		return nil, err
	}
	return client.Dial(options)
}

// LazyDial gives a client that connects when it is used.
func (t Temporal) LazyDial() (client.Client, error) {
	options, err := t.Options()
	if err != nil {
		return nil, err
	}
	return client.NewLazyClient(options)
}
