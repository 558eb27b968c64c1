package jobs

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/stackobjects"
)

// Settings are the deployment settings of a stack, with secrets in plaintext, and what deployments that a push
// starts may do: as much as whoever made the settings.
type Settings struct {
	deployments.DeploymentSettings
	Authority *deployments.Authority `json:"authority,omitempty"`
}

func settingsKey(name deployments.StackName) string {
	return stackobjects.Key(name, deploymentFolder, settingsObject)
}

// DeploymentSettings returns a stack's settings; the zero value when it has none.
func (s *Store) DeploymentSettings(ctx context.Context, name deployments.StackName) (Settings, error) {
	var settings Settings
	_, err := s.stacks.GetJSON(ctx, name, settingsKey(name), &settings)
	if errors.Is(err, bucket.ErrAbsent) {
		err = nil
	}
	return settings, err
}

// ChangeDeploymentSettings changes a stack's settings by compare-and-swap.
func (s *Store) ChangeDeploymentSettings(
	ctx context.Context, name deployments.StackName, change func(*Settings) error,
) error {
	for {
		var settings Settings
		tag, err := s.stacks.GetJSON(ctx, name, settingsKey(name), &settings)
		if err != nil && !errors.Is(err, bucket.ErrAbsent) {
			return err
		}
		if err := change(&settings); err != nil {
			return err
		}
		condition := bucket.Condition{Tag: tag, Absent: tag == ""}
		if err := s.stacks.PutIf(ctx, name, settingsKey(name), settings, condition); !errors.Is(err, bucket.ErrChanged) {
			return err
		}
	}
}

// RemoveDeploymentSettings removes a stack's settings, if there are any.
func (s *Store) RemoveDeploymentSettings(ctx context.Context, name deployments.StackName) error {
	if _, err := s.stacks.Of(ctx, name); err != nil {
		return err
	}
	if err := s.sealed.DeleteAll(ctx, stackobjects.Key(name, deploymentFolder, hostKeyFolder, "")); err != nil {
		return err
	}
	err := s.sealed.Objects.Delete(ctx, settingsKey(name))
	if errors.Is(err, bucket.ErrAbsent) {
		return nil
	}
	return bucket.Failed(err, "remove the deployment settings of "+name.String())
}

// settingContext is the context with which a secret of the settings is sealed when it is shown. What one is for is a
// part of it: else whoever may change the settings could put the text of a secret where its value comes to light.
func settingContext(purpose string) string { return "deployment-setting " + purpose }

// HideSetting returns the text that stands for a secret, which is for a purpose, in what is shown. Only this service
// can read it.
func (s *Store) HideSetting(
	ctx context.Context, name deployments.StackName, purpose, plain string,
) (string, error) {
	r, err := s.stacks.Of(ctx, name)
	if err != nil {
		return "", err
	}
	return base64.StdEncoding.EncodeToString(r.Box.Seal([]byte(plain), settingContext(purpose))), nil
}

// OpenSetting returns the secret, which is for a purpose, for which a text of HideSetting stands.
func (s *Store) OpenSetting(
	ctx context.Context, name deployments.StackName, purpose, text string,
) (string, error) {
	r, err := s.stacks.Of(ctx, name)
	if err != nil {
		return "", err
	}
	sealed, err := base64.StdEncoding.DecodeString(text)
	if err == nil {
		sealed, err = r.Box.Open(sealed, settingContext(purpose))
	}
	if err != nil {
		return "", deployments.Errorf(deployments.CodeInvalid, "a secret of the deployment settings was encrypted for "+
			"another stack, repository or setting, or by another service: set it again")
	}
	return string(sealed), nil
}

// hostKeyFolder has the keys that SSH servers of a stack's repositories had at first.
const hostKeyFolder = "hostkeys"

func hostKeyKey(name deployments.StackName, url string) string {
	return stackobjects.Key(name, deploymentFolder, hostKeyFolder, fmt.Sprintf("%x", sha256.Sum256([]byte(url))))
}

// GitHostKey returns the key that the SSH server of a repository had at first; empty when none is known.
func (s *Store) GitHostKey(ctx context.Context, name deployments.StackName, url string) (key string, err error) {
	if _, err = s.stacks.GetJSON(ctx, name, hostKeyKey(name, url), &key); errors.Is(err, bucket.ErrAbsent) {
		err = nil
	}
	return key, err
}

// PutGitHostKey stores the key that the SSH server of a repository has, if none is known yet.
func (s *Store) PutGitHostKey(ctx context.Context, name deployments.StackName, url, key string) error {
	err := s.stacks.PutIf(ctx, name, hostKeyKey(name, url), key, bucket.Condition{Absent: true})
	if errors.Is(err, bucket.ErrChanged) {
		return nil
	}
	return err
}
