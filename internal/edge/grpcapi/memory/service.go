// Package memory is a deployments.Service that behaves, in memory: the tests of the edges run against it. Updates play
// scripts instead of driving anything.
package memory

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Script is what an update does.
type Script struct {
	Items  []deployments.WatchEvent // without the End
	Status string                   // empty means succeeded
	Error  string
	// Changes are counted; Resources is what the stack has afterwards.
	Changes   map[string]int
	Resources int
	// Hold keeps the update from ending until it is closed or the update is cancelled; nil does not.
	Hold <-chan struct{}
	// Lost: somebody has closed its workflow.
	Lost bool
}

// Service is the service. Its fields may be set before it is used.
type Service struct {
	// Play says what an update does; nil means nothing at all.
	Play func(deployments.UpdateRequest) Script
	// BeforeSubmit is called, unlocked, at the beginning of each Submit.
	BeforeSubmit func(deployments.UpdateRequest)
	// Drifted is what the last looks for drift have found.
	Drifted map[deployments.StackName]deployments.Drift

	mu        sync.Mutex
	stacks    map[deployments.StackName]*stack
	updates   map[string]*update
	requests  map[string]deployments.Accepted
	tokens    map[string]deployments.Token // by hash
	members   map[string]deployments.Member
	teams     map[string]deployments.Team  // by ORGANIZATION/NAME
	trusts    map[string]deployments.Trust // the same
	profiles  map[string]deployments.Profile
	files     map[string][]byte
	bundles   map[string]deployments.Manifest
	schedules map[deployments.ScheduleName]*deployments.Schedule
	webhooks  map[deployments.WebhookName]deployments.Webhook
	previews  int
	mode      deployments.Mode
	quotas    map[string]deployments.QuotaUse
	// Requests are all submissions that were accepted, Resolved all answers, in order.
	Requests []deployments.UpdateRequest
	Resolved []string
	// Edits are all edits of states, dry runs too.
	Edits []deployments.EditRequest
	// Audited is the audit log.
	Audited []deployments.AuditEntry
}

type stack struct {
	info       deployments.StackInfo
	history    []deployments.UpdateInfo
	deployment apitype.UntypedDeployment
}

type update struct {
	info   deployments.UpdateInfo
	script Script
	cancel chan struct{}
	forced bool
	once   sync.Once
}

var _ deployments.Service = (*Service)(nil)

// New makes an empty service.
func New() *Service {
	return &Service{
		stacks: map[deployments.StackName]*stack{}, updates: map[string]*update{},
		requests: map[string]deployments.Accepted{},
		tokens:   map[string]deployments.Token{}, members: map[string]deployments.Member{},
		teams: map[string]deployments.Team{}, trusts: map[string]deployments.Trust{}, files: map[string][]byte{},
		profiles:  map[string]deployments.Profile{},
		bundles:   map[string]deployments.Manifest{},
		schedules: map[deployments.ScheduleName]*deployments.Schedule{},
		webhooks:  map[deployments.WebhookName]deployments.Webhook{},
		Drifted:   map[deployments.StackName]deployments.Drift{},
	}
}

// begun is when everything happens here, so that output can be compared.
var begun = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func (s *Service) find(name deployments.StackName) (*stack, error) {
	found, ok := s.stacks[name]
	if !ok {
		return nil, deployments.Errorf(deployments.CodeNotFound, "there is no stack %s", name)
	}
	return found, nil
}

