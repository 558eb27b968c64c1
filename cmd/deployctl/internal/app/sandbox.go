package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/launcher"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

// openSandbox returns the sandbox that the settings and o ask for. It logs, once, which parts of it are not possible.
func openSandbox(s settings.Settings, o sandbox.Options, log *slog.Logger) (*sandbox.Policy, error) {
	policy, warnings, err := newSandbox(s, o)
	if err != nil {
		return nil, err
	}
	for _, warning := range warnings {
		log.Warn(warning)
	}
	return policy, nil
}

// newSandbox returns the sandbox that the settings ask for, and warnings about the parts of it that are not possible.
func newSandbox(s settings.Settings, o sandbox.Options) (*sandbox.Policy, []string, error) {
	limits, err := limitsOf(s)
	if err != nil {
		return nil, nil, err
	}
	state, err := devserver.DefaultHome()
	if err != nil {
		return nil, nil, err
	}
	o.Mode, o.RunAs, o.Limits = sandbox.Mode(s.Get(settings.SandboxMode)), s.Get(settings.SandboxRunAs), limits
	if o.Shared, err = sharedDirs(s); err != nil {
		return nil, nil, err
	}
	o.Reads = readPaths(s)
	o.Record = filepath.Join(filepath.Dir(state), "deployctl-worker", "users.json")
	policy, warnings, err := sandbox.New(o)
	if err != nil {
		return nil, nil, deployments.Errorf(deployments.CodeInvalid, "%w", err)
	}
	return policy, append(warnings, exposures(policy, o.OneUser)...), nil
}

// exposures tells what the sandbox leaves exposed on this machine.
func exposures(policy *sandbox.Policy, oneUser bool) (warnings []string) {
	if !oneUser && policy.Mode() == sandbox.Namespace && os.Geteuid() == 0 {
		warnings = append(warnings, "programs can read what root can read, such as /etc/shadow, because the worker runs "+
			"as root with sandbox.mode namespace: set sandbox.run-as, for example to "+sandbox.Suggested+", or "+
			"run the worker as another user")
	}
	if runtime.GOOS == "linux" && !launcher.Secluded() {
		warnings = append(warnings, "other processes of this user can read the environment of this process, and the "+
			"secrets in it")
	}
	return warnings
}

// sharedDirs reads the directories that all programs may change.
func sharedDirs(s settings.Settings) ([]string, error) {
	dirs := filepath.SplitList(s.Get(settings.SandboxShared))
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() || !filepath.IsAbs(dir) {
			return nil, deployments.Errorf(deployments.CodeInvalid, "%s (set by %s): %q must be the absolute path of a "+
				"directory that exists", settings.SandboxShared, s.Source(settings.SandboxShared), dir)
		}
	}
	return dirs, nil
}

// readPaths returns the paths at which this process, and those that it starts for itself, read something.
func readPaths(s settings.Settings) []string {
	paths := slices.Concat(secretFiles(s), cloudFiles(), filepath.SplitList(os.Getenv("PATH")),
		filepath.SplitList(os.Getenv("SSL_CERT_DIR")), []string{os.Getenv("SSL_CERT_FILE")})
	for _, key := range []settings.Key{
		settings.TLSCert, settings.TemporalTLSCert, settings.TemporalCACert,
	} {
		paths = append(paths, s.Get(key))
	}
	if self, err := os.Executable(); err == nil {
		paths = append(paths, self, companion(self))
	}
	return slices.DeleteFunc(paths, func(path string) bool { return !filepath.IsAbs(path) })
}

// limitsOf reads the limits of programs' processes.
func limitsOf(s settings.Settings) (sandbox.Limits, error) {
	var limits sandbox.Limits
	for _, limit := range []struct {
		key   settings.Key
		value *uint64
		parse func(string) (uint64, error)
	}{
		{settings.SandboxMemory, &limits.Memory, sandbox.ParseSize},
		{settings.SandboxProcesses, &limits.Processes, sandbox.ParseCount},
		{settings.SandboxFiles, &limits.Files, sandbox.ParseCount},
		{settings.SandboxFileSize, &limits.FileSize, sandbox.ParseSize},
		{settings.SandboxCPU, &limits.CPU, sandbox.ParseTime},
	} {
		n, err := limit.parse(s.Get(limit.key))
		if err != nil {
			return limits, deployments.Errorf(deployments.CodeInvalid, "%s (set by %s): %w", limit.key,
				s.Source(limit.key), err)
		}
		*limit.value = n
	}
	return limits, nil
}

// secretFiles returns the files with secrets of a service with these settings.
func secretFiles(s settings.Settings) []string {
	files := []string{s.File()}
	for _, key := range []settings.Key{
		settings.MasterF, settings.TokenFile, settings.BootstrapTokenFile, settings.TLSKey, settings.MetricsTokenFile,
		settings.TemporalAPIKeyFile, settings.TemporalTLSKey, settings.S3SecretKeyFile,
	} {
		if path := s.Get(key); path != "" {
			files = append(files, path)
		}
	}
	return files
}

// stockTokens returns the files in which the stock CLI keeps the tokens of this process's user, among them one of this
// service.
func stockTokens() []string {
	dirs := []string{os.Getenv("PULUMI_CREDENTIALS_PATH"), os.Getenv("PULUMI_HOME")}
	if home, err := os.UserHomeDir(); err == nil {
		dirs = append(dirs, filepath.Join(home, ".pulumi"))
	}
	var files []string
	for _, dir := range dirs {
		if filepath.IsAbs(dir) {
			files = append(files, filepath.Join(dir, "credentials.json"))
		}
	}
	return files
}

// cloudFiles returns the paths where the SDKs of AWS and of key services look for this process's own credentials.
func cloudFiles() []string {
	var files []string
	for _, variable := range []string{
		"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE", "AWS_WEB_IDENTITY_TOKEN_FILE",
		"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
		"GOOGLE_APPLICATION_CREDENTIALS", "CLOUDSDK_CONFIG",
		"AZURE_FEDERATED_TOKEN_FILE", "AZURE_CLIENT_CERTIFICATE_PATH", "AZURE_CONFIG_DIR", "VAULT_CLIENT_KEY",
	} {
		if path := os.Getenv(variable); path != "" {
			files = append(files, path)
		}
	}
	if home, err := os.UserHomeDir(); err == nil {
		for _, place := range []string{".aws", ".azure", ".azd", ".config/gcloud", ".vault-token"} {
			files = append(files, filepath.Join(home, place))
		}
	}
	return files
}
