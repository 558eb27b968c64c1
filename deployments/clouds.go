package deployments

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Clouds are what updates with a profile are in clouds. They get short-lived credentials there for a workload token,
// which the service signs for the update, so that nobody keeps long-lived ones. Nothing of it is secret.
type Clouds struct {
	AWS    *AWSRole        `json:"aws,omitempty"`
	Google *GoogleWorkload `json:"google,omitempty"`
	Azure  *AzureClient    `json:"azure,omitempty"`
}

// AWSRole is a role of AWS whose trust policy names the service.
type AWSRole struct {
	Role string `json:"role"` // its ARN
}

// GoogleWorkload is a provider of a workload identity pool of Google that trusts the service.
type GoogleWorkload struct {
	// Provider is projects/NUMBER/locations/global/workloadIdentityPools/POOL/providers/PROVIDER.
	Provider string `json:"provider"`
	// ServiceAccount is the account that updates impersonate; empty: they are what the pool makes of them.
	ServiceAccount string `json:"serviceAccount,omitempty"`
}

// AzureClient is an app registration or managed identity of Azure with a federated credential of the service.
type AzureClient struct {
	Tenant       string `json:"tenant"`
	Client       string `json:"client"`
	Subscription string `json:"subscription,omitempty"` // empty: the configuration of providers names it
}

// Names of clouds, as ProfileChange.RemovedClouds has them.
const (
	CloudAWS    = "aws"
	CloudGoogle = "google"
	CloudAzure  = "azure"
)

