package pluginhost

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	codegenrpc "github.com/pulumi/pulumi/sdk/v3/proto/go/codegen"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// ErrNotGenerated says that a language host writes no programs.
var ErrNotGenerated = errors.New("the language host writes no programs")

// GenerateProgram returns the text of a program in the host's language, from its declarations in PCL. These may name
// variables that they do not declare. ErrNotGenerated: the language host has no generator.
func (l *Language) GenerateProgram(ctx context.Context, source string) (string, error) {
	resp, err := l.client.GenerateProgram(ctx, &pulumirpc.GenerateProgramRequest{
		Source: map[string]string{"main.pp": source}, LoaderTarget: l.host.address,
	})
	if status.Code(err) == codes.Unimplemented {
		return "", ErrNotGenerated
	}
	if err != nil {
		return "", l.explain("generating a program", err)
	}
	for _, d := range resp.GetDiagnostics() {
		if d.GetSeverity() == codegenrpc.DiagnosticSeverity_DIAG_ERROR {
			return "", errors.New(strings.Join([]string{d.GetSummary(), d.GetDetail()}, ": "))
		}
	}
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(resp.GetSource())) {
		text.Write(resp.GetSource()[name])
	}
	return text.String(), nil
}
