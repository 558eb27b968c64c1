package deployments

import (
	"cmp"
	"encoding/json"
	"net/url"
	"path"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// DeploymentSettings say where a stack's deployments get the program from, and how they run it, in the form that the
// stock CLI writes. What has no counterpart in the service is rejected by Validate.
type DeploymentSettings struct {
	apitype.DeploymentSettings
	// Webhook lets pushes start deployments.
	Webhook *PushWebhook `json:"webhook,omitempty"`
	// Paused keeps deployments from their turn.
	Paused bool `json:"paused,omitempty"`
}

// PushWebhook checks what a git server sends.
type PushWebhook struct {
	// Secret is what the git server signs with, or sends.
	Secret apitype.SecretValue `json:"secret"`
}

// Limits of settings.
const (
	MaxPreRunCommands  = 50
	MaxPathFilters     = 50  // of pushes
	MaxPathFilter      = 200 // bytes of each
	maxFilterSegments  = 20
	MaxDeploymentBytes = 256 << 10 // of settings as JSON
	leastWebhookSecret = 16
)

// Git returns the source; the zero value when none is set.
func (s DeploymentSettings) Git() apitype.SourceContextGit {
	var git apitype.SourceContextGit
	if s.SourceContext != nil && s.SourceContext.Git != nil {
		git = *s.SourceContext.Git
	}
	if git.RepoURL == "" {
		git.RepoURL = s.hosted()
	}
	return git
}

// hosts are the servers of the providers whose repositories are known by their names alone.
var hosts = map[apitype.VCSProvider]string{apitype.VCSProviderGitHub: "github.com",
	apitype.VCSProviderGitLab: "gitlab.com", apitype.VCSProviderBitbucket: "bitbucket.org"}

// hosted returns the URL of the repository that the settings name without a URL; "" if there is none.
func (s DeploymentSettings) hosted() string {
	var host, repository string
	switch {
	case s.GitHub != nil && s.GitHub.Repository != "":
		host, repository = hosts[apitype.VCSProviderGitHub], s.GitHub.Repository
	case s.VCS != nil:
		host, repository = hosts[s.VCS.Provider], s.VCS.Repository
	}
	if host == "" || repository == "" {
		return ""
	}
	return "https://" + host + "/" + repository + ".git"
}

// Run returns how the operation runs; the zero value when nothing is set.
func (s DeploymentSettings) Run() apitype.OperationContext {
	if s.Operation == nil {
		return apitype.OperationContext{}
	}
	return *s.Operation
}

// Options returns the options of the operation.
func (s DeploymentSettings) Options() apitype.OperationContextOptions {
	if s.Operation == nil || s.Operation.Options == nil {
		return apitype.OperationContextOptions{}
	}
	return *s.Operation.Options
}

// Secrets returns the values that are never shown. Credentials are, whatever their sender says.
func (s DeploymentSettings) Secrets() []*apitype.SecretValue {
	var all []*apitype.SecretValue
	s.credentials(func(_ string, v *apitype.SecretValue) { all = append(all, v) })
	return all
}

// credentials visits the values that are never shown, with what each is for: those for a git server are for one
// repository.
func (s DeploymentSettings) credentials(visit func(purpose string, v *apitype.SecretValue)) {
	credential := func(purpose string, v *apitype.SecretValue) {
		if v != nil && (v.Value != "" || v.Ciphertext != "") {
			v.Secret = true
			visit(purpose, v)
		}
	}
	if s.SourceContext != nil && s.SourceContext.Git != nil && s.SourceContext.Git.GitAuth != nil {
		auth, repository := s.SourceContext.Git.GitAuth, s.Git().RepoURL
		credential("git token "+repository, auth.PersonalAccessToken)
		if auth.SSHAuth != nil {
			credential("git key "+repository, &auth.SSHAuth.SSHPrivateKey)
			credential("git key password "+repository, auth.SSHAuth.Password)
		}
		if auth.BasicAuth != nil {
			credential("git user "+repository, &auth.BasicAuth.UserName)
			credential("git password "+repository, &auth.BasicAuth.Password)
		}
	}
	if s.Webhook != nil {
		credential("webhook", &s.Webhook.Secret)
	}
}

// MapSecrets replaces every secret, those of the environment too. f gets what a secret is for: a text that stands for a
// secret must be of use there only.
func (s DeploymentSettings) MapSecrets(
	f func(purpose string, v apitype.SecretValue) (apitype.SecretValue, error),
) (err error) {
	s.credentials(func(purpose string, v *apitype.SecretValue) {
		if err == nil {
			*v, err = f(purpose, *v)
		}
	})
	if err != nil || s.Operation == nil {
		return err
	}
	for name, v := range s.Operation.EnvironmentVariables {
		if !v.Secret && v.Ciphertext == "" {
			continue
		}
		mapped, err := f("variable "+name, v)
		if err != nil {
			return err
		}
		s.Operation.EnvironmentVariables[name] = mapped
	}
	return nil
}

// Validate reports, as CodeInvalid, what of the settings the service cannot do.
func (s DeploymentSettings) Validate() error {
	if err := s.validateSupported(); err != nil {
		return err
	}
	if err := validateGit(s.Git()); err != nil {
		return err
	}
	if err := s.validatePaths(); err != nil {
		return err
	}
	run := s.Run()
	if len(run.PreRunCommands) > MaxPreRunCommands {
		return Errorf(CodeInvalid, "there are %d commands to run before; at most %d are possible: put them into a script",
			len(run.PreRunCommands), MaxPreRunCommands)
	}
	for name := range run.EnvironmentVariables {
		if name == "" || strings.ContainsAny(name, "=\x00\n") {
			return Errorf(CodeInvalid, "%s is not the name of an environment variable", quoted(name))
		}
	}
	if shell := s.Options().Shell; shell != "" && strings.ContainsAny(shell, " \x00\n") {
		return Errorf(CodeInvalid, "%s is not a shell: name a program such as bash", quoted(shell))
	}
	if s.Webhook != nil && s.Webhook.Secret.Ciphertext == "" && len(s.Webhook.Secret.Value) < leastWebhookSecret {
		return Errorf(CodeInvalid, "the secret of the webhook has %d bytes; it needs at least %d", len(
			s.Webhook.Secret.Value), leastWebhookSecret)
	}
	if s.Executor != nil && s.Executor.WorkingDirectory != "" && !localPath(path.Clean(s.Executor.WorkingDirectory)) {
		return Errorf(CodeInvalid, "%s is not a directory inside the repository", quoted(s.Executor.WorkingDirectory))
	}
	data, err := json.Marshal(s)
	if err == nil && len(data) > MaxDeploymentBytes {
		err = Errorf(CodeInvalid, "the settings of a deployment have %d bytes; at most %d are possible", len(data),
			MaxDeploymentBytes)
	}
	return err
}

// validateSupported rejects what has no counterpart in the service, rather than ignoring it.
func (s DeploymentSettings) validateSupported() error {
	run := s.Run()
	switch {
	case s.Executor != nil && s.Executor.ExecutorImage != nil && s.Executor.ExecutorImage.Reference != "":
		return Errorf(CodeInvalid, "deployments run in the sandbox of a worker, not in an image: remove the executor "+
			"image, and install what the program needs on the workers")
	case s.AgentPoolID != nil && *s.AgentPoolID != "":
		return Errorf(CodeInvalid, "there are no agent pools: remove the pool; `deployctl worker --organization NAME` "+
			"gives an organization workers of its own")
	case run.OIDC != nil && (run.OIDC.AWS != nil || run.OIDC.Azure != nil || run.OIDC.GCP != nil):
		return Errorf(CodeInvalid, "deployments get no OIDC tokens for clouds: give the workers, or the environment of "+
			"the deployment, the credentials")
	case s.SourceContext != nil && (s.SourceContext.Hg != nil || s.SourceContext.Template != nil):
		return Errorf(CodeInvalid, "programs are taken from git repositories only")
	case s.VCS != nil && (s.VCS.PullRequestTemplate || len(s.VCS.ReviewStackLabels) > 0),
		s.GitHub != nil && (s.GitHub.PullRequestTemplate || len(s.GitHub.ReviewStackLabels) > 0):
		return Errorf(CodeInvalid, "there are no review stacks of pull requests: use previews of pull requests")
	case s.VCS != nil && s.VCS.DeployTags, s.GitHub != nil && s.GitHub.DeployTags:
		return Errorf(CodeInvalid, "a pushed tag starts no deployment: use pushes to a branch, or `pulumi deployment run` "+
			"with the commit")
	}
	return nil
}

// validatePaths rejects path filters of pushes that match nothing, and those that take long to compare with what was
// pushed.
func (s DeploymentSettings) validatePaths() error {
	var filters []string
	if s.GitHub != nil {
		filters = s.GitHub.Paths
	}
	if s.VCS != nil {
		filters = append(slices.Clip(filters), s.VCS.Paths...)
	}
	if len(filters) > MaxPathFilters {
		return Errorf(CodeInvalid, "there are %d path filters of pushes; at most %d are possible: name directories above "+
			"them, or use **", len(filters), MaxPathFilters)
	}
	for _, f := range filters {
		if len(f) > MaxPathFilter || strings.Count(f, "/") >= maxFilterSegments {
			return Errorf(CodeInvalid, "a path filter of pushes can have %d bytes and %d segments, and %s has more: name a "+
				"directory above it", MaxPathFilter, maxFilterSegments, quoted(f))
		}
		for segment := range strings.SplitSeq(f, "/") {
			if _, err := path.Match(segment, ""); err != nil {
				return Errorf(CodeInvalid, "%s is not a path filter of pushes: write [ab] for one of several letters, and "+
					"\\[ for [ itself", quoted(f))
			}
		}
	}
	return nil
}

// validateGit rejects a source that cannot be fetched. An empty one is none.
func validateGit(git apitype.SourceContextGit) error {
	if git.Branch != "" && git.Commit != "" {
		return Errorf(CodeInvalid, "a deployment takes a branch or a commit, not both")
	}
	for what, text := range map[string]string{"URL": git.RepoURL, "branch": git.Branch, "commit": git.Commit} {
		if strings.HasPrefix(text, "-") || strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
			return Errorf(CodeInvalid, "%s is not the %s of a git repository", quoted(text), what)
		}
	}
	if git.RepoDir != "" && path.Clean(git.RepoDir) != "." && !localPath(path.Clean(git.RepoDir)) {
		return Errorf(CodeInvalid, "%s is not a directory inside the repository", quoted(git.RepoDir))
	}
	if git.RepoURL == "" {
		return nil
	}
	_, err := GitURL(git.RepoURL)
	return err
}

