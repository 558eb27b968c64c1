package grpcapi

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"log/slog"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// writePair writes a new certificate of this serial number and its key.
func writePair(t *testing.T, certFile, keyFile string, serial int64) {
	t.Helper()
	writePairOf(t, certFile, keyFile, serial, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
}

func writePairOf(t *testing.T, certFile, keyFile string, serial int64, from, until time.Time) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: from, NotAfter: until}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert},
		keyFile: {Type: "EC PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestACertificateIsReadAgainWhenItsFilesChange(t *testing.T) {
	certFile, keyFile := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	var log bytes.Buffer
	if _, err := Certificate(certFile, keyFile, slog.Default()); deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Errorf("files that are not there: %v", err)
	}
	writePair(t, certFile, keyFile, 1)
	c := &certificate{certFile: certFile, keyFile: keyFile, log: slog.New(slog.NewTextHandler(&log, nil))}
	if err := c.read(); err != nil {
		t.Fatal(err)
	}
	served := func() int64 {
		c.looked = time.Time{} // as if a second had passed
		pair, err := c.get(&tls.ClientHelloInfo{})
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(pair.Certificate[0])
		if err != nil {
			t.Fatal(err)
		}
		return leaf.SerialNumber.Int64()
	}
	later := func(files ...string) { // the clock of a file system may be coarse
		for _, file := range files {
			if err := os.Chtimes(file, time.Now(), time.Now().Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := served(); got != 1 {
		t.Errorf("at first %d is served", got)
	}
	writePair(t, certFile, keyFile, 2)
	later(certFile, keyFile)
	if got := served(); got != 2 {
		t.Errorf("after a change %d is served", got)
	}
	if err := os.WriteFile(certFile, []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := served(); got != 2 || !strings.Contains(log.String(), "the old one stays") {
		t.Errorf("of a broken one, %d is served, and the log says %q", got, log.String())
	}
	said := log.Len()
	if served(); log.Len() != said {
		t.Error("the same broken file is told of again")
	}
	writePair(t, certFile, keyFile, 3)
	if got := served(); got != 3 {
		t.Errorf("after the repair %d is served", got)
	}
}

func TestACertificateThatIsNotValidNowIsRefusedAndDoesNotReplaceOneThatIs(t *testing.T) {
	certFile, keyFile := filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	now := time.Now()
	for reason, validity := range map[string][2]time.Time{
		"it expired on ":    {now.Add(-time.Hour), now.Add(-time.Minute)},
		"it is valid from ": {now.Add(time.Hour), now.Add(2 * time.Hour)},
	} {
		writePairOf(t, certFile, keyFile, 1, validity[0], validity[1])
		if _, err := Certificate(certFile, keyFile, slog.Default()); err == nil ||
			!strings.Contains(err.Error(), reason) {
			t.Errorf("want %q, got %v", reason, err)
		}
	}
	ends := now.Add(3 * time.Hour)
	writePairOf(t, certFile, keyFile, 2, now.Add(-time.Hour), ends)
	c := &certificate{certFile: certFile, keyFile: keyFile, log: slog.New(slog.DiscardHandler)}
	if err := c.read(); err != nil {
		t.Fatal(err)
	}
	writePairOf(t, certFile, keyFile, 3, now.Add(-time.Hour), now.Add(-time.Minute))
	c.state = [2]fileState{} // as if the clock of the file system were fine enough
	if got, err := CertificateEnds(&tls.Config{GetCertificate: c.get}); err != nil ||
		!got.Equal(ends.Truncate(time.Second)) {
		t.Errorf("the certificate in use ends at %s, not %s (%v)", got, ends, err)
	}
}
