package programs_test

import (
	"bytes"
	"crypto/rand"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/programs"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// archives returns the archives of an organization as they are at a time.
func archives(t *testing.T, objects bucket.Objects, organization string, at time.Time) *programs.PluginArchives {
	t.Helper()
	store := storetest.Opened(t, objects, statestore.Options{Now: func() time.Time { return at }})
	return store.Programs.PluginArchives(organization)
}

func readArchive(t *testing.T, p *programs.PluginArchives, sum string) ([]byte, bool) {
	t.Helper()
	var text bytes.Buffer
	found, err := p.Read(t.Context(), sum, &text)
	if err != nil {
		t.Fatal(err)
	}
	return text.Bytes(), found
}

func TestAnArchiveIsReadAsItWasWritten(t *testing.T) {
	objects := &bucket.Memory{}
	p := archives(t, objects, "acme", time.Now())
	const sum, key = "0123", "where it is from"
	if recorded, err := p.Sum(t.Context(), key); recorded != "" || err != nil {
		t.Fatalf("%q, %v", recorded, err)
	}
	if _, found := readArchive(t, p, sum); found {
		t.Fatal("it is there before it is written")
	}
	for _, size := range []int{0, 1, 16 << 20, 16<<20 + 1} {
		archive := make([]byte, size)
		_, _ = rand.Read(archive) // never fails
		if recorded, err := p.Write(t.Context(), key, sum, bytes.NewReader(archive)); recorded != sum || err != nil {
			t.Fatalf("%q, %v", recorded, err)
		}
		if read, found := readArchive(t, p, sum); !found || !bytes.Equal(read, archive) {
			t.Errorf("of %d bytes %d were read", size, len(read))
		}
	}
	if recorded, err := p.Write(t.Context(), key, "4567", strings.NewReader("x")); recorded != sum || err != nil {
		t.Errorf("the second archive of a download is recorded as %q, %v", recorded, err)
	}
	if _, found := readArchive(t, p, "4567"); found {
		t.Error("the second archive of a download was stored")
	}
	if _, found := readArchive(t, archives(t, objects, "other", time.Now()), sum); found {
		t.Error("another organization has it")
	}
}

func TestAnArchiveOfAnotherOrganizationIsNoticed(t *testing.T) {
	objects := &bucket.Memory{}
	for _, organization := range []string{"acme", "other"} {
		p := archives(t, objects, organization, time.Now())
		if _, err := p.Write(t.Context(), "key", "0123", strings.NewReader(organization)); err != nil {
			t.Fatal(err)
		}
	}
	l, err := objects.List(t.Context(), bucket.Query{Prefix: "plugins/"})
	if err != nil || len(l.Keys) != 6 {
		t.Fatalf("%v, %v", l.Keys, err)
	}
	for i, key := range l.Keys[:3] { // those of acme get the content of the other's
		o, err := objects.Get(t.Context(), l.Keys[3+i])
		if err == nil {
			_, err = objects.Put(t.Context(), key, o.Data, bucket.Condition{})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	p := archives(t, objects, "acme", time.Now())
	if _, err := p.Sum(t.Context(), "key"); deployments.CodeOf(err) != deployments.CodeFormat {
		t.Errorf("the digest: %v", err)
	}
	if _, err := p.Read(t.Context(), "0123", &bytes.Buffer{}); deployments.CodeOf(err) != deployments.CodeFormat {
		t.Errorf("the archive: %v", err)
	}
}

func TestAnArchiveThatIsNotUsedIsCollectedAndItsDigestStays(t *testing.T) {
	objects := &bucket.Memory{}
	now := time.Now()
	p := archives(t, objects, "acme", now)
	if _, err := p.Write(t.Context(), "key", "0123", strings.NewReader("x")); err != nil {
		t.Fatal(err)
	}
	month := 30 * 24 * time.Hour
	for _, c := range []struct {
		at   time.Time
		kept bool
	}{{now.Add(month), true}, {now.Add(month + 49*time.Hour), false}} {
		p := archives(t, objects, "acme", c.at)
		if err := p.Collect(t.Context(), month); err != nil {
			t.Fatal(err)
		}
		l, err := objects.List(t.Context(), bucket.Query{Prefix: "plugins/acme/archives/"})
		if err != nil || (len(l.Keys) > 0) != c.kept {
			t.Errorf("after %s: %v, %v", c.at.Sub(now), l.Keys, err)
		}
		if sum, err := p.Sum(t.Context(), "key"); sum != "0123" || err != nil {
			t.Errorf("the digest is %q, %v", sum, err)
		}
	}
}
