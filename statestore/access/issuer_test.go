package access

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/workload"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// keysOf returns the ids of the keys of an issuer, and the one that signs.
func keysOf(t *testing.T, s *Store) (ids []string, signs string) {
	t.Helper()
	keys, err := s.Issuer.Keys(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range keys {
		ids = append(ids, k.ID)
	}
	key, err := keys.Signing(s.sealed.Now())
	if err != nil {
		t.Fatal(err)
	}
	return ids, key.ID
}

// TestTheProcessesOfAServiceShareTheKeysOfTheIssuer has two processes ask in turn, for longer than a key signs.
func TestTheProcessesOfAServiceShareTheKeysOfTheIssuer(t *testing.T) {
	objects, now := &bucket.Memory{}, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var both [2]*Store
	for i := range both {
		var err error
		if both[i], err = over(objects, func() time.Time { return now }); err != nil {
			t.Fatal(err)
		}
	}
	_, first := keysOf(t, both[0])
	if _, signs := keysOf(t, both[1]); signs != first {
		t.Errorf("one signs with %s, and the other with %s", first, signs)
	}
	now = now.Add(workload.Age)
	next, signs := keysOf(t, both[1])
	if len(next) != 2 || signs != first {
		t.Errorf("after its age the keys are %q, and %s signs", next, signs)
	}
	now = now.Add(workload.Ahead)
	for i, s := range both {
		if ids, signs := keysOf(t, s); signs != next[1] || len(ids) != 2 {
			t.Errorf("process %d signs with %s of %q", i, signs, ids)
		}
	}
	now = now.Add(workload.After)
	if ids, _ := keysOf(t, both[0]); len(ids) != 1 || ids[0] != next[1] {
		t.Errorf("the keys are %q when no token of the first one counts", ids)
	}
}

func TestTheKeysOfTheIssuerAreSealed(t *testing.T) {
	objects := &bucket.Memory{}
	s, err := over(objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	keysOf(t, s)
	o, err := objects.Get(t.Context(), issuerKeys)
	if err != nil {
		t.Fatal(err)
	}
	var ring workload.Ring
	if _, err := s.sealed.GetJSON(t.Context(), issuerKeys, &ring); err != nil || len(ring.Keys) != 1 {
		t.Fatal(err)
	}
	if bytes.Contains(o.Data, ring.Keys[0].Private) || json.Valid(o.Data) {
		t.Error("the key is in the bucket in clear")
	}
}

// unreachable are objects that cannot be reached.
type unreachable struct{ bucket.Objects }

func (unreachable) Get(context.Context, string) (bucket.Object, error) {
	return bucket.Object{}, deployments.Errorf(deployments.CodeUnavailable, "the bucket is away")
}

func TestKeysOfTheIssuerThatAreKnownCountWhileTheBucketIsAway(t *testing.T) {
	s, now := clocked(t)
	ids, _ := keysOf(t, s)
	s.sealed.Objects = unreachable{s.sealed.Objects}
	*now = now.Add(keysCountWithin - time.Second)
	if again, _ := keysOf(t, s); len(again) != 1 || again[0] != ids[0] {
		t.Errorf("the keys are %q, and were %q", again, ids)
	}
	*now = now.Add(time.Second)
	if _, err := s.Issuer.Keys(t.Context()); deployments.CodeOf(err) != deployments.CodeUnavailable {
		t.Errorf("after an hour: %v", err)
	}
}

func TestAnErrorAboutTheKeysOfTheIssuerShowsNothingOfThem(t *testing.T) {
	s, _ := clocked(t)
	ring := workload.Ring{Keys: []workload.StoredKey{{Private: []byte("hush-hush-not-a-key")}}}
	ring.Keys[0].Made = s.sealed.Now()
	if err := s.sealed.PutJSON(t.Context(), issuerKeys, ring, bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	_, err := s.Issuer.Keys(t.Context())
	if deployments.CodeOf(err) != deployments.CodeFormat || strings.Contains(err.Error(), "hush") {
		t.Errorf("it fails with %v", err)
	}
}

func TestAProfileHasCloudsOnlyIfTheServiceIsAnIssuer(t *testing.T) {
	s, _ := clocked(t)
	stacks := []string{"*/*"}
	change := deployments.ProfileChange{Organization: "acme", Name: "aws", Stacks: &stacks,
		Clouds: deployments.Clouds{AWS: &deployments.AWSRole{Role: "arn:aws:iam::123456789012:role/deploy"}}}
	if _, err := s.ChangeProfile(t.Context(), change); deployments.CodeOf(err) != deployments.CodeInvalid ||
		!strings.Contains(err.Error(), "the setting issuer") {
		t.Errorf("without an issuer: %v", err)
	}
	s.Issuer.SetAddress("https://deploy.example.com")
	if _, err := s.ChangeProfile(t.Context(), change); err != nil {
		t.Fatal(err)
	}
	stack := deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}
	p, err := s.UseProfile(t.Context(), nil, stack, ProfileUse{Name: "aws"})
	if err != nil || p.Pin().Clouds.AWS == nil {
		t.Errorf("an update has %+v, %v", p, err)
	}
	s.Issuer.SetAddress("")
	if p, err := s.UseProfile(t.Context(), nil, stack, ProfileUse{Name: "aws"}); deployments.CodeOf(err) !=
		deployments.CodeInvalid || !p.Clouds.Empty() {
		t.Errorf("an update of a service that is no issuer any more has %+v, %v", p, err)
	}
}
