package deployments

import (
	"cmp"
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Limits of requests. Each is far above practical use, and below what Temporal and the store reject.
const (
	MaxRequestIDLength  = 64
	MaxConfigKeyLength  = 256
	MaxConfigKeys       = 10_000
	MaxTargets          = 10_000
	MaxPolicyPacks      = 50
	MaxTargetLength     = 8 << 10
	MaxAnswers          = 100 // about pending creates, of a request
	MaxMessageLength    = 8 << 10
	MaxInitiatorLength  = 256
	MaxEnvironment      = 10_000
	MaxMetadata         = 500 // texts of the client of an update about where it runs
	MaxMetadataKey      = 256
	MaxTags             = 100
	MaxTagKeyLength     = 128
	MaxTagValueLength   = 1 << 10
	MaxSaltLength       = 1 << 10
	MaxKeyURLLength     = 4 << 10
	MaxEncryptedKey     = 16 << 10 // in base64
	MaxResourceIDLength = 64 << 10
	MaxValues           = 10_000 // configuration values in one call of Encrypt or Decrypt

	// What an organization has at most, so that a list of all stays short enough: tokens of each kind, members, and
	// teams and trusts each.
	MaxTokens  = 20_000
	MaxMembers = 10_000
	MaxOwned   = 1_000

	// MaxRequestSize limits the JSON of one update request. It is sent through Temporal, which rejects payloads of 2
	// MiB.
	MaxRequestSize = 3 << 19

	// MaxVersion is the last version that a stack can have.
	MaxVersion = math.MaxInt32 - 1

	dataKeySize = 32
)

var (
	validRequestID = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	validNumber    = regexp.MustCompile(`^[1-9][0-9]{0,9}$`)
	validPreview   = regexp.MustCompile(`^p[A-Za-z0-9_-]+$`)
	validDigest    = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)
)

// ValidateRequestID reports, as CodeInvalid, why text is not a valid request id. The id of a preview becomes part of
// the names of workflows and stored objects.
func ValidateRequestID(text string) error {
	switch {
	case text == "":
		return Errorf(CodeInvalid, "the request has no id: give it a new one, such as a UUID")
	case len(text) > MaxRequestIDLength || !validRequestID.MatchString(text):
		return Errorf(CodeInvalid, "%s cannot be a request id: use up to %d letters, digits, '-' and '_', such as a "+
			"UUID",
			quoted(text), MaxRequestIDLength)
	}
	return nil
}

// Validate reports, as CodeInvalid, why the name is not valid.
func (u UpdateName) Validate() error {
	if err := u.StackName.Validate(); err != nil {
		return err
	}
	preview := len(u.Version) <= len(previewPrefix)+MaxRequestIDLength && validPreview.MatchString(u.Version)
	number := validNumber.MatchString(u.Version) && u.Number() > 0 && u.Number() <= MaxVersion
	if !preview && !number {
		return Errorf(CodeInvalid, "%s is not the version of an update: write its number, or the name that a preview "+
			"was given", quoted(u.Version))
	}
	return nil
}

// ValidateDigest reports, as CodeInvalid, why text is not the digest of a file or a manifest.
func ValidateDigest(text string) error {
	if !validDigest.MatchString(text) {
		return Errorf(CodeInvalid, "%s is not a digest: write sha256: and 64 hexadecimal digits", quoted(text))
	}
	return nil
}

// ValidateConfigKey reports, as CodeInvalid, why text is not the full key ("namespace:name") of a configuration value.
func ValidateConfigKey(text string) error {
	namespace, name, _ := strings.Cut(text, ":")
	strange := func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r) || r == '=' || r == utf8.RuneError
	}
	switch {
	case namespace == "" || name == "":
		return Errorf(CodeInvalid, "%s is not a configuration key; write NAMESPACE:NAME", quoted(text))
	case len(text) > MaxConfigKeyLength:
		return Errorf(CodeInvalid, "the configuration key %s is %d bytes long; at most %d are allowed", quoted(text),
			len(text), MaxConfigKeyLength)
	case strings.ContainsFunc(text, strange):
		return Errorf(CodeInvalid, "%s cannot be a configuration key: it has a space, a control character or '='",
			quoted(text))
	}
	return nil
}

