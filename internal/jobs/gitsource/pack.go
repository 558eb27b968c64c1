package gitsource

import (
	"context"
	"encoding/gob"
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/project"
)

// pack reads the project of an order as `deployctl up` does, and uploads it.
func pack(ctx context.Context, o PackOrder, service *remote) (Packed, error) {
	p, err := project.Find(filepath.Join(o.Root, filepath.FromSlash(o.Dir)))
	if err != nil {
		return Packed{}, hideRoot(err, o.Root)
	}
	root, err := filepath.EvalSymlinks(o.Root)
	if err != nil {
		return Packed{}, err
	}
	if below, err := filepath.Rel(root, p.Dir); err != nil || !filepath.IsLocal(below) {
		return Packed{}, deployments.Errorf(deployments.CodeInvalid, "there is no Pulumi.yaml in the directory %q of the "+
			"repository or above it: name the project's directory (--git-repo-dir)", o.Dir)
	}
	if p.Name() != o.Stack.Project {
		return Packed{}, deployments.Errorf(deployments.CodeInvalid, "the repository has the project %s in the directory "+
			"%q, and the stack %s is of another one", p.Name(), o.Dir, o.Stack)
	}
	stack, err := p.Stack(o.Stack.Stack)
	if err != nil {
		return Packed{}, hideRoot(err, o.Root)
	}
	secrets := &project.Secrets{Stack: stack, Name: o.Stack, Service: service,
		Passphrase: func(bool) (string, error) {
			if o.Passphrase == "" {
				return "", deployments.Errorf(deployments.CodeInvalid, "the configuration of %s is encrypted with a "+
					"passphrase: give the deployment PULUMI_CONFIG_PASSPHRASE as a secret variable of its environment",
					o.Stack)
			}
			return o.Passphrase, nil
		},
		Keys: func(context.Context, string) (project.Key, error) {
			return nil, deployments.Errorf(deployments.CodeInvalid, "the configuration of %s is encrypted with a key of a key "+
				"management service, which deployments do not ask: use the secrets provider default, or a passphrase", o.Stack)
		}}
	packed := Packed{Refresh: p.Refreshes()}
	if packed.Config, err = stack.Values(ctx, secrets.Crypter); err != nil {
		return packed, hideRoot(err, o.Root)
	}
	if packed.Secrets, err = secrets.Provider(ctx); err != nil {
		return packed, hideRoot(err, o.Root)
	}
	bundle, err := p.Gather()
	if err == nil {
		packed.Bundle, err = bundle.Upload(ctx, service, o.Stack)
	}
	return packed, hideRoot(err, o.Root)
}

// hideRoot takes the path of the checkout out of an error: it says nothing to anybody.
func hideRoot(err error, root string) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	for _, dir := range []string{root, real(root)} {
		text = strings.ReplaceAll(strings.ReplaceAll(text, dir+string(filepath.Separator), ""), dir, ".")
	}
	return errorOf(deployments.CodeOf(err), text)
}

func real(dir string) string {
	if found, err := filepath.EvalSymlinks(dir); err == nil {
		return found
	}
	return dir
}

// remote calls what Service has, at the other end of the process's pipes. It is safe for concurrent use.
type remote struct {
	mu  sync.Mutex
	in  *gob.Decoder
	out *gob.Encoder
}

func (r *remote) call(m message) ([]string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.out.Encode(m); err != nil {
		return nil, err
	}
	var a answer
	if err := r.in.Decode(&a); err != nil {
		return nil, err
	}
	return a.Texts, errorOf(a.Code, a.Error)
}

// Encrypt is not for this process.
func (r *remote) Encrypt(context.Context, deployments.StackName, []string) ([]string, error) {
	return nil, deployments.Errorf(deployments.CodeInvalid, "a deployment does not change the configuration")
}

// Decrypt decrypts values of the stack's configuration.
func (r *remote) Decrypt(_ context.Context, _ deployments.StackName, sealed []string) ([]string, error) {
	return r.call(message{Call: callDecrypt, Texts: sealed})
}

// Missing implements deployments.Bundles.
func (r *remote) Missing(_ context.Context, _ deployments.StackName, m deployments.Manifest) ([]string, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return r.call(message{Call: callMissing, File: text})
}

// PutFile implements deployments.Bundles.
func (r *remote) PutFile(_ context.Context, _ deployments.StackName, digest string, content []byte) error {
	_, err := r.call(message{Call: callPutFile, Texts: []string{digest}, File: content})
	return err
}

// PutManifest implements deployments.Bundles.
func (r *remote) PutManifest(_ context.Context, _ deployments.StackName, m deployments.Manifest) (string, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return "", err
	}
	texts, err := r.call(message{Call: callPutManifest, File: text})
	if err != nil || len(texts) != 1 {
		return "", err
	}
	return texts[0], nil
}
