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
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(serial), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for file, block := range map[string]*pem.Block{certFile: {Type: "CERTIFICATE", Bytes: cert}, keyFile: {Type: "EC PRIVATE KEY", Bytes: private}} {
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
