package activities

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/bags"
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/statestore"
	"github.com/gofrs/flock"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil/rpcerror"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"google.golang.org/grpc/codes"
)

// The packages whose resources are implemented in the program.
const (
	nodeDynamic   = "pulumi-nodejs"
	pythonDynamic = "pulumi-python"
)

// session is what this worker keeps of an update that it hosts: its files, plugins, values and configuration. Everything in
// it can be made again from the stored request. It is safe for concurrent use.
type session struct {
	update  deployments.UpdateName
	request deployments.UpdateRequest
	base    int
	store   *statestore.Store
	values  *bags.Codec
	config  configuration
	rules   map[string]settleRule
	retries deployments.Retries
	project *workspace.Project // nil without a program
	dir     string             // where the bundle is
	shelf   *shelf
	paces   *paces
	host    *pluginhost.Host
	log     *outputLog
	ready   chan struct{} // see sessions
	turns   turns
	talk    atomic.Pointer[conversation] // with the program that runs now, if one does

	installing sync.Mutex     // guards installed
	installed  bool           // see installDependencies
	uses       []*flock.Flock // of directories on the shelf; guarded by installing once the session is ready
	err        error
}

// root is the directory of Pulumi.yaml.
func (s *session) root() string { return s.dir }

// programDir is the directory that the program runs in.
func (s *session) programDir() string { return s.host.ProgramDir() }

// plannedImport tells whether the update takes over resources that no program declares yet.
func (s *session) plannedImport() bool { return s.request.Kind == engine.KindImport }

// digest is a keyed digest of what v is as JSON.
func (s *session) digest(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // only headers are digested, which have no value that cannot be written
	}
	mac := hmac.New(sha256.New, s.values.Key)
	mac.Write(data)
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil)[:16])
}

// tell tells people something about a resource.
func (s *session) tell(severity diag.Severity, u urn.URN, text string) {
	s.log.take(pluginhost.Message{Severity: severity, URN: u, Text: text})
}

// close ends the update's plugins and forgets its secrets.
func (s *session) close(ctx context.Context) {
	if s.host != nil {
		s.host.Close(ctx)
	}
	if s.log != nil {
		s.log.close(ctx)
	}
	s.installing.Lock()
	defer s.installing.Unlock()
	for _, lock := range s.uses {
		_ = lock.Close() // which frees it
	}
	s.uses = nil
}

// use keeps a bundle's directory until the session is closed. One use at a time.
func (s *session) use(ctx context.Context, place string) error {
	lock, err := s.shelf.use(ctx, place)
	if err == nil {
		s.uses = append(s.uses, lock)
	}
	return err
}

// providerOf gives the provider that a command names, configured.
func (s *session) providerOf(ctx context.Context, p *engine.Provider) (*pluginhost.Provider, error) {
	if p == nil {
		return nil, ours(deployments.Errorf(deployments.CodeInternal, "a resource has no provider"))
	}
	inputs, err := s.values.Decode(ctx, p.Inputs)
	if err != nil {
		return nil, ours(err)
	}
	return s.provider(ctx, p.Ref, inputs)
}

// provider gives the provider with a reference and these inputs, configured. Configuring may be tried again: it changes
// nothing outside the plugin.
func (s *session) provider(ctx context.Context, reference string, inputs resource.PropertyMap) (*pluginhost.Provider, error) {
	ref, err := providers.ParseReference(reference)
	if err != nil {
		return nil, ours(deployments.Errorf(deployments.CodeInternal, "provider %q: %w", reference, err))
	}
	u, id := ref.URN(), ref.ID()
	pkg, err := packageOf(u.Type(), inputs)
	if err != nil {
		return nil, err
	}
	if pkg.Name == nodeDynamic {
		if err := s.installDependencies(ctx); err != nil {
			return nil, err
		}
	}
	config := settings(inputs)
	digest, err := bags.Digest(s.values.Key, config)
	if err != nil {
		return nil, err
	}
	p, err := s.host.Provider(ctx, pkg, reference+"#"+digest)
	if err != nil {
		return nil, err
	}
	name, t := u.Name(), u.Type()
	_, err = p.Configure(ctx, plugin.ConfigureRequest{URN: &u, Name: &name, Type: &t, ID: &id, Inputs: config})
	return p, err
}

// unconfigured gives a provider that may check configurations.
func (s *session) unconfigured(ctx context.Context, t tokens.Type, inputs resource.PropertyMap) (*pluginhost.Provider, error) {
	pkg, err := packageOf(t, inputs)
	if err != nil {
		return nil, err
	}
	return s.host.Provider(ctx, pkg, "")
}

// retried makes a call that changes nothing, again if its provider died or turned it away.
func (s *session) retried(ctx context.Context, call func() error) error {
	var err error
	for attempt := range planAttempts {
		if err = call(); err == nil || !passing(err) {
			return err
		}
		if pause(ctx, firstRetry<<(2*attempt)) != nil {
			return err
		}
	}
	return err
}

// passing tells whether an error of a call that changes nothing may be gone when the call is made again.
func passing(err error) bool {
	if lost := (*pluginhost.LostError)(nil); errors.As(err, &lost) {
		return true
	}
	e, ok := rpcerror.FromError(err)
	if !ok {
		return false
	}
	switch e.Code() {
	case codes.Unavailable, codes.ResourceExhausted, codes.Aborted:
		return true
	default:
		return false
	}
}

// serviceError is an error of the service itself among those of providers.
type serviceError struct{ err error }

func (e *serviceError) Error() string { return e.err.Error() }
func (e *serviceError) Unwrap() error { return e.err }

// ours marks an error as one of the service.
func ours(err error) error {
	if err == nil {
		return nil
	}
	return &serviceError{err}
}

func asService(err error, target **serviceError) bool { return errors.As(err, target) }

// leaveOutcome stores what an attempt came to, as well as it can.
func (s *session) leaveOutcome(ctx context.Context, round int, result engine.StepFinished) {
	_ = persistFor(ctx, func() error { return s.store.PutOutcome(ctx, s.update, round, result) })
}

// maxRounds is how many rounds of a step settling looks for outcomes of.
const maxRounds = 16

// leftOutcome gives what a lost attempt of an operation has left.
func (s *session) leftOutcome(ctx context.Context, op int) (engine.StepFinished, bool, error) {
	for round := 1; round <= maxRounds; round++ {
		left, err := s.store.Outcome(ctx, s.update, op, round)
		if err != nil {
			return engine.StepFinished{}, false, err
		}
		if left != nil {
			return *left, true, nil
		}
	}
	return engine.StepFinished{}, false, nil
}

// persistFor tries a call again until it succeeds or the context ends.
func persistFor(ctx context.Context, call func() error) error {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		err := call()
		if err == nil {
			return nil
		}
		if pause(ctx, wait) != nil {
			return err
		}
	}
}

// secretTexts are the configuration values that must not appear in output.
func (s *session) secretTexts() []string {
	var texts []string
	for _, key := range s.config.secretKeys() {
		texts = append(texts, s.config[key].Value)
	}
	return texts
}
