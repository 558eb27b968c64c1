package project

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// Stack is the configuration file of a stack, Pulumi.STACK.yaml, in the form in which the field's tools write it.
type Stack struct {
	Path    string
	project *Project
	name    string
	file    *workspace.ProjectStack

	read    []byte                   // the text that was read or saved last; nil if there was no file
	changes []func(config.Map) error // of the values since then
	beyond  bool                     // more than values was changed
}

// Key reads a configuration key as users write it: NAME means PROJECT:NAME. With path, NAME may be a path into a value
// ("servers[0].port").
func (s *Stack) Key(text string, path bool) (config.Key, error) {
	name, rest := text, ""
	if i := strings.IndexAny(text, ".[\""); path && i >= 0 {
		name, rest = text[:i], text[i:]
	}
	if !strings.Contains(name, ":") {
		name = s.project.Name() + ":" + name
	}
	key, err := config.ParseKey(name + rest)
	if err != nil || key.Name() == "" {
		return config.Key{}, deployments.Errorf(deployments.CodeInvalid,
			"%q is not a configuration key; write NAME or NAMESPACE:NAME", text)
	}
	return key, nil
}

// Get finds a value; with path, the key's name is a path into it.
func (s *Stack) Get(key config.Key, path bool) (config.Value, bool, error) {
	v, ok, err := s.file.Config.Get(key, path)
	if err != nil {
		return v, false, deployments.Errorf(deployments.CodeInvalid, "cannot get %s: %w", key, err)
	}
	return v, ok, nil
}

// Set sets a value; it is not saved. A key that Pulumi.yaml declares secret takes no value in clear.
func (s *Stack) Set(key config.Key, v config.Value, path bool) error {
	if !v.Secure() {
		if err := s.CheckPlain(key, path); err != nil {
			return err
		}
		if text, err := v.Value(config.NopDecrypter); err == nil {
			if err := deployments.CheckUTF8("the value of "+key.String(), text); err != nil {
				return err
			}
		}
	}
	if err := s.change(func(m config.Map) error { return m.Set(key, v, path) }); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "cannot set %s: %w", key, err)
	}
	return s.checkOwn(key)
}

// checkOwn checks the value of a key that deployctl itself reads, if it was set: a create whose answer was lost is no
// time to find out that a rule is wrong.
func (s *Stack) checkOwn(set config.Key) error {
	own := stackkeys.Of(set.String())
	if own == "" {
		return nil
	}
	key, err := config.ParseKey(own)
	if err != nil {
		return err
	}
	v, ok, err := s.Get(key, false)
	if err != nil || !ok {
		return err
	}
	if v.Secure() {
		return deployments.Errorf(deployments.CodeInvalid, "%s is no secret: set it without --secret", key)
	}
	text, err := v.Value(config.NopDecrypter)
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "%s: %w", key, err)
	}
	return stackkeys.Check(own, text)
}

// Remove removes a value; it is not saved. It reports CodeNotFound when there is none.
func (s *Stack) Remove(key config.Key, path bool) error {
	if _, ok, err := s.Get(key, path); err != nil || !ok {
		if err == nil {
			err = deployments.Errorf(deployments.CodeNotFound, "%s is not set in %s", key, s.Path)
		}
		return err
	}
	if err := s.change(func(m config.Map) error { return m.Remove(key, path) }); err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "cannot remove %s: %w", key, err)
	}
	return nil
}

// Declared returns what Pulumi.yaml gives to keys that the stack's file does not set: values and defaults.
func (s *Stack) Declared() (map[string]deployments.ConfigValue, error) {
	values := map[string]deployments.ConfigValue{}
	for name, declaration := range s.project.Definition.Config {
		given := declaration.Value
		if given == nil {
			given = declaration.Default
		}
		key, err := config.ParseKey(s.whole(name))
		if err != nil || given == nil {
			continue
		}
		if _, set := s.file.Config[key]; set {
			continue
		}
		v, err := declaredValue(given)
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeInvalid, "%s: config %s: %w", s.project.File, name, err)
		}
		v.Secret = declaration.Secret
		values[key.String()] = v
	}
	return values, nil
}

// MoveKeys gives the keys of one project to another; it is not saved. It returns the new ones, sorted, and moves
// none if one of them is set already.
func (s *Stack) MoveKeys(from, to string) ([]config.Key, error) {
	var moved []config.Key
	err := s.change(func(m config.Map) error {
		var err error
		moved, err = moveKeys(m, from, to)
		return err
	})
	if key := (takenKey{}); errors.As(err, &key) {
		err = deployments.Errorf(deployments.CodeExists, "%s has both %s and %s; remove one of them", s.Path, key.from,
			key.to)
	}
	return moved, err
}