// GitURL parses the URL of a git repository: https, http, ssh, or the short form of ssh, USER@HOST:PATH.
func GitURL(text string) (*url.URL, error) {
	if user, rest, short := strings.Cut(text, "@"); short && !strings.Contains(text, "://") {
		host, path, _ := strings.Cut(rest, ":")
		text = "ssh://" + user + "@" + host + "/" + strings.TrimPrefix(path, "/")
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return nil, Errorf(CodeInvalid, "the URL of the git repository cannot be read")
	case !slices.Contains([]string{"https", "http", "ssh"}, u.Scheme) || u.Hostname() == "":
		return nil, Errorf(CodeInvalid, "%s is not the URL of a git repository that deployments can be made from: use "+
			"https:// or ssh://", quoted(ShownURL(u)))
	case u.User != nil && u.Scheme != "ssh":
		return nil, Errorf(CodeInvalid, "the URL of the git repository has credentials in it: take them out, and give "+
			"them as an access token or as user name and password")
	}
	if _, set := u.User.Password(); set {
		return nil, Errorf(CodeInvalid, "the URL of the git repository has a password in it: take it out, and use an SSH "+
			"key")
	}
	return u, nil
}

// ShownURL returns a URL for messages, without credentials and query.
func ShownURL(u *url.URL) string {
	short := *u
	short.User, short.RawQuery, short.Fragment = nil, "", ""
	return cmp.Or(short.String(), "(no URL)")
}

