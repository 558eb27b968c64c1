package providers_test

import (
	"os"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/providers"
	"github.com/deployctl/deployctl/providers/s3"
)

func TestDefaultsReachThePluginByItsEnvironmentAndStayOutOfThatOfItsCommands(t *testing.T) {
	if environment := (providers.Defaults{}).Environment(); environment != nil {
		t.Errorf("no defaults are %q", environment)
	}
	want := providers.Defaults{S3: s3.Config{Endpoint: "http://127.0.0.1:9", Region: "r", AccessKey: "id",
		SecretKey: `a "secret"`}}
	for _, entry := range want.Environment() {
		name, value, _ := strings.Cut(entry, "=")
		t.Setenv(name, value)
	}
	got, err := providers.TakeDefaults()
	if err != nil || got != want {
		t.Errorf("%+v, %v", got, err)
	}
	for _, entry := range os.Environ() {
		if strings.Contains(entry, "127.0.0.1:9") {
			t.Errorf("commands get %q", entry)
		}
	}
	if again, err := providers.TakeDefaults(); err != nil || again != (providers.Defaults{}) {
		t.Errorf("they are taken twice: %+v, %v", again, err)
	}
}
