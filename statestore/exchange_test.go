package statestore_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/peertest"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/passphrase"
	"github.com/deployctl/deployctl/statestore/storetest"
	"github.com/klauspost/compress/zstd"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

var dev = deployments.StackName{Organization: "organization", Project: "web", Stack: "dev"}

// The deployments in testdata were written by the stock CLI, with this passphrase.
const goldenPassphrase = "sesame"

func golden(t *testing.T, file string) apitype.UntypedDeployment {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", file))
	if err != nil {
		t.Fatal(err)
	}
	var d apitype.UntypedDeployment
	if err := json.Unmarshal(data, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// provider gives the secrets provider of a deployment, with the key that the passphrase opens.
func provider(t *testing.T, d apitype.UntypedDeployment) deployments.SecretsProvider {
	t.Helper()
	var fields struct {
		SecretsProviders struct {
			Type  string
			State struct{ Salt string }
		} `json:"secrets_providers"`
	}
	if err := json.Unmarshal(d.Deployment, &fields); err != nil {
		t.Fatal(err)
	}
	salt := fields.SecretsProviders.State.Salt
	key, err := passphrase.Key(goldenPassphrase, salt)
	if err != nil {
		t.Fatal(err)
	}
	return deployments.SecretsProvider{Type: fields.SecretsProviders.Type, Salt: salt, Key: key}
}

func newStack(t *testing.T, o bucket.Objects) *statestore.Store {
	t.Helper()
	s, err := statestore.New(o, statestore.Options{Master: storetest.Master})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	return s
}

// resources gives what a deployment holds, without what says who wrote it.
func resources(t *testing.T, d apitype.UntypedDeployment) map[string]any {
	t.Helper()
	var fields map[string]any
	if err := json.Unmarshal(d.Deployment, &fields); err != nil {
		t.Fatal(err)
	}
	delete(fields, "manifest")
	delete(fields, "secrets_providers")
	fields["features"] = d.Features
	return fields
}

func wantSame(t *testing.T, got, want apitype.UntypedDeployment) {
	t.Helper()
	g, w := resources(t, got), resources(t, want)
	if reflect.DeepEqual(g, w) {
		return
	}
	a, _ := json.MarshalIndent(g, "", " ")
	b, _ := json.MarshalIndent(w, "", " ")
	t.Errorf("got %s\nwant %s", a, b)
}

func TestADeploymentOfTheStockCLIComesBackAsItWas(t *testing.T) {
	s, stock := newStack(t, &bucket.Memory{}), golden(t, "stock.json")
	x := statestore.Exchange{Stack: dev, Secrets: provider(t, stock)}
	version, err := s.Import(t.Context(), x, stock)
	if err != nil || version != 1 {
		t.Fatalf("version %d, %v", version, err)
	}
	got, err := s.Export(t.Context(), x, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, got, stock) // ciphertexts included
	if got, err = s.Export(t.Context(), statestore.Exchange{Stack: dev}, 0, false); err != nil {
		t.Fatalf("without a key: %v", err)
	}
	wantSame(t, got, stock)
	if got.Version != stock.Version {
		t.Errorf("deployment version %d, was %d", got.Version, stock.Version)
	}
	plain, err := s.Export(t.Context(), x, version, true)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, plain, golden(t, "stock_plain.json"))
}

func TestSecretsMoveFromOneProviderToTheOther(t *testing.T) {
	s, stock := newStack(t, &bucket.Memory{}), golden(t, "stock.json")
	withPassphrase := provider(t, stock)
	if _, err := s.Import(t.Context(), statestore.Exchange{Stack: dev, Secrets: withPassphrase}, stock); err != nil {
		t.Fatal(err)
	}
	plain, err := s.Export(t.Context(), statestore.Exchange{Stack: dev, Secrets: withPassphrase}, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	own := statestore.Exchange{Stack: dev} // the service's
	if _, err := s.Import(t.Context(), own, plain); err != nil {
		t.Fatal(err)
	}
	sealed, err := s.Export(t.Context(), own, 0, false)
	if err != nil || bytes.Contains(sealed.Deployment, []byte("plaintext")) ||
		bytes.Contains(sealed.Deployment, []byte("hush")) {
		t.Fatalf("%s, %v", sealed.Deployment, err)
	}
	again, err := s.Export(t.Context(), own, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, again, golden(t, "stock_plain.json"))
	back, err := s.Export(t.Context(), statestore.Exchange{Stack: dev, Secrets: withPassphrase}, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := newStack(t, &bucket.Memory{}).Import(t.Context(),
		statestore.Exchange{Stack: dev, Secrets: withPassphrase}, back); err != nil {
		t.Fatalf("encrypted anew with the passphrase: %v", err)
	}
}

// TestAnExportOfTheStockCLIIsOfItsStack has the section with which the service answers the stock CLI: the stack by its
// name.
func TestAnExportOfTheStockCLIIsOfItsStack(t *testing.T) {
	s, own := newStack(t, &bucket.Memory{}), statestore.Exchange{Stack: dev}
	if _, err := s.Import(t.Context(), own, golden(t, "stock_plain.json")); err != nil {
		t.Fatal(err)
	}
	exported, err := s.Export(t.Context(), own, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	for stack, theirs := range map[string]bool{dev.Stack: true, "prod": false} {
		var fields map[string]json.RawMessage
		if err := json.Unmarshal(exported.Deployment, &fields); err != nil {
			t.Fatal(err)
		}
		fields["secrets_providers"] = json.RawMessage(fmt.Sprintf(`{"type":"service","state":{"url":"http://localhost",`+
			`"owner":%q,"project":%q,"stack":%q}}`, dev.Organization, dev.Project, stack))
		in := exported
		if in.Deployment, err = json.Marshal(fields); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Import(t.Context(), own, in); (err == nil) != theirs {
			t.Errorf("of stack %s: %v", stack, err)
		}
	}
	again, err := s.Export(t.Context(), own, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	wantSame(t, again, golden(t, "stock_plain.json"))
}

func TestAnEmptyStackExportsAnEmptyDeployment(t *testing.T) {
	d, err := newStack(t, &bucket.Memory{}).Export(t.Context(), statestore.Exchange{Stack: dev}, 0, false)
	if err != nil || d.Version != 3 || bytes.Contains(d.Deployment, []byte("urn")) {
		t.Fatalf("%+v, %v", d, err)
	}
}

func TestADeploymentThatCannotBeImportedIsRefusedWithAReason(t *testing.T) {
	good := golden(t, "stock.json")
	replace := func(old, new string) apitype.UntypedDeployment {
		d := good
		d.Deployment = bytes.ReplaceAll(append([]byte(nil), good.Deployment...), []byte(old), []byte(new))
		if bytes.Equal(d.Deployment, good.Deployment) {
			t.Fatalf("%s is not in the deployment", old)
		}
		return d
	}
	newer, older, odd := good, good, good
	newer.Version, older.Version, odd.Features = 5, 2, []string{"teleport"}
	with := provider(t, good)
	wrong := with
	wrong.Key = bytes.Repeat([]byte{1}, 32)
	for _, c := range []struct {
		name    string
		in      apitype.UntypedDeployment
		secrets deployments.SecretsProvider
		says    string
	}{
		{"a newer version", newer, with, "deployment version 5"},
		{"an older version", older, with, "too old"},
		{"an unknown feature", odd, with, `the feature "teleport"`},
		{"another stack", replace("urn:pulumi:dev::web::", "urn:pulumi:dev::shop::"), with, "another stack"},
		{"a missing parent", replace("pulumi:pulumi:Stack::web-dev\",\n                \"custom\"",
			"pulumi:pulumi:Stack::web-x\",\n                \"custom\""), with, "is missing or listed after it"},
		{"a component with an id", replace(`"custom": false,`, `"custom": false, "id": "x",`), with, "component"},
		{"no passphrase", good, deployments.SecretsProvider{}, "passphrase"},
		{"a wrong passphrase", good, wrong, "decrypt"},
		{"an unknown secrets provider", replace(`"passphrase"`, `"awskms"`), with, "awskms"},
		{"an unknown signature", replace("5cf8f73096256a8f31e491e813e4eb8e", "00000000000000000000000000000000"), with,
			"signature"},
		{"no JSON", apitype.UntypedDeployment{Version: 3, Deployment: json.RawMessage(`{"resources": [`)}, with,
			"JSON"},
		{"a field of another type", replace(`"custom": true`, `"custom": "yes"`), with, "resource"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStack(t, &bucket.Memory{})
			_, err := s.Import(t.Context(), statestore.Exchange{Stack: dev, Secrets: c.secrets}, c.in)
			if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), c.says) {
				t.Fatalf("got %s: %v", deployments.CodeOf(err), err)
			}
			if h, err := s.Head(t.Context(), dev); err != nil || h.Version != 0 || h.Active != nil {
				t.Errorf("the head is %+v, %v", h, err)
			}
		})
	}
}

func TestACheckpointEditedByHandIsReadOrRefusedWithItsName(t *testing.T) {
	objects := &bucket.Memory{}
	s, stock := newStack(t, objects), golden(t, "stock.json")
	x := statestore.Exchange{Stack: dev, Secrets: provider(t, stock)}
	if _, err := s.Import(t.Context(), x, stock); err != nil {
		t.Fatal(err)
	}
	const key = "stacks/organization/web/dev/checkpoints/1.json.zst"
	o, err := objects.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	reader, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	whole, err := reader.DecodeAll(o.Data, nil)
	if err != nil {
		t.Fatal(err)
	}
	writer, err := zstd.NewWriter(nil)
	if err != nil {
		t.Fatal(err)
	}
	var indented bytes.Buffer
	if err := json.Indent(&indented, whole, "", "  "); err != nil {
		t.Fatal(err)
	}
	without := func(text string) []byte {
		return bytes.ReplaceAll(whole, []byte(text), []byte(`"urn:pulumi:dev::web::a:b:C::x"`))
	}
	for _, c := range []struct {
		name    string
		content []byte
		says    string // nothing: it is good
	}{
		{"indented and not compressed", indented.Bytes(), ""},
		{"with another id", writer.EncodeAll(bytes.ReplaceAll(whole, []byte("site-1"), []byte("site-2")), nil), ""},
		{"without a provider", writer.EncodeAll(without(`"urn:pulumi:dev::web::pulumi:providers:cloud::default"`), nil),
			"is missing or listed after it"},
		{"cut short", writer.EncodeAll(whole[:len(whole)/2], nil), "line"},
		{"cut short while compressed", o.Data[:len(o.Data)/2], "damaged"},
		{"with a damaged secret", writer.EncodeAll(bytes.ReplaceAll(whole, []byte(`"ciphertext":"v1:`),
			[]byte(`"ciphertext":"v2:`)), nil), "decrypt"},
		{"emptied", nil, "JSON"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := objects.Put(t.Context(), key, c.content, bucket.Condition{}); err != nil {
				t.Fatal(err)
			}
			fresh, err := statestore.New(objects, statestore.Options{Master: storetest.Master})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := fresh.Checkpoint(t.Context(), dev, 1, x.Secrets); deployments.CodeOf(
				err) != deployments.CodeFormat {
				t.Fatalf("the change is not noticed: %v", err)
			}
			if err := fresh.AdoptStack(t.Context(), dev); err != nil {
				t.Fatal(err)
			}
			_, err = fresh.Checkpoint(t.Context(), dev, 1, x.Secrets)
			if c.says == "" && err == nil {
				return
			}
			if c.says == "" || deployments.CodeOf(err) != deployments.CodeFormat ||
				!strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), key) {
				t.Fatalf("got %v", err)
			}
		})
	}
}

