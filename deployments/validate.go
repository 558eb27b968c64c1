package deployments

import (
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

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
