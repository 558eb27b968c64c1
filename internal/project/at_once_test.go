package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// crowd is how many commands change a file at once.
const crowd = 10

func atOnce(n int, do func(i int)) {
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() { do(i) })
	}
	group.Wait()
}

// Ten commands read the same file, and then save what each has changed: keys, parts of the value of one key and
// removals.
func TestTenCommandsAtOnceLoseNoConfiguration(t *testing.T) {
	for _, extension := range []string{"yaml", "json"} {
		text := "# ours\nconfig:\n  web:kept: \"1\"\n"
		for i := range crowd {
			text += fmt.Sprintf("  web:gone%d: \"1\"\n", i)
		}
		if extension == "json" {
			text = `{"config": {"web:kept": "1"}}`
		}
		name := "stack." + extension
		dir := lay(t, map[string]string{"Pulumi.yaml": "name: web\nruntime: yaml\n", name: text})
		p, err := Find(dir)
		if err != nil {
			t.Fatal(err)
		}
		var stacks [crowd]*Stack
		for i := range stacks {
			if stacks[i], err = p.StackIn("dev", filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
		atOnce(crowd, func(i int) {
			s, number := stacks[i], strconv.Itoa(i)
			err := s.Set(config.MustMakeKey("web", "key"+number), config.NewValue(number), false)
			if err == nil {
				err = s.Set(config.MustMakeKey("web", "map.part"+number), config.NewValue("x"), true)
			}
			if err == nil && extension == "yaml" {
				err = s.Remove(config.MustMakeKey("web", "gone"+number), false)
			}
			if err == nil {
				err = s.Save()
			}
			if err != nil {
				t.Error(err)
			}
		})
		after, err := p.StackIn("dev", filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if keys := after.Keys(); len(keys) != crowd+2 {
			t.Errorf("the keys are %v", keys)
		}
		for i := range crowd {
			if _, ok, err := after.Get(config.MustMakeKey("web", "map.part"+strconv.Itoa(i)), true); !ok || err != nil {
				t.Errorf("%s: part %d of the map is gone: %v", extension, i, err)
			}
		}
	}
}

// Two that give a stack its key at once would lose what one of them has encrypted. It takes long to derive a key.
func TestOneOfThreeCommandsAtOnceGivesAStackItsKey(t *testing.T) {
	dir := lay(t, map[string]string{"Pulumi.yaml": "name: web\nruntime: yaml\n",
		"Pulumi.dev.yaml": "secretsprovider: passphrase\n"})
	var secrets [3]*Secrets
	for i := range secrets {
		secrets[i] = &Secrets{Stack: opened(t, dir), Passphrase: func(bool) (string, error) { return "open", nil }}
	}
	var mu sync.Mutex
	salts := map[string]bool{}
	atOnce(len(secrets), func(i int) {
		provider, err := secrets[i].Provider(t.Context())
		if err != nil && deployments.CodeOf(err) != deployments.CodeConflict {
			t.Error(err)
		}
		if err == nil {
			mu.Lock()
			salts[provider.Salt] = true
			mu.Unlock()
		}
	})
	after, err := (&Secrets{Stack: opened(t, dir)}).Describe()
	if err != nil || len(salts) != 1 || !salts[after.Salt] {
		t.Errorf("%d keys were used, and the file has %+v: %v", len(salts), after, err)
	}
}

func TestWhatAPersonWritesMeanwhileIsKept(t *testing.T) {
	dir := lay(t, map[string]string{"Pulumi.yaml": "name: web\nruntime: yaml\n", "Pulumi.dev.yaml": "config: {}\n"})
	s := opened(t, dir)
	text := "# by hand\nconfig:\n  web:by: hand\n"
	if err := os.WriteFile(s.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(config.MustMakeKey("web", "size"), config.NewValue("3"), false); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(s.Path); err != nil || string(got) != text+"  web:size: \"3\"\n" {
		t.Errorf("the file is\n%s%v", got, err)
	}
	if err := os.WriteFile(s.Path, []byte("config:\n  web:a: ["), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Set(config.MustMakeKey("web", "size"), config.NewValue("4"), false); err != nil {
		t.Fatal(err)
	}
	if err := s.Save(); err == nil {
		t.Error("a file that is not valid is written over")
	}
	other := &Secrets{Stack: rewritten(t, dir, "config: {}\n"), Passphrase: func(bool) (string, error) { return "x", nil }}
	if err := other.Use(context.Background(), SecretsPassphrase); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.Path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := other.Stack.Save(); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("another secrets provider is saved over what was written meanwhile: %v", err)
	}
	if got, err := os.ReadFile(s.Path); err != nil || string(got) != text {
		t.Errorf("the file is\n%s%v", got, err)
	}
}

// rewritten writes the file of the stack dev, and loads it.
func rewritten(t *testing.T, dir, text string) *Stack {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "Pulumi.dev.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return opened(t, dir)
}
