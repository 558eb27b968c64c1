package workload

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// opened opens the keys of a ring.
func opened(t *testing.T, r Ring) Keys {
	t.Helper()
	keys, err := r.Open()
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// TestAKeyIsPublishedBeforeItSignsAndAsLongAsItsTokensCount looks at an issuer each hour of half a year.
func TestAKeyIsPublishedBeforeItSignsAndAsLongAsItsTokensCount(t *testing.T) {
	var ring Ring
	published := map[string]time.Time{} // since when, by key
	var signed []string                 // the keys that signed, in this order
	var last time.Time                  // when the one before the last signed last
	for now := noon; now.Before(noon.Add(180 * 24 * time.Hour)); now = now.Add(time.Hour) {
		if ring.Outdated(now) {
			before := ""
			if len(ring.Keys) > 0 {
				key, _ := opened(t, ring).Signing(now)
				before = key.ID
			}
			var err error
			if ring, err = ring.Renewed(now); err != nil {
				t.Fatal(err)
			}
			if key, err := opened(t, ring).Signing(now); err != nil || before != "" && key.ID != before {
				t.Fatalf("%s: a new key signs at once", now)
			}
		}
		keys := opened(t, ring)
		for _, k := range keys {
			if _, known := published[k.ID]; !known {
				published[k.ID] = now
			}
		}
		key, err := keys.Signing(now)
		if err != nil {
			t.Fatal(err)
		}
		if len(signed) == 0 || signed[len(signed)-1] != key.ID {
			if since := published[key.ID]; len(signed) > 0 && now.Sub(since) < Ahead {
				t.Fatalf("%s signs at %s, and is published since %s", key.ID, now, since)
			}
			signed, last = append(signed, key.ID), now
		}
		if n := len(signed); n > 1 && now.Sub(last) < Life+time.Hour &&
			!slices.ContainsFunc(keys, func(k Key) bool { return k.ID == signed[n-2] }) {
			t.Fatalf("%s: the key is gone that has signed until %s", now, last)
		}
		if len(keys) > 2 || ring.Outdated(now) {
			t.Fatalf("%s: there are %d keys, outdated %t", now, len(keys), ring.Outdated(now))
		}
	}
	if len(signed) < 5 || len(published) < len(signed) {
		t.Errorf("%d keys have signed", len(signed))
	}
}

func TestAKeyThatNobodyAskedForInALongTimeStillSignsUntilTheNextIsKnown(t *testing.T) {
	ring, err := Ring{}.Renewed(noon)
	if err != nil {
		t.Fatal(err)
	}
	first, _ := opened(t, ring).Signing(noon)
	later := noon.Add(10 * Age)
	if ring, err = ring.Renewed(later); err != nil || len(ring.Keys) != 2 {
		t.Fatalf("%d keys, %v", len(ring.Keys), err)
	}
	keys := opened(t, ring)
	for at, id := range map[time.Duration]string{0: first.ID, Ahead - time.Second: first.ID, Ahead: keys[1].ID} {
		if k, err := keys.Signing(later.Add(at)); err != nil || k.ID != id {
			t.Errorf("after %s %s signs, not %s: %v", at, k.ID, id, err)
		}
	}
}

func TestATokenSaysWhatTheUpdateIsForAWhile(t *testing.T) {
	ring, err := Ring{}.Renewed(noon)
	if err != nil {
		t.Fatal(err)
	}
	keys := opened(t, ring)
	u := deployments.UpdateName{StackName: deployments.StackName{Organization: "acme", Project: "shop", Stack: "prod"},
		Version: "7"}
	c := Of("https://deploy.example.com", u, deployments.UpdateRequest{Kind: engine.KindDestroy, DryRun: true}, "aws",
		"sts.amazonaws.com")
	text, err := Sign(keys[0], c, "id", noon)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := jose.ParseSigned(text, []jose.SignatureAlgorithm{jose.RS256})
	if err != nil || signed.Signatures[0].Header.KeyID != keys[0].ID {
		t.Fatalf("%v, of %+v", err, signed)
	}
	set := Published(keys)
	payload, err := signed.Verify(set.Key(keys[0].ID)[0].Key)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(payload, &got); err != nil {
		t.Fatal(err)
	}
	for claim, want := range map[string]any{"iss": "https://deploy.example.com", "sub": "stack:acme/shop/prod:preview",
		"aud": "sts.amazonaws.com", "exp": float64(noon.Add(Life).Unix()), "iat": float64(noon.Unix()),
		"nbf": float64(noon.Add(-skew).Unix()), "jti": "id", "organization": "acme", "project": "shop", "stack": "prod",
		"kind": "preview", "profile": "aws", "update": "7"} {
		if got[claim] != want {
			t.Errorf("%s is %v, not %v", claim, got[claim], want)
		}
	}
	var published map[string]any
	document, _ := json.Marshal(Discovery("https://deploy.example.com"))
	if err := json.Unmarshal(document, &published); err != nil {
		t.Fatal(err)
	}
	for claim := range got {
		if claims, _ := published["claims_supported"].([]any); !slices.Contains(claims, any(claim)) {
			t.Errorf("discovery does not name the claim %s", claim)
		}
	}
}

// Azure's libraries keep a token that they have read for ten minutes.
func TestATokenThatWasReadCountsForTenMinutes(t *testing.T) {
	if Renewal+10*time.Minute+skew > Life {
		t.Error("a token that is read just before the next one is written ends too early")
	}
}

func TestWhatIsPublishedOfKeysIsPublic(t *testing.T) {
	ring, err := Ring{}.Renewed(noon)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(Published(opened(t, ring)))
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(`"(\w+)":`).FindAllStringSubmatch(string(text), -1) {
		if !slices.Contains([]string{"keys", "use", "kty", "kid", "alg", "n", "e"}, m[1]) {
			t.Errorf("%q is published in %s", m[1], text)
		}
	}
}

// TestNoTwoStacksHaveTheSameSubject compares subjects of names that look like parts of others'.
func TestNoTwoStacksHaveTheSameSubject(t *testing.T) {
	names := []string{"a", "a.b", "a-up", "up", "stack", "preview"}
	seen := map[string]string{}
	for _, o := range names {
		for _, p := range names {
			for _, s := range names {
				for _, kind := range Kinds() {
					name := deployments.StackName{Organization: o, Project: p, Stack: s}
					subject := Subject(name, kind)
					if other, known := seen[subject]; known {
						t.Errorf("%s %s and %s have the subject %s", name, kind, other, subject)
					}
					seen[subject] = name.String() + " " + kind
				}
			}
		}
	}
	for _, separator := range []string{":", "/", "*", "?", "$"} {
		if deployments.ValidateName("organization", "a"+separator+"b") == nil {
			t.Errorf("a name may have %q, which means something in subjects or policies", separator)
		}
	}
}

func TestASessionHasANameThatAWSTakes(t *testing.T) {
	valid := regexp.MustCompile(`^[\w+=,.@-]{2,64}$`)
	long := strings.Repeat("x", deployments.MaxNameLength)
	for _, u := range []deployments.UpdateName{
		{StackName: deployments.StackName{Organization: "a", Project: "b", Stack: "c"}, Version: "1"},
		{StackName: deployments.StackName{Organization: long, Project: long, Stack: long}, Version: "12"},
		{StackName: deployments.StackName{Organization: long, Project: long, Stack: "dev"},
			Version: "p-aea744ac-31aa-49ef-82dd-7b1cb75d7934"},
	} {
		if got := Session(u); !valid.MatchString(got) || !strings.HasSuffix(got, u.Version) {
			t.Errorf("%s has the session %q", u, got)
		}
	}
}

func TestAnIssuerHasAnAddressThatCloudsTake(t *testing.T) {
	for address, valid := range map[string]bool{
		"https://deploy.example.com": true, "https://deploy.example.com:8443/ci": true, "http://127.0.0.1:8080": true,
		"http://localhost:8080": true, "http://[::1]:80": true,
		"http://deploy.example.com": false, "https://deploy.example.com/": false, "deploy.example.com": false,
		"https://a@deploy.example.com": false, "https://deploy.example.com?x": false, "https://deploy.example.com#x": false,
		"": false, "https://": false, "ftp://deploy.example.com": false, "https://deploy.example.com/a b": false,
		"https://" + strings.Repeat("x", 250) + ".com": false,
	} {
		if err := ValidateIssuer(address); (err == nil) != valid {
			t.Errorf("%q: %v", address, err)
		}
	}
}