// isSecret reports whether a JSON object is a secret on the wire, which is one value. The secret of a webhook is an
// object with such a member, too: its value tells them apart.
func isSecret(object map[string]any) bool {
	_, text := object["secret"].(string)
	_, sealed := object["ciphertext"]
	_, explicit := object["isSecret"]
	return text && len(object) == 1 || sealed || explicit
}

// MergePatch applies a merge patch (RFC 7396) to JSON. A secret is replaced as a whole, and so is the object vcs, of
// which the stock CLI sends all that is to stay; it takes the place of gitHub, its former name.
func MergePatch(document, patch json.RawMessage) (json.RawMessage, error) {
	var before, change any
	if len(document) > 0 {
		if err := json.Unmarshal(document, &before); err != nil {
			return nil, err
		}
	}
	if err := json.Unmarshal(patch, &change); err != nil {
		return nil, Errorf(CodeInvalid, "the settings are not JSON: %w", err)
	}
	changes, object := change.(map[string]any)
	if !object {
		return nil, Errorf(CodeInvalid, "the settings are not a JSON object")
	}
	stored, object := before.(map[string]any)
	if _, whole := changes["vcs"].(map[string]any); whole && object {
		delete(stored, "vcs")
		delete(stored, "gitHub")
	}
	return json.Marshal(merged(before, change))
}

func merged(before, change any) any {
	changes, object := change.(map[string]any)
	if !object || isSecret(changes) {
		return change
	}
	result, object := before.(map[string]any)
	if !object {
		result = map[string]any{}
	}
	for key, value := range changes {
		if value == nil {
			delete(result, key)
		} else {
			result[key] = merged(result[key], value)
		}
	}
	return result
}
