package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestAProgramWithoutServersNeverStartsItselfAsTheEmbeddedService(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := embeddedProgram()
	if program != "" || deployments.CodeOf(err) != deployments.CodeInvalid ||
		!strings.Contains(err.Error(), filepath.Base(companion(self))) {
		t.Errorf("without it: %q, %v", program, err)
	}
	if err := os.WriteFile(companion(self), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(companion(self)) })
	if program, err = embeddedProgram(); err != nil || program != companion(self) {
		t.Errorf("with it beside: %q, %v", program, err)
	}
	if err := becomeEmbedded(t.Context()); err == nil || !strings.Contains(err.Error(), companion(self)) {
		t.Errorf("a program that cannot be executed is reported as %v", err)
	}
	hasServers = true
	t.Cleanup(func() { hasServers = false })
	if program, err = embeddedProgram(); err != nil || program != self {
		t.Errorf("with servers: %q, %v", program, err)
	}
}
