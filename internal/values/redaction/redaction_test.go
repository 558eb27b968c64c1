package redaction_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/values/redaction"
)

func TestASecretIsBlindedHoweverItIsWritten(t *testing.T) {
	const secret = "Zebra/nested+4711 \"<&>\" ünï"
	r := redaction.New([]string{secret})
	asJSON, err := json.Marshal(map[string]string{"password": secret})
	if err != nil {
		t.Fatal(err)
	}
	twice, err := json.Marshal(string(asJSON))
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{
		"as it is": secret, "quoted": fmt.Sprintf("%q", secret), "in JSON": string(asJSON),
		"in JSON in JSON": string(twice),
		"in a query":      url.QueryEscape(secret), "in a path": url.PathEscape(secret),
		"in hexadecimal digits": hex.EncodeToString([]byte(secret)), "in capital ones": fmt.Sprintf("%X", secret),
	}
	for offset := range 3 {
		text := []byte("user"[:2+offset] + secret + "@host")
		for name, encoding := range map[string]*base64.Encoding{
			"std": base64.StdEncoding, "raw std": base64.RawStdEncoding, "url": base64.URLEncoding,
			"raw url": base64.RawURLEncoding,
		} {
			said[fmt.Sprintf("in %s base64 from %d", name, offset)] = encoding.EncodeToString(text)
		}
	}
	for how, text := range said {
		got := r.Replace("before " + text + " after")
		if !strings.Contains(got, redaction.Placeholder) || len(got) > len("before  after")+len(
			redaction.Placeholder)+24 {
			t.Errorf("%s: %s", how, got)
		}
	}
	if got := redaction.New([]string{"abc", ""}).Replace("abcdef"); got != "abcdef" {
		t.Errorf("a short one is redacted: %s", got)
	}
}

func TestATextThatIsRedactedAgainStaysAsItIs(t *testing.T) {
	texts := []string{
		"", "secret", "[secret]", "[[secret]]", "it is [secret]", "the secret is false", "cret][secr",
		"a false [secret] type", "abc[secret]defg", "Hunter2[secret]Zebra", "y[secret]y[sec",
		"falsefalsesecretsecre[sec", "%5Bsecret%5D false",
	}
	secrets := []string{
		"secret", "ecret", "cret]", "[sec", "[secret]", "][secret][", "false", "type", "y[sec", "Hunter2[secret]Zebra",
	}
	for _, secret := range secrets {
		for _, other := range secrets {
			r := redaction.New([]string{secret, other})
			for _, text := range texts {
				once := r.Replace(text)
				if twice := r.Replace(once); twice != once {
					t.Errorf("%q and %q: %q becomes %q, then %q", secret, other, text, once, twice)
				}
			}
		}
	}
	if got := redaction.New([]string{"Hunter2[secret]Zebra"}).Replace("it is Hunter2[secret]Zebra"); strings.Contains(got,
		"Hunter2") || strings.Contains(got, "Zebra") {
		t.Errorf("a secret around a placeholder is shown: %s", got)
	}
}

func FuzzReplace(f *testing.F) {
	f.Add("secret", "[[secret]]")
	f.Add("y[sec", "y[secret]ret]")
	f.Fuzz(func(t *testing.T, secret, text string) {
		r := redaction.New([]string{secret})
		once := r.Replace(text)
		if twice := r.Replace(once); twice != once {
			t.Errorf("%q becomes %q, then %q", text, once, twice)
		}
	})
}

func TestEveryLeafOfASecretObjectIsASecret(t *testing.T) {
	got := redaction.Leaves(`{"user": "root", "deep": {"list": ["one", 47110815, true, "{\"inner\": \"two\"}"]}}`)
	for _, want := range []string{"root", "one", "47110815", "two"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is missing in %q", want, got)
		}
	}
	if got := redaction.Leaves("plain"); !slices.Equal(got, []string{"plain"}) {
		t.Errorf("%q", got)
	}
}

func TestASecretThatIsSplitIsBlinded(t *testing.T) {
	const secret = "Zebra-nested-4711"
	r := redaction.New([]string{secret, "-----BEGIN KEY-----\nc2VjcmV0IG9mIGEga2V5\n-----END KEY-----\n"})
	for at := 1; at < len(secret); at++ {
		s := r.Stream()
		said := s.Next("password: "+secret[:at]+"\n") + s.Next(secret[at:]+" it is\n")
		for length := 6; length <= len(secret); length++ {
			for from := 0; from+length <= len(secret); from++ {
				if strings.Contains(said, secret[from:from+length]) {
					t.Fatalf("split at %d: %q", at, said)
				}
			}
		}
		if !strings.HasPrefix(said, "password: ") || !strings.HasSuffix(said, " it is\n") {
			t.Errorf("split at %d: %q", at, said)
		}
	}
	s := r.Stream()
	if got := s.Next("c2VjcmV0IG9mIGEga2V5\n"); got != redaction.Placeholder+"\n" {
		t.Errorf("a line of a secret: %q", got)
	}
}

func TestOnlyNewlinesTabsAndColoursAreLeftOfControls(t *testing.T) {
	for text, want := range map[string]string{
		"plain\ttext\n": "plain\ttext\n", "\x1b[31mred\x1b[0m": "\x1b[31mred\x1b[0m", "\x1b]0;PWNED\a!": "!",
		"\x1b]52;c;aGk=\x1b\\!": "!",
		"\x1b[2J\x1b[H!":        "!", "\u009b2J!": "!", "\x1bPq#0\x1b\\!": "!", "a\rb\bc\x00d\x7f": "abcd",
		"\x1b[38;5;1mx":     "\x1b[38;5;1mx",
		"\x1b]0;never ends": "", "\x1b": "", "\x1bc!": "!", "grüße 你好": "grüße 你好",
	} {
		if got := redaction.Controls(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