// takenKey is the error about a key that is to be moved to where there is one.
type takenKey struct{ from, to config.Key }

func (k takenKey) Error() string { return fmt.Sprintf("there are both %s and %s", k.from, k.to) }

func moveKeys(m config.Map, from, to string) (moved []config.Key, err error) {
	for _, key := range sortedKeys(m) {
		if key.Namespace() != from {
			continue
		}
		other := config.MustMakeKey(to, key.Name())
		if _, taken := m[other]; taken {
			return nil, takenKey{key, other}
		}
		moved = append(moved, other)
	}
	for _, key := range moved {
		old := config.MustMakeKey(from, key.Name())
		m[key] = m[old]
		delete(m, old)
	}
	return moved, nil
}

// Keys lists the keys that are set, sorted.
func (s *Stack) Keys() []config.Key { return sortedKeys(s.file.Config) }

func sortedKeys(m config.Map) []config.Key {
	keys := make([]config.Key, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.SortFunc(keys, func(a, b config.Key) int { return strings.Compare(a.String(), b.String()) })
	return keys
}

// HasSecrets says whether anything in the file is encrypted.
func (s *Stack) HasSecrets() bool { return s.file.Config.HasSecureValue() }

// Plain decrypts one value.
func (s *Stack) Plain(key config.Key, v config.Value, crypter config.Decrypter) (string, error) {
	text, err := v.Value(crypter)
	if err != nil {
		if strings.HasPrefix(err.Error(), ": ") { // after the path, which is empty for a value that is no object
			err = errors.Unwrap(err)
		}
		return "", deployments.Errorf(deployments.CodeInvalid,
			"cannot decrypt %s in %s: it was encrypted for another stack, by another service or with another "+
				"passphrase; set it again with deployctl config set %s --secret (%w)", key, s.Path, key, err)
	}
	return text, nil
}

// Values gives all that an update is configured with: what the file sets, decrypted, over what Pulumi.yaml declares.
func (s *Stack) Values(
	ctx context.Context, crypter func(context.Context) (config.Crypter, error),
) (map[string]deployments.ConfigValue, error) {
	if err := s.asks(); err != nil {
		return nil, err
	}
	decrypter := config.NewPanicCrypter()
	if s.HasSecrets() {
		found, err := crypter(ctx)
		if err != nil {
			return nil, err
		}
		decrypter = found
	}
	values := map[string]deployments.ConfigValue{}
	for _, key := range s.Keys() {
		v := s.file.Config[key]
		text, err := s.Plain(key, v, decrypter)
		if err == nil {
			err = deployments.CheckUTF8(fmt.Sprintf("the value of %s in %s", key, s.Path), text)
		}
		if err != nil {
			return nil, err
		}
		values[key.String()] = deployments.ConfigValue{Value: text, Secret: v.Secure(), Object: v.Object()}
	}
	return values, s.declared(values)
}

// declared adds the values and defaults of Pulumi.yaml to values, and checks types and presence.
func (s *Stack) declared(values map[string]deployments.ConfigValue) error {
	var missing, clear []string
	given, err := s.Declared()
	if err != nil {
		return err
	}
	for name, declaration := range s.project.Definition.Config {
		key := s.whole(name)
		if v, set := values[key]; set {
			if err := s.checkType(key, v, declaration); err != nil {
				return err
			}
			if declaration.Secret && !v.Secret {
				clear = append(clear, key)
			}
			continue
		}
		v, has := given[key]
		switch {
		case has:
			values[key] = v
		case declaration.IsExplicitlyTyped():
			missing = append(missing, key)
		}
	}
	switch slices.Sort(missing); {
	case len(clear) > 0:
		slices.Sort(clear)
		return s.notEncrypted(clear...)
	case len(missing) > 0:
		return deployments.Errorf(deployments.CodeInvalid, "stack %s needs a value for %s; set it with %s",
			s.name, strings.Join(missing, ", "), s.setting(missing[0]))
	}
	return nil
}

// CheckPlain refuses a value in clear for a key that Pulumi.yaml declares secret; with path, for a part of its value,
// too.
func (s *Stack) CheckPlain(key config.Key, path bool) error {
	whole := key.String()
	if i := strings.IndexAny(whole, ".[\""); path && i > 0 {
		whole = whole[:i]
	}
	if s.declaredSecret(whole) {
		return s.notEncrypted(whole)
	}
	return nil
}

// notEncrypted says that the values of keys, which Pulumi.yaml declares secret, are in clear.
func (s *Stack) notEncrypted(keys ...string) error {
	return deployments.Errorf(deployments.CodeInvalid, "%s declares %s secret, so stack %s must have it encrypted; "+
		"set it with %s",
		s.project.File, strings.Join(keys, ", "), s.name, s.setting(keys[0]))
}

// setting is the command that sets a key. A secret is not an argument of it, where the shell's history would keep it:
// it is asked for.
func (s *Stack) setting(key string) string {
	if s.declaredSecret(key) {
		return fmt.Sprintf("deployctl config set %s --secret", key)
	}
	for name, declaration := range s.project.Definition.Config {
		if s.whole(name) != key || !declaration.IsExplicitlyTyped() {
			continue
		}
		switch *declaration.Type {
		case "array":
			return fmt.Sprintf("deployctl config set %s '[…]', as JSON", key)
		case "object":
			return fmt.Sprintf("deployctl config set %s '{…}', as JSON", key)
		}
	}
	return fmt.Sprintf("deployctl config set %s VALUE", key)
}

func (s *Stack) declaredSecret(key string) bool {
	for name, declaration := range s.project.Definition.Config {
		if declaration.Secret && s.whole(name) == key {
			return true
		}
	}
	return false
}

// whole gives a declared key its namespace, the project's unless it has one.
func (s *Stack) whole(name string) string {
	if strings.Contains(name, ":") {
		return name
	}
	return s.project.Name() + ":" + name
}

// Typed returns a text as a value for a key or, with path, for a place in its value: of the type that Pulumi.yaml
// declares for it. Without one, digits at a path are a number.
func (s *Stack) Typed(key config.Key, text string, path bool) config.Value {
	if path && s.typeAt(key) == "string" {
		return config.NewTypedValue(text, config.TypeString)
	}
	return config.NewValue(text)
}

// typeAt returns the type that Pulumi.yaml declares for the place in a value to which a path leads; "" if none.
func (s *Stack) typeAt(key config.Key) string {
	steps, err := resource.ParsePropertyPath(key.Name())
	if err != nil || len(steps) == 0 {
		return ""
	}
	root, _ := steps[0].(string)
	for name, declaration := range s.project.Definition.Config {
		if s.whole(name) != key.Namespace()+":"+root || !declaration.IsExplicitlyTyped() {
			continue
		}
		is := &workspace.ProjectConfigItemsType{Type: *declaration.Type, Items: declaration.Items}
		for range steps[1:] {
			if is.Type != "array" || is.Items == nil {
				return ""
			}
			is = is.Items
		}
		return is.Type
	}
	return ""
}

// CheckType refuses a text for a key that Pulumi.yaml declares of another type.
func (s *Stack) CheckType(key config.Key, text string) error {
	for name, declaration := range s.project.Definition.Config {
		if s.whole(name) == key.String() {
			return s.checkType(key.String(), deployments.ConfigValue{Value: text}, declaration)
		}
	}
	return nil
}

func (s *Stack) checkType(key string, v deployments.ConfigValue, declaration workspace.ProjectConfigType) error {
	if !declaration.IsExplicitlyTyped() {
		return nil
	}
	var value any = v.Value
	composite := *declaration.Type == "array" || *declaration.Type == "object" // which may be JSON in a text
	if v.Object || composite {
		if err := json.Unmarshal([]byte(v.Value), &value); err != nil && v.Object {
			return err
		}
	}
	if !workspace.ValidateConfigValue(*declaration.Type, declaration.Items, value) {
		return deployments.Errorf(deployments.CodeInvalid, "%s of stack %s must be of type %s; set it with %s", key,
			s.name, workspace.InferFullTypeName(*declaration.Type, declaration.Items), s.setting(key))
	}
	return nil
}

// declaredValue makes a configuration value of what YAML says: text of a scalar, JSON of a list or an object.
func declaredValue(given any) (deployments.ConfigValue, error) {
	switch given.(type) {
	case []any, map[string]any:
		text, err := json.Marshal(given)
		return deployments.ConfigValue{Value: string(text), Object: true}, err
	}
	return deployments.ConfigValue{Value: fmt.Sprint(given)}, nil
}
