package grpcapi

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// certificateEvery is how often it is looked, at most, whether the files of a certificate have changed.
const certificateEvery = time.Second

// Certificate returns the TLS configuration of a server whose certificate and key are in two files (PEM). They are read
// again when they have changed, for connections that are made from then on; what cannot be used, expired or not valid
// yet among it, is logged, and the old one stays.
func Certificate(certFile, keyFile string, log *slog.Logger) (*tls.Config, error) {
	c := &certificate{certFile: certFile, keyFile: keyFile, log: log}
	if err := c.read(); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "cannot use the service's certificate (--tls-cert) "+
			"and key (--tls-key): %w", err)
	}
	return &tls.Config{GetCertificate: c.get, MinVersion: tls.VersionTLS12}, nil
}

// CertificateEnds reads the files of a configuration that Certificate returned again if they have changed, and returns
// when the certificate in use expires.
func CertificateEnds(secure *tls.Config) (time.Time, error) {
	pair, err := secure.GetCertificate(nil)
	if err != nil {
		return time.Time{}, err
	}
	return pair.Leaf.NotAfter, nil
}

type certificate struct {
	certFile, keyFile string
	log               *slog.Logger

	mu     sync.Mutex
	pair   *tls.Certificate
	state  [2]fileState // of the files when they were read last, well or not
	looked time.Time
}

// fileState tells one content of a file from another.
type fileState struct {
	modified time.Time
	size     int64
}

func (c *certificate) get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if time.Since(c.looked) < certificateEvery {
		return c.pair, nil
	}
	c.looked = time.Now()
	if c.files() == c.state {
		return c.pair, nil
	}
	if err := c.read(); err != nil {
		c.log.Error("the certificate was changed and cannot be used; the old one stays", "certificate", c.certFile,
			"key", c.keyFile, "error", err)
	} else {
		c.log.Info("the certificate was read again", "certificate", c.certFile)
	}
	return c.pair, nil
}

// read reads the files. A pair that is just being replaced may not fit together: then it is read again when the second
// file has changed, too.
func (c *certificate) read() error {
	c.state = c.files()
	pair, err := tls.LoadX509KeyPair(c.certFile, c.keyFile)
	if err != nil {
		return err
	}
	switch now := time.Now(); {
	case now.After(pair.Leaf.NotAfter):
		return fmt.Errorf("it expired on %s; replace it", pair.Leaf.NotAfter.Format(time.RFC3339))
	case now.Before(pair.Leaf.NotBefore):
		return fmt.Errorf("it is valid from %s on, and it is %s now; replace it, or set the clock",
			pair.Leaf.NotBefore.Format(time.RFC3339), now.UTC().Format(time.RFC3339))
	}
	c.pair = &pair
	return nil
}

func (c *certificate) files() (state [2]fileState) {
	for i, file := range []string{c.certFile, c.keyFile} {
		if info, err := os.Stat(file); err == nil {
			state[i] = fileState{info.ModTime(), info.Size()}
		}
	}
	return state
}
