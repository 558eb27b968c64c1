package deployments

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/engine"
)

// Validate reports, as CodeInvalid, the first field of the request that is not valid.
func (r UpdateRequest) Validate() error {
	for _, check := range []func() error{
		r.Stack.Validate, func() error { return ValidateRequestID(r.RequestID) },
		func() error { _, err := r.Tags(); return err },
		r.validateModes, r.validateProgram, r.validateSelection, r.validateImports, r.validateLease, r.validateSize,
	} {
		if err := check(); err != nil {
			return err
		}
	}
	return nil
}

// tagsKey is the configuration that sets tags of the stack.
const tagsKey = "pulumi:tags"

// Tags returns the tags that the configuration sets, pulumi:tags: an object of texts. nil if it sets none.
func (r UpdateRequest) Tags() (map[string]string, error) {
	v, set := r.Config[tagsKey]
	if !set {
		return nil, nil
	}
	tags := map[string]string{}
	if v.Secret || json.Unmarshal([]byte(v.Value), &tags) != nil {
		return nil, Errorf(CodeInvalid, "%s must be an object whose values are texts, not secret, such as {team: web}; "+
			"put a number into quotes", tagsKey)
	}
	return tags, ValidateTags(tags)
}

func (r UpdateRequest) validateModes() error {
	switch r.Kind {
	case engine.KindUp, engine.KindRefresh, engine.KindDestroy, engine.KindImport:
	case "":
		return Errorf(CodeInvalid, "the request does not say what kind of update it is: up, refresh, destroy or import")
	default:
		return Errorf(CodeInvalid, "%s is not a kind of update: ask for up, refresh, destroy or import",
			quoted(string(r.Kind)))
	}
	switch r.OnBusy {
	case "", OnBusyQueue, OnBusyFail, OnBusySupersede:
	default:
		return Errorf(CodeInvalid, "%s is not known for a busy stack: ask to queue, fail or supersede",
			quoted(string(r.OnBusy)))
	}
	switch {
	case r.RunProgram && r.Kind == engine.KindUp:
		return Errorf(CodeInvalid, "an up runs the program anyway: leave out --run-program")
	case r.ClearPendingCreates && r.Kind != engine.KindRefresh:
		return Errorf(CodeInvalid, "only a refresh forgets pending creates (--clear-pending-creates)")
	case r.TrySettle && (r.Kind != engine.KindRefresh || !r.DryRun || r.RunProgram || r.Settle != nil):
		return Errorf(CodeInvalid, "settle rules are tried by a preview of a refresh without a program")
	case r.Survey && (r.Kind != engine.KindRefresh && r.Kind != engine.KindUp || !r.DryRun || r.RunProgram ||
		r.Settle != nil):
		return Errorf(CodeInvalid, "what a stack has left is told by a preview of an up, or of a refresh without a program")
	case r.Settle != nil && (r.Kind != engine.KindRefresh || r.RunProgram || r.ClearPendingCreates):
		return Errorf(CodeInvalid, "only a refresh without a program settles alone")
	case r.Plan != nil && r.Kind != engine.KindUp:
		return Errorf(CodeInvalid, "only an up follows a saved plan")
	case r.Parallel < 0 || r.Parallel > MaxParallel:
		return Errorf(CodeInvalid, "%d steps at a time are not possible: ask for 1 to %d", r.Parallel, MaxParallel)
	case r.BaseVersion != nil && *r.BaseVersion < 0:
		return Errorf(CodeInvalid, "%d is not the version of a stack", *r.BaseVersion)
	}
	if err := r.validateAnswers(); err != nil {
		return err
	}
	if err := validateText("message", r.Message, MaxMessageLength); err != nil {
		return err
	}
	return ValidateInitiator(r.Initiator)
}

// validateAnswers checks the answers about pending creates.
func (r UpdateRequest) validateAnswers() error {
	if r.Settle == nil {
		return nil
	}
	if n := len(r.Settle.Answers); n > MaxAnswers {
		return Errorf(CodeInvalid, "the request has %d answers; at most %d are possible at a time", n, MaxAnswers)
	}
	for _, a := range r.Settle.Answers {
		if err := validateAnswer(string(a.URN), a.ID); err != nil {
			return err
		}
	}
	return nil
}

func (r UpdateRequest) validateProgram() error {
	if r.Bundle != "" {
		if err := ValidateDigest(r.Bundle); err != nil {
			return err
		}
	}
	if len(r.Config) > MaxConfigKeys {
		return Errorf(CodeInvalid, "the request has %d configuration values; at most %d are allowed", len(r.Config),
			MaxConfigKeys)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Config)) {
		if err := ValidateConfigKey(key); err != nil {
			return err
		}
	}
	if err := r.validateEnvironment(); err != nil {
		return err
	}
	if err := r.validatePolicyPacks(); err != nil {
		return err
	}
	return r.Secrets.Validate()
}