var (
	validRole = regexp.MustCompile(`^arn:aws[a-z-]*:iam::[0-9]{12}:role/[A-Za-z0-9+=,.@_/-]{1,576}$`)
	validPool = regexp.MustCompile(
		`^projects/[0-9]{1,20}/locations/global/workloadIdentityPools/[a-z0-9-]{4,32}/providers/[a-z0-9-]{4,32}$`)
	validServiceAccount = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,99}@[a-z0-9][a-z0-9.-]{0,99}\.gserviceaccount\.com$`)
	validUUID           = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)
)

// Empty reports whether there is no cloud.
func (c Clouds) Empty() bool { return c == Clouds{} }

// Validate reports, as CodeInvalid, what no cloud has.
func (c Clouds) Validate() error {
	if a := c.AWS; a != nil && !validRole.MatchString(a.Role) {
		return Errorf(CodeInvalid, "%s is not the ARN of a role of AWS, such as arn:aws:iam::123456789012:role/deploy",
			quoted(a.Role))
	}
	if g := c.Google; g != nil && !validPool.MatchString(g.Provider) {
		return Errorf(CodeInvalid, "%s is not a provider of a workload identity pool of Google, such as "+
			"projects/123456789/locations/global/workloadIdentityPools/deployctl/providers/deployctl", quoted(g.Provider))
	}
	if g := c.Google; g != nil && g.ServiceAccount != "" && !validServiceAccount.MatchString(g.ServiceAccount) {
		return Errorf(CodeInvalid, "%s is not a service account of Google, such as deploy@project.iam.gserviceaccount.com",
			quoted(g.ServiceAccount))
	}
	if a := c.Azure; a != nil {
		for what, id := range map[string]string{"tenant": a.Tenant, "client": a.Client, "subscription": a.Subscription} {
			if !validUUID.MatchString(id) && (id != "" || what != "subscription") {
				return Errorf(CodeInvalid, "%s is not the id of a %s of Azure, such as "+
					"00000000-0000-0000-0000-000000000000", quoted(id), what)
			}
		}
	}
	return nil
}

// with returns the clouds with those of a change.
func (c Clouds) with(set Clouds, removed []string) Clouds {
	for _, name := range removed {
		switch name {
		case CloudAWS:
			c.AWS = nil
		case CloudGoogle:
			c.Google = nil
		case CloudAzure:
			c.Azure = nil
		}
	}
	if set.AWS != nil {
		c.AWS = set.AWS
	}
	if set.Google != nil {
		c.Google = set.Google
	}
	if set.Azure != nil {
		c.Azure = set.Azure
	}
	return c
}

// has reports whether there is the cloud of a name.
func (c Clouds) has(name string) bool {
	return name == CloudAWS && c.AWS != nil || name == CloudGoogle && c.Google != nil ||
		name == CloudAzure && c.Azure != nil
}

// Names of the files that the processes of an update find in its directory of tokens.
const (
	AWSTokenFile    = "aws.jwt"
	GoogleTokenFile = "google.jwt"
	GoogleFile      = "google.json" // says how Google's libraries use the token
	AzureTokenFile  = "azure.jwt"
)

// otherCredentials are variables with which libraries of a cloud, or providers, would take other credentials than those
// for the token.
var otherCredentials = map[string][]string{
	CloudAWS: {"AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY", "AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY", "AWS_SESSION_TOKEN",
		"AWS_SECURITY_TOKEN", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"},
	CloudGoogle: {"GOOGLE_CREDENTIALS", "GOOGLE_CLOUD_KEYFILE_JSON", "GCLOUD_KEYFILE_JSON", "GOOGLE_OAUTH_ACCESS_TOKEN",
		"CLOUDSDK_AUTH_ACCESS_TOKEN", "CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE"},
	CloudAzure: {"ARM_CLIENT_SECRET", "ARM_CLIENT_SECRET_FILE_PATH", "ARM_CLIENT_ID_FILE_PATH", "ARM_CLIENT_CERTIFICATE",
		"ARM_CLIENT_CERTIFICATE_PATH", "ARM_CLIENT_CERTIFICATE_PASSWORD", "ARM_OIDC_TOKEN", "ARM_OIDC_REQUEST_TOKEN",
		"ARM_OIDC_REQUEST_URL", "ARM_USE_MSI", "ARM_USE_CLI", "ACTIONS_ID_TOKEN_REQUEST_TOKEN",
		"ACTIONS_ID_TOKEN_REQUEST_URL", "AZURE_CLIENT_SECRET", "AZURE_CLIENT_CERTIFICATE_PATH",
		"AZURE_CLIENT_CERTIFICATE_PASSWORD", "AZURE_USERNAME", "AZURE_PASSWORD"},
}

// Withheld reports whether what runs for an update does not get a variable of the user's shell, because libraries would
// use it in the place of the token.
func (c Clouds) Withheld(variable string) bool {
	for name, variables := range otherCredentials {
		if c.has(name) && slices.Contains(variables, variable) {
			return true
		}
	}
	return false
}

// Environment returns the variables, as NAME=VALUE, by which libraries of the clouds find the tokens in a directory.
// The session is the name under which AWS logs what the update does.
func (c Clouds) Environment(dir, session string) (env []string) {
	if a := c.AWS; a != nil {
		env = append(env, "AWS_WEB_IDENTITY_TOKEN_FILE="+filepath.Join(dir, AWSTokenFile), "AWS_ROLE_ARN="+a.Role,
			"AWS_ROLE_SESSION_NAME="+session)
	}
	if c.Google != nil {
		env = append(env, "GOOGLE_APPLICATION_CREDENTIALS="+filepath.Join(dir, GoogleFile))
	}
	if a := c.Azure; a != nil {
		file := filepath.Join(dir, AzureTokenFile)
		env = append(env, "AZURE_FEDERATED_TOKEN_FILE="+file, "AZURE_CLIENT_ID="+a.Client, "AZURE_TENANT_ID="+a.Tenant,
			"ARM_USE_OIDC=true", "ARM_OIDC_TOKEN_FILE_PATH="+file, "ARM_CLIENT_ID="+a.Client, "ARM_TENANT_ID="+a.Tenant)
		if a.Subscription != "" {
			env = append(env, "ARM_SUBSCRIPTION_ID="+a.Subscription, "AZURE_SUBSCRIPTION_ID="+a.Subscription)
		}
	}
	return env
}

// conflict reports, as CodeInvalid, a variable of a profile that says something else than its clouds.
func (c Clouds) conflict(profile string, variables []ProfileVariable) error {
	var own []string
	for _, entry := range c.Environment("", "") {
		name, _, _ := strings.Cut(entry, "=")
		own = append(own, name)
	}
	for _, v := range variables {
		if c.Withheld(v.Name) || slices.Contains(own, v.Name) {
			return Errorf(CodeInvalid, "the profile %s cannot have the variable %s beside the %s: updates get credentials by "+
				"one of the two alone. Remove the variable (`deployctl profile unset %s %s`), or use two profiles", profile,
				v.Name, c.of(v.Name), profile, v.Name)
		}
	}
	return nil
}

// of describes what of the clouds decides about a variable.
func (c Clouds) of(variable string) string {
	switch {
	case strings.HasPrefix(variable, "AWS_"):
		return "role of AWS"
	case strings.HasPrefix(variable, "ARM_"), strings.HasPrefix(variable, "AZURE_"),
		strings.HasPrefix(variable, "ACTIONS_"):
		return "client of Azure"
	}
	return "workload identity provider of Google"
}

// validClouds reports, as CodeInvalid, what is wrong with the clouds that a change sets and removes.
func (c ProfileChange) validClouds() error {
	for i, name := range c.RemovedClouds {
		switch {
		case name != CloudAWS && name != CloudGoogle && name != CloudAzure:
			return Errorf(CodeInvalid, "there is no cloud %s: name %s, %s or %s", quoted(name), CloudAWS, CloudGoogle,
				CloudAzure)
		case slices.Contains(c.RemovedClouds[:i], name) || c.Clouds.has(name):
			return Errorf(CodeInvalid, "the cloud %s of the profile %s is set or removed twice: name each once", name, c.Name)
		}
	}
	return nil
}
