package e2e

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// scraped is what Prometheus would read.
func scraped(t *testing.T, address string) string {
	t.Helper()
	answer, err := http.Get("http://" + address + "/metrics")
	must(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	must(t, err)
	if answer.StatusCode != http.StatusOK {
		t.Fatalf("%s\n%s", answer.Status, text)
	}
	return string(text)
}

func TestAServiceCountsForPrometheusWhatItDoes(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h, address := newHome(t), porttest.Address(t)
	h.in(h.dir).must(t, "dev", "--background", "--metrics-listen", address)
	s := newStage(t, h)
	s.update(t, "up")
	eventually(t, "the update is released", func() bool {
		return strings.Contains(scraped(t, address),
			"deployctl_updates_running 0\n")
	})
	text := scraped(t, address)
	for _, line := range []string{
		`deployctl_updates_total{kind="up",result="succeeded",tool="deployctl"} 1`,
		// the default provider is one
		fmt.Sprintf(`deployctl_steps_total{op="create",outcome="done"} %d`, layersCreates+1),
		`deployctl_update_seconds_count{kind="up",tool="deployctl"} 1`,
		`deployctl_update_wait_seconds_count{kind="up",tool="deployctl"} 1`,
		`deployctl_calls_total{code="OK",edge="grpc",method="/deployctl.v1.Deployments/Submit"} 1`,
		`deployctl_calls_total{code="OK",edge="grpc",method="/deployctl.v1.Deployments/Watch"} 1`,
		`deployctl_build_info{`, `deployctl_schedules{state="paused"} 0`, `deployctl_free_disk_bytes `,
		`deployctl_s3_seconds_count{op="put"}`, `deployctl_oldest_update_seconds 0`,
		`temporal_request{`, `temporal_activity_execution_latency_seconds_bucket{`, `go_goroutines `,
	} {
		if !strings.Contains(text, line) {
			t.Errorf("there is no %s in\n%s", line, text)
		}
	}
	if strings.Contains(text, projectName(t)) || strings.Contains(text, "named-1") {
		t.Error("a label names a project or a resource")
	}
}

// writeCertificate makes a certificate and its key, in two files.
func writeCertificate(t *testing.T, certFile, keyFile string) (certificate []byte) {
	t.Helper()
	pair := ownCertificate()
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	must(t, err)
	for file, block := range map[string]*pem.Block{
		certFile: {Type: "CERTIFICATE", Bytes: pair.Certificate[0]}, keyFile: {Type: "PRIVATE KEY", Bytes: key},
	} {
		must(t, os.WriteFile(file, pem.EncodeToMemory(block), 0o600))
	}
	return pair.Certificate[0]
}

func TestMetricsOffLoopbackAreServedByTLSWithACertificateThatIsReadAgain(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	settings, _ := h.parts(t)
	dir := t.TempDir()
	certFile, keyFile, token := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"),
		filepath.Join(dir, "token")
	first := writeCertificate(t, certFile, keyFile)
	must(t, os.WriteFile(token, []byte("the-token"), 0o600))
	_, port, err := net.SplitHostPort(porttest.Address(t))
	must(t, err)
	worker := h.in(dir, settings...).start(t, "worker", "--organization", "umbrella", "--metrics-listen",
		"0.0.0.0:"+port,
		"--metrics-token-file", token, "--tls-cert", certFile, "--tls-key", keyFile)
	get := func(shown string) (status int, certificate []byte) {
		insecure := &http.Client{Transport: &http.Transport{
			// whose it is, is looked at below
			DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		}}
		request, err := http.NewRequest(http.MethodGet, "https://127.0.0.1:"+port+"/metrics", nil)
		must(t, err)
		request.Header.Set("Authorization", "Bearer "+shown)
		answer, err := insecure.Do(request)
		if err != nil {
			return 0, nil
		}
		_ = answer.Body.Close()
		return answer.StatusCode, answer.TLS.PeerCertificates[0].Raw
	}
	eventually(t, "it answers", func() bool {
		status, certificate := get("the-token")
		return status == http.StatusOK && bytes.Equal(certificate, first)
	})
	if status, _ := get("guessed"); status != http.StatusUnauthorized {
		t.Errorf("another token is answered with %d", status)
	}
	if status := answers("127.0.0.1:"+port, "/metrics", "Bearer the-token"); status == http.StatusOK {
		t.Error("it answers in clear")
	}
	next := writeCertificate(t, certFile, keyFile)
	eventually(t, "the new certificate is shown", func() bool {
		status, certificate := get("the-token")
		return status == http.StatusOK && bytes.Equal(certificate, next)
	})
	worker.interrupt(t)
	worker.mustEnd(t, 0)
}
