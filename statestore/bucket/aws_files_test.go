package bucket

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWithKeysOfTheSettingsNoFileOfAWSIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "config")
	text := "[default]\nendpoint_url = http://elsewhere.example.test\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("AWS_CONFIG_FILE", file)
	t.Setenv("AWS_ENDPOINT_URL", "")
	cfg, err := S3Options{Region: "us-east-1", AccessKey: "id", SecretKey: "secret"}.load(t.Context())
	if err != nil || cfg.BaseEndpoint != nil {
		t.Errorf("the file decides about the endpoint: %v, %v", cfg.BaseEndpoint, err)
	}
}