// ValidateTarget reports, as CodeInvalid, why text does not select resources: by URN, by name, or by a pattern with
// '*'.
func ValidateTarget(text string) error {
	switch {
	case text == "":
		return Errorf(CodeInvalid, "an empty text names no resource: write its URN, or a pattern with '*'")
	case len(text) > MaxTargetLength:
		return Errorf(CodeInvalid, "the resource %s is named by %d bytes; at most %d are allowed", quoted(text),
			len(text), MaxTargetLength)
	}
	return validateText("name of a resource", text, MaxTargetLength)
}

// ValidateTags reports, as CodeInvalid, why the tags are not valid.
func ValidateTags(tags map[string]string) error {
	if err := ValidateTagCount(len(tags)); err != nil {
		return err
	}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		if key == "" {
			return Errorf(CodeInvalid, "a tag needs a name")
		}
		if err := validateText("tag's name", key, MaxTagKeyLength); err != nil {
			return err
		}
		if err := validateText("tag "+quoted(key), tags[key], MaxTagValueLength); err != nil {
			return err
		}
		if value := OnBusy(tags[key]); key == TagOnBusy && value != OnBusyQueue && value != OnBusyFail {
			return Errorf(CodeInvalid, "the tag %s takes %s (an update of the stock CLI waits for a busy stack) or %s, not %s",
				key, OnBusyQueue, OnBusyFail, quoted(tags[key]))
		}
	}
	return nil
}

// ValidateTagCount reports, as CodeInvalid, more tags than a stack can have.
func ValidateTagCount(n int) error {
	if n > MaxTags {
		return Errorf(CodeInvalid, "the stack would have %d tags; at most %d are allowed", n, MaxTags)
	}
	return nil
}

// validateText reports, as CodeInvalid, a text that is too long, is not UTF-8, or has control characters other than tab
// and line breaks: it is shown on other people's terminals.
func validateText(what, text string, limit int) error {
	switch {
	case len(text) > limit:
		return Errorf(CodeInvalid, "the %s is %d bytes long; at most %d are allowed", what, len(text), limit)
	case !utf8.ValidString(text):
		return Errorf(CodeInvalid, "the %s is not UTF-8", what)
	case strings.ContainsFunc(text, func(r rune) bool {
		return unicode.IsControl(r) &&
			!strings.ContainsRune("\t\n\r", r)
	}):
		return Errorf(CodeInvalid, "the %s %s has control characters", what, quoted(text))
	}
	return nil
}

// quoted returns text for a message: escaped, and shortened.
func quoted(text string) string {
	const shown = 80
	if len(text) > shown {
		text = text[:shown] + "…"
	}
	return strconv.Quote(text)
}

// ValidateResolution reports, as CodeInvalid, why the resolution of a create is not valid; id is empty when there is no
// resource.
func ValidateResolution(u UpdateName, resource, id string) error {
	if err := u.Validate(); err != nil {
		return err
	}
	return validateAnswer(resource, id)
}

func validateAnswer(resource, id string) error {
	if parsed := urn.URN(resource); !parsed.IsValid() || len(resource) > MaxTargetLength {
		return Errorf(CodeInvalid, "%s is not the URN of a resource", quoted(resource))
	}
	return validateText("id of the resource", id, MaxResourceIDLength)
}

// ValidateInitiator reports, as CodeInvalid, why text is not a valid initiator.
func ValidateInitiator(text string) error { return validateText("initiator", text, MaxInitiatorLength) }

// ValidateValues reports, as CodeInvalid, that a call has too many values to encrypt or decrypt.
func ValidateValues(n int) error {
	if n > MaxValues {
		return Errorf(CodeInvalid, "the request has %d values; at most %d are possible at a time", n, MaxValues)
	}
	return nil
}

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
