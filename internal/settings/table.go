package settings

// The settings.
const (
	Server       Key = "server"
	Token        Key = "token"
	TokenFile    Key = "token-file"
	CACert       Key = "ca-cert"
	Organization Key = "organization"
	Home         Key = "home"

	BootstrapToken     Key = "bootstrap-token"
	BootstrapTokenFile Key = "bootstrap-token-file"

	Listen  Key = "listen"
	TLSCert Key = "tls-cert"
	TLSKey  Key = "tls-key"
	Metrics Key = "metrics-listen"
	Health  Key = "health-listen"
	Master  Key = "key"
	MasterF Key = "key-file"
	KeyURL  Key = "key-url"

	MetricsToken     Key = "metrics-token"
	MetricsTokenFile Key = "metrics-token-file"

	TemporalAddress    Key = "temporal.address"
	TemporalNamespace  Key = "temporal.namespace"
	TemporalAPIKey     Key = "temporal.api-key"
	TemporalAPIKeyFile Key = "temporal.api-key-file"
	TemporalTLSCert    Key = "temporal.tls-cert"
	TemporalTLSKey     Key = "temporal.tls-key"
	TemporalCACert     Key = "temporal.ca-cert"
	TemporalServerName Key = "temporal.tls-server-name"
	TemporalDeployment Key = "temporal.worker-deployment"

	S3Endpoint      Key = "s3.endpoint"
	S3Bucket        Key = "s3.bucket"
	S3Prefix        Key = "s3.prefix"
	S3Region        Key = "s3.region"
	S3AccessKey     Key = "s3.access-key-id"
	S3SecretKey     Key = "s3.secret-access-key"
	S3SecretKeyFile Key = "s3.secret-access-key-file"

	SandboxMode      Key = "sandbox.mode"
	SandboxRunAs     Key = "sandbox.run-as"
	SandboxMemory    Key = "sandbox.memory"
	SandboxProcesses Key = "sandbox.processes"
	SandboxFiles     Key = "sandbox.open-files"
	SandboxFileSize  Key = "sandbox.file-size"
	SandboxCPU       Key = "sandbox.cpu-time"

	RetentionVersions Key = "retention.versions"
	RetentionDays     Key = "retention.days"
	RetentionAudit    Key = "retention.audit-days"
)

// Group says which commands a setting is for.
type Group int

// The groups: every command that speaks to a service; serve alone; serve and worker.
const (
	ForClient Group = iota
	ForServe
	ForService
)

// Definition describes a setting.
type Definition struct {
	Key     Key
	Group   Group
	Default string
	// Secret settings have no flag, since arguments can be read by other users of the machine, and are never printed.
	Secret bool
	Usage  string
}

// Table lists every setting, in the order in which it is shown.
var Table = []Definition{
	{Server, ForClient, "", false, "HOST:PORT of the service; not set: the embedded service of this user, started when needed"},
	{Token, ForClient, "", true, "access token for the service"},
	{TokenFile, ForClient, "", false, "file that holds the access token"},
	{CACert, ForClient, "", false, "certificates (PEM) to check the service's against; not set: the system's"},
	{Organization, ForClient, "organization", false, "organization of stacks that are named without one"},
	{Home, ForClient, "", false, "directory of the embedded service; not set: ${XDG_STATE_HOME}/deployctl"},

	{Listen, ForServe, "127.0.0.1:7460", false, "HOST:PORT that the service listens on"},
	{BootstrapToken, ForServe, "", true, "serve's own token, with which the first admin's is created"},
	{BootstrapTokenFile, ForServe, "", false, "file that holds serve's own token"},
	{TLSCert, ForService, "", false, "certificate (PEM) of serve, required off loopback, and of metrics off loopback"},
	{TLSKey, ForService, "", false, "the certificate's key (PEM)"},
	{Metrics, ForService, "", false, "HOST:PORT for Prometheus metrics, and health checks; not set: none"},
	{MetricsToken, ForService, "", true, "token that Prometheus shows; required off loopback"},
	{MetricsTokenFile, ForService, "", false, "file that holds the token for metrics"},
	{Health, ForService, "", false, "HOST:PORT for health checks alone, /livez and /readyz; not set: none"},
	{Master, ForService, "", true, "the key that everything is sealed with, 32 bytes in base64; the same for every serve and worker"},
	{MasterF, ForService, "", false, "file that holds the key; several, one a line, while it is changed: the current one first"},
	{KeyURL, ForService, "", false, "key of a key management service in the place of the key: awskms://, gcpkms://, azurekeyvault://, hashivault://"},

	{TemporalAddress, ForService, "127.0.0.1:7233", false, "HOST:PORT of Temporal"},
	{TemporalNamespace, ForService, "default", false, "Temporal namespace"},
	{TemporalAPIKey, ForService, "", true, "Temporal API key (Temporal Cloud)"},
	{TemporalAPIKeyFile, ForService, "", false, "file that holds the Temporal API key"},
	{TemporalTLSCert, ForService, "", false, "client certificate (PEM) for Temporal, with its key: mTLS"},
	{TemporalTLSKey, ForService, "", false, "key (PEM) of the client certificate for Temporal"},
	{TemporalCACert, ForService, "", false, "certificates (PEM) to check Temporal's against"},
	{TemporalServerName, ForService, "", false, "name in Temporal's certificate, where it is not the address's"},
	{TemporalDeployment, ForService, "", false, "name of the workers' deployment in Temporal, for builds side by side; not set: builds are not told apart"},

	{S3Endpoint, ForService, "", false, "URL of an S3 server; not set: AWS"},
	{S3Bucket, ForService, "", false, "bucket for state; it must exist"},
	{S3Prefix, ForService, "", false, "prefix of every key in the bucket"},
	{S3Region, ForService, "us-east-1", false, "region of the bucket"},
	{S3AccessKey, ForService, "", false, "access key id; not set: the AWS SDK's usual places are searched"},
	{S3SecretKey, ForService, "", true, "secret access key"},
	{S3SecretKeyFile, ForService, "", false, "file that holds the secret access key"},

	{SandboxMode, ForService, "auto", false, "how programs and plugins are kept apart from the worker: auto, run-as, namespace or off"},
	{SandboxRunAs, ForService, "", false, "USER that programs and plugins run as, or FIRST-LAST: user ids of which each organization gets one"},
	{SandboxMemory, ForService, "8GiB", false, "private memory that a process of a program may have, or none for no limit"},
	{SandboxProcesses, ForService, "16384", false, "processes and threads that a program's user or namespace may have, or none"},
	{SandboxFiles, ForService, "65536", false, "files that a process of a program may have open, or none"},
	{SandboxFileSize, ForService, "64GiB", false, "size of a file that a process of a program may write, or none"},
	{SandboxCPU, ForService, "24h", false, "processor time that a process of a program may use, or none"},

	{RetentionVersions, ForService, "100", false, "how many of a stack's latest versions are kept, whatever their age"},
	{RetentionDays, ForService, "30", false, "how many days everything of a stack is kept"},
	{RetentionAudit, ForServe, "365", false, "how many days the audit log is kept"},
}