func TestAHeadOfANewerFormatIsRefused(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	const key = "stacks/organization/web/dev/head.json"
	for content, says := range map[string]string{
		`{"format": 3, "id": {"new": "shape"}}`: "written by a newer deployctl (format 3",
		`{"id": "x"}`:                           "no format number",
		`{"format": 1, "versi`:                  "damaged",
	} {
		if _, err := objects.Put(t.Context(), key, []byte(content), bucket.Condition{}); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Head(t.Context(), dev); deployments.CodeOf(err) != deployments.CodeFormat ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("%s gave %v", content, err)
		}
	}
}

// TestTheStockCLIReadsAnExport needs the stock CLI on PATH.
func TestTheStockCLIReadsAnExport(t *testing.T) {
	cli := peertest.Path(t, "pulumi")
	s, stock := newStack(t, &bucket.Memory{}), golden(t, "stock.json")
	own := statestore.Exchange{Stack: dev}
	plainStock := golden(t, "stock_plain.json")
	if _, err := s.Import(t.Context(), own, plainStock); err != nil {
		t.Fatal(err)
	}
	with := provider(t, stock)
	ours, err := s.Export(t.Context(), statestore.Exchange{Stack: dev, Secrets: with}, 0, false)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	pulumi := func(args ...string) []byte {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), cli, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "PULUMI_HOME="+dir+"/home", "PULUMI_BACKEND_URL=file://"+dir,
			"PULUMI_SKIP_UPDATE_CHECK=true",
			"PULUMI_CONFIG_PASSPHRASE="+goldenPassphrase)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("pulumi %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.Bytes())
		}
		return out
	}
	data, err := json.Marshal(ours)
	if err != nil {
		t.Fatal(err)
	}
	for file, content := range map[string]string{
		"Pulumi.yaml":     "name: web\nruntime: yaml\n",
		"Pulumi.dev.yaml": fmt.Sprintf("encryptionsalt: %s\n", with.Salt),
		"ours.json":       string(data),
	} {
		if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pulumi("stack", "init", "dev")
	pulumi("stack", "import", "--stack", "dev", "--file", "ours.json")
	var back apitype.UntypedDeployment
	if err := json.Unmarshal(pulumi("stack", "export", "--stack", "dev", "--show-secrets"), &back); err != nil {
		t.Fatal(err)
	}
	wantSame(t, back, plainStock)
}

// reads counts the contents that are read of each key.
type reads struct {
	bucket.Objects
	of map[string]int
}

func (r reads) Get(ctx context.Context, key string) (bucket.Object, error) {
	r.of[key]++
	return r.Objects.Get(ctx, key)
}

func TestAWriterDoesNotReadItsOwnCheckpointUnlessItWasEdited(t *testing.T) {
	objects := reads{&bucket.Memory{}, map[string]int{}}
	s, stock := newStack(t, objects), golden(t, "stock.json")
	x := statestore.Exchange{Stack: dev, Secrets: provider(t, stock)}
	if _, err := s.Import(t.Context(), x, stock); err != nil {
		t.Fatal(err)
	}
	const key = "stacks/organization/web/dev/checkpoints/1.json.zst"
	if _, err := s.Export(t.Context(), x, 1, false); err != nil || objects.of[key] != 0 {
		t.Fatalf("it was read %d times, %v", objects.of[key], err)
	}
	if _, err := objects.Put(t.Context(), key, []byte("{}"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Export(t.Context(), x, 1, false); err == nil || objects.of[key] != 1 {
		t.Fatalf("after an edit it was read %d times, %v", objects.of[key], err)
	}
}
