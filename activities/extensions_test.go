package activities

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// extendable makes a provider know nothing of what is named "toy:extra:…" until its process is extended, and answer
// calls of methods.
func extendable() grpc.ServerOption {
	var extended atomic.Bool
	return grpc.ChainUnaryInterceptor(func(
		ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler,
	) (any, error) {
		if p, ok := req.(*pulumirpc.ParameterizeRequest); ok {
			extended.Store(true)
			return &pulumirpc.ParameterizeResponse{Name: p.GetValue().GetName(), Version: p.GetValue().GetVersion()}, nil
		}
		if strings.Contains(fmt.Sprint(req), "toy:extra:") && !extended.Load() {
			return nil, status.Error(codes.NotFound, "toy:extra is not known")
		}
		if _, ok := req.(*pulumirpc.CallRequest); ok {
			return &pulumirpc.CallResponse{}, nil
		}
		return next(ctx, req)
	})
}

func TestAProviderIsExtendedBeforeEveryCallThatNeedsItThroughTheRealCore(t *testing.T) {
	const options = "options: {package: extra}}"
	for name, step := range map[string]string{
		"a resource": "{register: it, type: 'toy:extra:Thing', properties: {name: a}, " + options,
		"a component": "{register: it, type: 'toy:extra:Box', remote: true, component: true, properties: {name: a}, " +
			options,
		"a read":     "{read: it, type: 'toy:extra:Thing', id: '${plain.id}', " + options,
		"a function": "{invoke: it, token: 'toy:extra:get', args: {ask: why}, " + options,
		"a method":   "{call: it, token: 'toy:extra:Thing/method', " + options,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			result, run := h.carryOut(deployments.UpdateRequest{Bundle: h.upload(scenarioProject(`
steps:
  - {register: plain, type: 'toy:index:Thing', properties: {name: there}}
  - {await: [plain]}
  - {invoke: early, token: 'toy:extra:get', expectError: toy:extra is not known}
  - {await: [early]}
  - {package: extra, plugin: toy, extension: {name: extra, version: 1.0.0, value: x}}
  - ` + step + "\n"))})
			if result.Status != engine.StatusSucceeded {
				t.Fatalf("%+v %+v\n%s", result, run.emits, h.log())
			}
			states, _ := run.core.Snapshot()
			for _, s := range states {
				belongs := s.Type == "toy:extra:Thing" // a component registers itself, and belongs to no extension
				if s.Extension.Empty() == belongs {
					t.Errorf("%s has the extension %q", s.URN, s.Extension.Digest)
				}
			}
		})
	}
}

func TestAnExtensionNeedsANameAndAVersion(t *testing.T) {
	for want, extension := range map[string]*pulumirpc.Parameterization{
		"an extension of package p needs a name":      {Version: "1.0.0"},
		`version "new" of extension e of package p: `: {Name: "e", Version: "new"},
	} {
		w := newHouse(t).openWild(deployments.UpdateRequest{})
		_, err := w.RegisterPackage(t.Context(), &pulumirpc.RegisterPackageRequest{Name: "p", Extension: extension})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", extension, err)
		}
	}
}
