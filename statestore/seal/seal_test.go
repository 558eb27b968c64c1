package seal

import (
	"bytes"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func ring(t *testing.T, fill byte) *Keyring {
	t.Helper()
	k, err := NewKeyring(bytes.Repeat([]byte{fill}, 32))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestWhatIsSealedOpensWithTheSameKeyAndContext(t *testing.T) {
	box := ring(t, 1).Box(PurposePayload)
	for name, plain := range map[string][]byte{
		"nothing": {}, "short": []byte("hello"), "long and repetitive": bytes.Repeat([]byte("secret "), 10_000),
	} {
		t.Run(name, func(t *testing.T) {
			sealed := box.Seal(plain, "here")
			got, err := box.Open(sealed, "here")
			if err != nil || !bytes.Equal(got, plain) {
				t.Fatalf("got %d bytes, %v", len(got), err)
			}
			if len(plain) > 0 && bytes.Contains(sealed, plain) {
				t.Fatal("the plain text shows")
			}
			if bytes.Equal(sealed, box.Seal(plain, "here")) {
				t.Fatal("sealing twice gave the same bytes")
			}
		})
	}
}

func TestWhatIsRepetitiveIsCompressed(t *testing.T) {
	if n := len(ring(t, 1).Box("x").Seal(bytes.Repeat([]byte("abc"), 10_000), "")); n > 1000 {
		t.Fatalf("30,000 bytes of abc take %d", n)
	}
}

func TestWhatIsNotOursIsRefusedWithAFormatError(t *testing.T) {
	k := ring(t, 1)
	sealed := k.Box("a").Seal([]byte("value"), "here")
	cut := append([]byte(nil), sealed...)
	cut[len(cut)-1] ^= 1
	newer := append([]byte{9}, sealed[1:]...)
	relabelled := append([]byte{versionKeyedZstd}, sealed[1:]...)
	for name, open := range map[string]func() ([]byte, error){
		"another purpose": func() ([]byte, error) { return k.Box("b").Open(sealed, "here") },
		"another master":  func() ([]byte, error) { return ring(t, 2).Box("a").Open(sealed, "here") },
		"another context": func() ([]byte, error) { return k.Box("a").Open(sealed, "there") },
		"a flipped bit":   func() ([]byte, error) { return k.Box("a").Open(cut, "here") },
		"a newer format":  func() ([]byte, error) { return k.Box("a").Open(newer, "here") },
		"another version": func() ([]byte, error) { return k.Box("a").Open(relabelled, "here") },
		"plain text": func() ([]byte, error) {
			return k.Box("a").Open([]byte(`{"plain":"a text that is long enough"}`), "here")
		},
		"nothing": func() ([]byte, error) { return k.Box("a").Open(nil, "here") },
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := open(); deployments.CodeOf(err) != deployments.CodeFormat {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestAMasterKeyOfAnotherSizeIsRefused(t *testing.T) {
	if _, err := NewKeyring([]byte("short")); deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Fatalf("got %v", err)
	}
}

func TestDigestsDependOnTheKey(t *testing.T) {
	k := ring(t, 1)
	if !bytes.Equal(k.Box("a").Digest([]byte("x")), k.Box("a").Digest([]byte("x"))) {
		t.Fatal("one key, two digests")
	}
	if bytes.Equal(k.Box("a").Digest([]byte("x")), k.Box("b").Digest([]byte("x"))) {
		t.Fatal("two keys, one digest")
	}
}

func TestWhatIsGivenUpIsSealedWhereItIs(t *testing.T) {
	box, plain := ring(t, 1).Box(PurposeStore), bytes.Repeat([]byte("secret "), 1000)
	roomy := append(make([]byte, 0, len(plain)+64), plain...)
	sealed := box.SealOwned(roomy, "c")
	if &sealed[0] != &roomy[0] {
		t.Error("it is somewhere else")
	}
	for name, sealed := range map[string][]byte{"with room": sealed,
		"without": box.SealOwned(slices.Clip(bytes.Clone(plain)), "c")} {
		if got, err := box.Open(sealed, "c"); err != nil || !bytes.Equal(got, plain) {
			t.Errorf("%s: it opens as %d bytes, %v", name, len(got), err)
		}
		if _, err := box.Open(sealed, "d"); err == nil {
			t.Errorf("%s: it opens in another context", name)
		}
	}
}
