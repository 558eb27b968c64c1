// Package stackkeys reads the keys of a stack's configuration that tell deployctl itself what to do: those in its
// namespace that are no configuration of its provider.
package stackkeys

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/settle/errorclass"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
)

// Namespace is that of the keys, and of the configuration of deployctl's own provider.
const Namespace = "deployctl:"

// The keys. Each may be left out.
const (
	// Settle has the stack's settle rules; see settlerule.ParseStack.
	Settle = settlerule.StackKey
	// Mark says whether creates bear a mark by which they are found again: true or false.
	Mark = Namespace + "mark"
	// Look says whether what is to be created is looked for first: true or false; without it, true.
	Look = Namespace + "look"
	// Retry has retry policies by package or type: {"aws": {"attempts": 5, "initial": "1s", "backoff": 2,
	// "longest": "1m"}}.
	Retry = Namespace + "retry"
	// Errors has patterns of errors by package or type, which are asked before those of errorclass; see errorclass.Table.
	Errors = Namespace + "errors"
	// Profile names the profile of the organization whose variables programs, plugins and hooks get.
	Profile = Namespace + "profile"
)

// Settings are what the keys say.
type Settings struct {
	Rules       *settlerule.Stack
	Marks, Look bool
	Retries     deployments.Retries
	Errors      errorclass.Table
	Profile     string
}

// readers read the text of each key, which is not empty.
var readers = []struct {
	key  string
	read func(s *Settings, text string) error
}{
	{Settle, func(s *Settings, text string) (err error) { s.Rules, err = settlerule.ParseStack(text); return err }},
	{Mark, func(s *Settings, text string) (err error) { s.Marks, err = readBool(text); return err }},
	{Look, func(s *Settings, text string) (err error) { s.Look, err = readBool(text); return err }},
	{Retry, func(s *Settings, text string) (err error) { s.Retries, err = readRetries(text); return err }},
	{Errors, func(s *Settings, text string) (err error) { s.Errors, err = readErrors(text); return err }},
	{Profile, func(s *Settings, text string) error {
		s.Profile = text
		return deployments.ValidateName("profile", text)
	}},
}

// Read reads the keys; value returns the text of one, which is empty if it is not set. An error names its key.
func Read(value func(key string) string) (Settings, error) {
	s := Settings{Look: true}
	for _, r := range readers {
		if text := value(r.key); text != "" {
			if err := r.read(&s, text); err != nil {
				return s, deployments.Errorf(deployments.CodeInvalid, "configuration %s: %w", r.key, err)
			}
		}
	}
	return s, nil
}

// Check reports, as CodeInvalid, what is wrong with the value of a key. Of keys that are not in the table nothing is.
func Check(key, text string) error {
	_, err := Read(func(asked string) string {
		if asked == key {
			return text
		}
		return ""
	})
	return err
}

// Of returns which of the keys one is, or is a path into; "" if it is none.
func Of(key string) string {
	for _, r := range readers {
		if rest, ok := strings.CutPrefix(key, r.key); ok && (rest == "" || strings.ContainsRune(".[", rune(rest[0]))) {
			return r.key
		}
	}
	return ""
}

// providerKeys are the names of the configuration of deployctl's own provider. TestEveryKeyOfTheProviderIsKnown
// (providers) compares them with its schema.
var providerKeys = []string{
	"httpEndpoint", "httpHeaders",
	"postgresDatabase", "postgresHost", "postgresPassword", "postgresPort", "postgresSslMode", "postgresUser",
	"s3AccessKey", "s3Endpoint", "s3Region", "s3SecretKey",
	"temporalAPIKey", "temporalAddress", "temporalCACert", "temporalCert", "temporalKey", "temporalNamespace",
	"temporalServerName", "temporalTLS",
}

// All returns the keys, sorted.
func All() []string {
	var all []string
	for _, r := range readers {
		all = append(all, r.key)
	}
	slices.Sort(all)
	return all
}

// OfProvider returns the keys of deployctl's own provider, sorted.
func OfProvider() []string {
	var all []string
	for _, name := range providerKeys {
		all = append(all, Namespace+name)
	}
	return all
}

func readBool(text string) (bool, error) {
	is, err := strconv.ParseBool(text)
	if err != nil {
		err = fmt.Errorf("it must be true or false, not %q", text)
	}
	return is, err
}

func readErrors(text string) (errorclass.Table, error) {
	var table errorclass.Table
	d := json.NewDecoder(strings.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(&table)
	if err == nil {
		err = table.Compile()
	}
	if err != nil {
		return nil, fmt.Errorf(`it must be JSON like {"PACKAGE or TYPE": [{"class": "definite", "code": ["InvalidThing"]}]}: %w`,
			err)
	}
	return table, nil
}
