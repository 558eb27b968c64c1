package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func load(t *testing.T, file string, flags map[Key]string, variables map[string]string) (Settings, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if file != "" {
		if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return Load(Sources{
		Flag:     func(k Key) (string, bool) { text, ok := flags[k]; return text, ok },
		Variable: func(name string) string { return variables[name] },
		File:     path,
	})
}

func TestAFlagBeatsAVariableBeatsTheFileBeatsTheDefault(t *testing.T) {
	file := "temporal:\n  address: file:1\n  namespace: file\ns3:\n  bucket: file\n"
	s, err := load(t, file, map[Key]string{TemporalAddress: "flag:1"},
		map[string]string{"DEPLOYCTL_TEMPORAL_ADDRESS": "variable:1", "DEPLOYCTL_TEMPORAL_NAMESPACE": "variable"})
	if err != nil {
		t.Fatal(err)
	}
	for key, want := range map[Key][2]string{
		TemporalAddress:   {"flag:1", "flag --temporal-address"},
		TemporalNamespace: {"variable", "DEPLOYCTL_TEMPORAL_NAMESPACE"},
		S3Bucket:          {"file", s.File()},
		S3Region:          {"us-east-1", "default"},
		Server:            {"", ""},
	} {
		if s.Get(key) != want[0] || s.Source(key) != want[1] {
			t.Errorf("%s is %q from %q; want %q from %q", key, s.Get(key), s.Source(key), want[0], want[1])
		}
	}
}

func TestASecretCannotComeFromAFlag(t *testing.T) {
	s, err := load(t, "", map[Key]string{Token: "argv"}, nil)
	if err != nil || s.Get(Token) != "" {
		t.Fatalf("token %q, %v", s.Get(Token), err)
	}
}

func TestASecretMayBeInAFileOfItsOwn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("hidden\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := load(t, "token-file: "+path, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := s.Secret(Token); err != nil || text != "hidden" {
		t.Fatalf("token %q, %v", text, err)
	}
}

func TestASecretThatEverybodyCanReadIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o640: false, 0o644: true, 0o602: true} {
		if err := os.WriteFile(path, []byte("hidden\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		s, err := load(t, "key-file: "+path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Secret(Master); (err != nil) != refused {
			t.Errorf("mode %o: %v", mode, err)
		}
		if err := os.WriteFile(path, []byte("key: hidden\n"), mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(Sources{Variable: os.Getenv, File: path, Named: true}); (err != nil) != refused {
			t.Errorf("a configuration file with a secret in it, mode %o: %v", mode, err)
		}
	}
}

func TestAMistypedSettingIsAnErrorThatNamesIt(t *testing.T) {
	_, err := load(t, "temporal:\n  place: x:1\n", nil, nil)
	if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), `"temporal.place"`) {
		t.Fatal(err)
	}
}

func TestAChildFindsTheFileThatWasNamedWhereverItWorks(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("mine.yaml", []byte("retention:\n  days: 7\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Load(Sources{Variable: os.Getenv, File: "mine.yaml", Named: true})
	if err != nil {
		t.Fatal(err)
	}
	environ, err := s.Inherit([]string{FileVariable + "=another.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	_, file, _ := strings.Cut(environ[len(environ)-1], FileVariable+"=")
	child, err := Load(Sources{Variable: os.Getenv, File: file, Named: true})
	if err != nil || child.Get(RetentionDays) != "7" {
		t.Errorf("the child is told %v and finds %q, %v", environ, child.Get(RetentionDays), err)
	}
}

func TestAFileThatNobodyNamedIsNotAskedFor(t *testing.T) {
	s, err := load(t, "", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if environ, err := s.Inherit(nil); err != nil || len(environ) != 0 {
		t.Errorf("the child is told %v, %v", environ, err)
	}
}
