package devserver

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

func TestAFirstStartThatWasKilledIsStartedAgain(t *testing.T) {
	for _, gate := range []string{
		"locks/service", "service.json", "data", "data/keys.json", "data/ports.json", "data/temporal/schema.json",
		"data/temporal/temporal.db.new", "data/temporal/temporal.db", "data/temporal/temporal.db-wal", "data/s3", "data/s3/" + Bucket,
	} {
		t.Run("when "+strings.ReplaceAll(gate, "/", " ")+" was there", func(t *testing.T) {
			home := newHome(t)
			p := spawn(t, "service", home)
			until(t, gate+" is there", func() bool { return exists(filepath.Join(home, gate)) })
			p.kill()
			s := start(t, home)
			namespaceID(t, s.Status.TemporalAddress)
			writeObject(t, s, "key", "value")
		})
	}
}

func TestTheS3ServerDiesWithItsParent(t *testing.T) {
	home := newHome(t)
	p := spawn(t, "service", home)
	p.says(t, "running")
	before, err := ReadStatus(home)
	must(t, err)
	p.kill()
	h := filepath.Join(home, "locks", lockS3)
	until(t, "no process has the objects open", func() bool {
		processes, _ := filepath.Glob("/proc/[0-9]*")
		return !slices.ContainsFunc(processes, func(process string) bool {
			return holds(process, func(target string) bool { return target == h })
		})
	})
	after := start(t, home)
	if !slices.Equal(after.Status.Lost, []string{before.Instance}) {
		t.Errorf("lost are %v, want %s", after.Status.Lost, before.Instance)
	}
}

func TestAKilledS3ServerIsStartedAgain(t *testing.T) {
	s := start(t, newHome(t))
	writeObject(t, s, "key", "before")
	s.objects.mu.Lock()
	child := s.objects.process
	s.objects.mu.Unlock()
	must(t, child.Signal(syscall.SIGKILL))
	writeObject(t, s, "key", "after") // the client's own retries bridge the gap, or the next line does
	if text, _ := readObject(t, s, "key"); text != "after" {
		t.Errorf("the object is %q", text)
	}
}

func TestAHomeWithoutExtendedAttributesKeepsMetadataBeside(t *testing.T) {
	home := newHome(t)
	must(t, os.MkdirAll(filepath.Join(home, "data", "s3meta"), 0o700)) // as where the file system has none
	s := start(t, home)
	compareAndSwap(t, s)
	if entries, _ := os.ReadDir(filepath.Join(home, "data", "s3meta", Bucket)); len(entries) == 0 {
		t.Error("no metadata beside the objects")
	}
}

func TestLostKeysAreNotMadeAnew(t *testing.T) {
	home := newHome(t)
	must(t, start(t, home).Close(t.Context()))
	must(t, os.Remove(filepath.Join(home, "data", "keys.json")))
	_, err := Start(t.Context(), options(home))
	if err == nil || !strings.Contains(err.Error(), "put it back from a copy") {
		t.Errorf("the start says %v", err)
	}
}

func TestADatabaseOfAnotherSchemaIsRefused(t *testing.T) {
	home := newHome(t)
	must(t, start(t, home).Close(t.Context()))
	must(t, writeJSON(filepath.Join(home, "data", "temporal", "schema.json"), schemaVersion{Executions: "99.0"}))
	_, err := Start(t.Context(), options(home))
	if err == nil || !strings.Contains(err.Error(), "use the version that made it") {
		t.Errorf("the start says %v", err)
	}
}

func writeObject(t *testing.T, s *Server, key, text string) {
	t.Helper()
	client := s3Client(s.Status.S3Endpoint, s.Keys)
	until(t, "object "+key+" is written", func() bool {
		_, err := client.PutObject(t.Context(),
			&s3.PutObjectInput{Bucket: aws.String(Bucket), Key: aws.String(key), Body: strings.NewReader(text)})
		return err == nil
	})
}

func readObject(t *testing.T, s *Server, key string) (text, etag string) {
	t.Helper()
	out, err := s3Client(s.Status.S3Endpoint, s.Keys).
		GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(Bucket), Key: aws.String(key)})
	must(t, err)
	defer func() { _ = out.Body.Close() }()
	body, err := io.ReadAll(out.Body)
	must(t, err)
	return string(body), aws.ToString(out.ETag)
}
