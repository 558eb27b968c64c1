package project

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/encoding"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/yamlutil"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
	"gopkg.in/yaml.v3"
)

// Save writes the file; what it does not know of, comments included, stays. What another command or a person has
// written since the file was read stays, too: the values that were set or removed are so in the text that is there now.
// CodeConflict: more than values was changed, such as the secrets provider, and the file was written meanwhile.
func (s *Stack) Save() error {
	err := ChangeFile(s.Path, func(now []byte) ([]byte, error) {
		if !bytes.Equal(now, s.read) {
			if err := s.rebase(now); err != nil {
				return nil, err
			}
		}
		text, err := s.text(now)
		if err == nil {
			s.read, s.changes, s.beyond = text, nil, false
		}
		return text, err
	})
	return s.notWritten(err)
}

// SaveAside writes to another file what Save would write. Save is still to come.
func (s *Stack) SaveAside(path string) error {
	text, err := s.text(s.read)
	if err == nil {
		err = os.WriteFile(path, text, 0o600)
	}
	return s.notWritten(err)
}

func (s *Stack) notWritten(err error) error {
	if err != nil && deployments.CodeOf(err) != deployments.CodeConflict {
		err = deployments.Errorf(deployments.CodeInvalid, "cannot write %s: %w", s.Path, err)
	}
	return err
}

// change changes the values, now and in the text that Save finds if that is another one by then: the function may be
// called again, with other values.
func (s *Stack) change(do func(config.Map) error) error {
	err := do(s.file.Config)
	if err == nil {
		s.changes = append(s.changes, do)
	}
	return err
}

// rebase applies what was changed to another text than the one that was read.
func (s *Stack) rebase(now []byte) error {
	file, err := s.project.parse(s.Path, now)
	if err != nil {
		return err
	}
	key := func(f *workspace.ProjectStack) [3]string {
		return [3]string{f.SecretsProvider, f.EncryptionSalt, f.EncryptedKey}
	}
	if s.beyond || key(file) != key(s.file) {
		return deployments.Errorf(deployments.CodeConflict, "%s was changed meanwhile, by another command or by hand; "+
			"nothing was written to it: do the same again", s.Path)
	}
	for _, do := range s.changes {
		if err := do(file.Config); err != nil {
			return err
		}
	}
	s.file = file
	return nil
}

// text returns the file's next text, in the form of an old one.
func (s *Stack) text(old []byte) ([]byte, error) {
	marshaler, err := marshalerOf(s.Path)
	if err != nil {
		return nil, err
	}
	text, err := marshaler.Marshal(s.file)
	if err != nil || filepath.Ext(s.Path) == ".json" {
		return text, err
	}
	return tidy(old, text)
}

// parse reads the text of a stack's file; nil that of one which does not exist.
func (p *Project) parse(path string, text []byte) (*workspace.ProjectStack, error) {
	marshaler, err := marshalerOf(path)
	if err != nil {
		return nil, err
	}
	if text == nil {
		return &workspace.ProjectStack{Config: config.Map{}}, nil
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")) // the mark that some editors begin a text with
	if err := checkBytes(path, text, false); err != nil {
		return nil, err
	}
	return workspace.LoadProjectStackBytes(nil, p.Definition, text, path, marshaler)
}

func marshalerOf(path string) (encoding.Marshaler, error) {
	marshaler, extension := encoding.Detect(path)
	if marshaler == nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "no configuration file ends in %q: use .yaml or .json",
			extension)
	}
	return marshaler, nil
}

// tidy returns the new text of a YAML file as a person would write it: without braces around what was empty or is so
// now, and with the comments at its head.
func tidy(old, text []byte) ([]byte, error) {
	var was, is yaml.Node
	if err := yaml.Unmarshal(old, &was); err != nil {
		return nil, err
	}
	if err := yaml.Unmarshal(text, &is); err != nil {
		return nil, err
	}
	if len(is.Content) == 0 || len(is.Content[0].Content) == 0 {
		return head(old), nil
	}
	before, root := &yaml.Node{}, is.Content[0]
	if len(was.Content) > 0 {
		before = was.Content[0]
	}
	if openBraces(before, root) {
		var err error
		if text, err = yamlutil.YamlEncode(&is); err != nil {
			return nil, err
		}
	}
	if len(before.Content) == 0 && root.HeadComment == "" {
		text = append(head(old), text...)
	}
	return text, nil
}

// openBraces gives lines of their own to the keys of mappings that were empty. It reports whether there are some.
func openBraces(was, is *yaml.Node) (found bool) {
	if is.Kind != yaml.MappingNode || is.Style&yaml.FlowStyle != 0 && len(was.Content) > 0 {
		return false
	}
	found = is.Style&yaml.FlowStyle != 0
	is.Style &^= yaml.FlowStyle
	for i := 0; i+1 < len(is.Content); i += 2 {
		before := &yaml.Node{}
		for j := 0; j+1 < len(was.Content); j += 2 {
			if was.Content[j].Value == is.Content[i].Value {
				before = was.Content[j+1]
			}
		}
		if before.Kind == 0 {
			is.Content[i].Style = 0 // quotes that only braces needed
		}
		found = openBraces(before, is.Content[i+1]) || found
	}
	return found
}

// head returns the comments before everything else in a YAML file.
func head(text []byte) []byte {
	var kept []byte
	for line := range bytes.Lines(text) {
		if trimmed := strings.TrimSpace(string(line)); trimmed != "" && trimmed[0] != '#' {
			break
		}
		kept = append(kept, line...)
	}
	return kept
}