func (r UpdateRequest) validateEnvironment() error {
	if len(r.Environment) > MaxEnvironment {
		return Errorf(CodeInvalid, "the request has %d environment variables; at most %d are allowed",
			len(r.Environment), MaxEnvironment)
	}
	for _, variable := range r.Environment {
		if len(variable) < 2 || !strings.Contains(variable[1:], "=") || strings.Contains(variable, "\x00") {
			return Errorf(CodeInvalid, "an environment variable is not written as NAME=VALUE, or has a NUL")
		}
	}
	return nil
}

func (r UpdateRequest) validatePolicyPacks() error {
	switch {
	case len(r.PolicyPacks) > MaxPolicyPacks:
		return Errorf(CodeInvalid, "the request has %d policy packs; at most %d are allowed", len(r.PolicyPacks),
			MaxPolicyPacks)
	case len(r.PolicyPacks) > 0 && (r.Kind != engine.KindUp || r.Bundle == ""):
		return Errorf(CodeInvalid, "only an up, or the preview of one, takes policy packs (--policy-pack)")
	}
	for _, p := range r.PolicyPacks {
		if !localPath(p.Dir) {
			return Errorf(CodeInvalid, "%s is not the directory of a policy pack in the bundle", quoted(p.Dir))
		}
		if p.Config != "" && !json.Valid([]byte(p.Config)) {
			return Errorf(CodeInvalid, "the configuration of a policy pack is not JSON")
		}
	}
	return nil
}

func (r UpdateRequest) validateSelection() error {
	if len(r.Targets) > 0 && len(r.Excludes) > 0 {
		return Errorf(CodeInvalid, "the request has targets and excludes: name either what is updated (--target) or "+
			"what is not (--exclude)")
	}
	switch {
	case r.ExcludeProtected && r.Kind != engine.KindDestroy:
		return Errorf(CodeInvalid, "only a destroy keeps protected resources (--exclude-protected)")
	case r.ExcludeProtected && len(r.Targets) > 0:
		return Errorf(CodeInvalid, "the request has targets and excludes what is protected: leave out --target or "+
			"--exclude-protected")
	case r.ExcludeProtected && r.IgnoreProtect:
		return Errorf(CodeInvalid, "the request both keeps and deletes what is protected: leave out "+
			"--exclude-protected or --ignore-protect")
	}
	if len(r.Adopt) > 0 && r.Kind != engine.KindUp {
		return Errorf(CodeInvalid, "only an up, or the preview of one, takes over what exists (--adopt)")
	}
	if r.Force && r.Kind != engine.KindUp {
		return Errorf(CodeInvalid, "only an up, or the preview of one, reconciles what has not changed (--force)")
	}
	for _, list := range [][]string{r.Targets, r.Excludes, r.Replace, r.Adopt} {
		if err := validateTargets(list); err != nil {
			return err
		}
	}
	return nil
}

func validateTargets(list []string) error {
	if len(list) > MaxTargets {
		return Errorf(CodeInvalid, "the request names %d resources; at most %d are allowed: use patterns with '*'",
			len(list), MaxTargets)
	}
	for _, target := range list {
		if err := ValidateTarget(target); err != nil {
			return err
		}
	}
	return nil
}

// validateLease checks what the client says about where it runs: it is shown with the history of the stack.
func (r UpdateRequest) validateLease() error {
	if r.Lease == nil {
		return nil
	}
	if n := len(r.Lease.Metadata); n > MaxMetadata {
		return Errorf(CodeInvalid, "the request has %d texts about where it was made; at most %d are allowed", n, MaxMetadata)
	}
	for _, key := range slices.Sorted(maps.Keys(r.Lease.Metadata)) {
		if err := validateText("name of a text about where the request was made", key, MaxMetadataKey); err != nil {
			return err
		}
		if err := validateText(quoted(key)+" of where the request was made", r.Lease.Metadata[key],
			MaxMessageLength); err != nil {
			return err
		}
	}
	return nil
}

// Validate reports, as CodeInvalid, why the secrets provider is not valid.
func (p SecretsProvider) Validate() error {
	switch {
	case p.Type != "" && p.Type != SecretsService && !p.NeedsClient():
		return Errorf(CodeInvalid, "the secrets provider %s is not known: use %q, %q or %q", quoted(p.Type),
			SecretsService, SecretsPassphrase, SecretsCloud)
	case len(p.Key) != 0 && len(p.Key) != dataKeySize:
		return Errorf(CodeInvalid, "the key of the secrets provider is %d bytes long; it must be %d", len(p.Key),
			dataKeySize)
	}
	return cmp.Or(validateText("salt of the secrets provider", p.Salt, MaxSaltLength),
		validateText("URL of the secrets provider", p.URL, MaxKeyURLLength),
		validateText("encrypted key of the secrets provider", p.EncryptedKey, MaxEncryptedKey))
}