// Submit accepts an update; nothing queues here.
func (s *Service) Submit(_ context.Context, r deployments.UpdateRequest) (deployments.Accepted, error) {
	if s.BeforeSubmit != nil {
		s.BeforeSubmit(r)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if answer, ok := s.requests[r.RequestID]; ok {
		return answer, nil
	}
	found, err := s.find(r.Stack)
	if err != nil {
		return deployments.Accepted{}, err
	}
	if previewed, confirmed := r.Previewed(); confirmed && previewed != found.info.Version {
		return deployments.Accepted{}, deployments.Errorf(deployments.CodeConflict, "stack %s is at version %d now",
			r.Stack, found.info.Version)
	}
	if _, confirmed := r.Previewed(); confirmed && found.info.Active != nil {
		return deployments.Accepted{}, deployments.Errorf(deployments.CodeConflict, "stack %s is being changed by %s",
			r.Stack, found.info.Active.Update)
	}
	if found.info.Active != nil && r.OnBusy == deployments.OnBusyFail && !r.DryRun {
		return deployments.Accepted{}, deployments.Errorf(deployments.CodeConflict, "stack %s is busy: %s runs",
			r.Stack, found.info.Active.Update)
	}
	if _, ok := s.bundles[r.Bundle]; !ok && r.Bundle != "" {
		return deployments.Accepted{}, deployments.Errorf(deployments.CodeInvalid, "there is no bundle %s", r.Bundle)
	}
	name := deployments.UpdateName{StackName: r.Stack, Version: s.version(found, r.DryRun)}
	u := &update{cancel: make(chan struct{}), info: deployments.UpdateInfo{
		Update: name, Kind: r.Kind, DryRun: r.DryRun, Status: deployments.StatusRunning, Message: r.Message,
		Initiator: r.Initiator,
		Started:   begun,
	}}
	if s.Play != nil {
		u.script = s.Play(r)
	}
	s.updates[name.String()] = u
	if !r.DryRun {
		found.info.Active = &u.info
	}
	s.Requests = append(s.Requests, r)
	accepted := deployments.Accepted{Update: name}
	s.requests[r.RequestID] = accepted
	return accepted, nil
}

func (s *Service) version(found *stack, dryRun bool) string {
	if dryRun {
		s.previews++
		return fmt.Sprintf("p%d", s.previews)
	}
	return strconv.Itoa(found.info.Version + 1)
}

// Watch plays the script.
func (s *Service) Watch(ctx context.Context, name deployments.UpdateName, fn func(deployments.WatchEvent) error) error {
	s.mu.Lock()
	u, ok := s.updates[name.String()]
	s.mu.Unlock()
	if !ok {
		return deployments.Errorf(deployments.CodeNotFound, "there is no update %s", name)
	}
	for _, item := range u.script.Items {
		if err := fn(item); err != nil {
			return err
		}
	}
	status := deployments.StatusSucceeded
	if u.script.Status != "" {
		status = u.script.Status
	}
	if u.script.Hold != nil {
		select {
		case <-u.script.Hold:
		case <-u.cancel:
			status = deployments.StatusCancelled
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	end := s.settle(u, status)
	return fn(deployments.WatchEvent{End: &end})
}

// settle ends an update, once.
func (s *Service) settle(u *update, status string) deployments.UpdateInfo {
	s.mu.Lock()
	defer s.mu.Unlock()
	u.once.Do(func() {
		u.info.Status, u.info.Error, u.info.Changes = status, u.script.Error, u.script.Changes
		u.info.Ended, u.info.Resources = begun.Add(2500*time.Millisecond), u.script.Resources
		if found := s.stacks[u.info.Update.StackName]; found != nil && !u.info.DryRun {
			found.info.Active, found.info.Updated, found.info.Resources = nil, u.info.Ended, u.info.Resources
			found.info.Version = u.info.Update.Number()
			found.history = append([]deployments.UpdateInfo{u.info}, found.history...)
		}
	})
	return u.info
}

// Cancel ends an update that is held.
func (s *Service) Cancel(_ context.Context, name deployments.UpdateName, forced bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.updates[name.String()]
	if !ok {
		return deployments.Errorf(deployments.CodeNotFound, "there is no update %s", name)
	}
	select {
	case <-u.cancel:
	default:
		close(u.cancel)
	}
	u.forced = u.forced || forced
	return nil
}

// Cancelled says whether an update was asked to end.
func (s *Service) Cancelled(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	u, ok := s.updates[name]
	if !ok {
		return false
	}
	select {
	case <-u.cancel:
		return true
	default:
		return false
	}
}

// Resolve keeps the answer.
func (s *Service) Resolve(_ context.Context, name deployments.UpdateName, urn, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Resolved = append(s.Resolved, fmt.Sprintf("%s %s %q", name, urn, id))
	return nil
}

// Encrypt seals for one stack, which must exist; it hides nothing.
func (s *Service) Encrypt(_ context.Context, name deployments.StackName, plain []string) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.find(name); err != nil {
		return nil, err
	}
	sealed := make([]string, len(plain))
	for i, text := range plain {
		sealed[i] = "m1:" + base64.StdEncoding.EncodeToString([]byte(name.String()+"\x00"+text))
	}
	return sealed, nil
}

// Decrypt opens what Encrypt sealed for the same stack.
func (s *Service) Decrypt(_ context.Context, name deployments.StackName, sealed []string) ([]string, error) {
	plain := make([]string, len(sealed))
	for i, text := range sealed {
		raw, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(text, "m1:"))
		rest, ours := strings.CutPrefix(string(raw), name.String()+"\x00")
		if err != nil || !ours {
			return nil, deployments.Errorf(deployments.CodeInvalid, "a text was not sealed for stack %s", name)
		}
		plain[i] = rest
	}
	return plain, nil
}

// Missing answers which files are not there.
func (s *Service) Missing(_ context.Context, _ deployments.StackName, m deployments.Manifest) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var missing []string
	for _, f := range m.Files {
		if _, ok := s.files[f.Digest]; !ok && !slices.Contains(missing, f.Digest) {
			missing = append(missing, f.Digest)
		}
	}
	return missing, nil
}

// PutFile keeps a file.
func (s *Service) PutFile(_ context.Context, _ deployments.StackName, digest string, content []byte) error {
	if digestOf(content) != digest {
		return deployments.Errorf(deployments.CodeInvalid, "the content is not what its digest says")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.files[digest] = content
	return nil
}

// PutManifest keeps a manifest.
func (s *Service) PutManifest(_ context.Context, _ deployments.StackName, m deployments.Manifest) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range m.Files {
		if _, ok := s.files[f.Digest]; !ok {
			return "", deployments.Errorf(deployments.CodeInvalid, "%s was not uploaded", f.Path)
		}
	}
	text, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	s.bundles[digestOf(text)] = m
	return digestOf(text), nil
}

// Bundle gives the files of a bundle by path.
func (s *Service) Bundle(digest string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	files := map[string]string{}
	for _, f := range s.bundles[digest].Files {
		files[f.Path] = string(s.files[f.Digest])
	}
	return files
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// Ongoing lists the updates that have not ended, by name.
func (s *Service) Ongoing(_ context.Context, organization string) ([]deployments.UpdateInfo, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []deployments.UpdateInfo
	for _, u := range s.updates {
		if u.info.Ended.IsZero() && (organization == "" || u.info.Update.Organization == organization) {
			list = append(list, u.info)
		}
	}
	slices.SortFunc(list, func(a, b deployments.UpdateInfo) int {
		return strings.Compare(a.Update.String(), b.Update.String())
	})
	return list, nil
}
