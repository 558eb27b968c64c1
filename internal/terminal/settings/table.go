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

	TracingEndpoint    Key = "tracing.endpoint"
	TracingSample      Key = "tracing.sample"
	TracingHeaders     Key = "tracing.headers"
	TracingHeadersFile Key = "tracing.headers-file"
	TracingCACert      Key = "tracing.ca-cert"

	LogFormat Key = "log.format"
	LogLevel  Key = "log.level"

	Master  Key = "key"
	MasterF Key = "key-file"
	KeyURL  Key = "key-url"

	PulumiListen Key = "pulumi-listen"
	PulumiLease  Key = "pulumi-lease"
	Console      Key = "console"
	Issuer       Key = "issuer"

	LoginIssuer           Key = "login.issuer"
	LoginAddress          Key = "login.address"
	LoginClientID         Key = "login.client-id"
	LoginClientSecret     Key = "login.client-secret"
	LoginClientSecretFile Key = "login.client-secret-file"
	LoginScopes           Key = "login.scopes"

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
	TemporalWebUI      Key = "temporal.web-ui"

	S3Endpoint      Key = "s3.endpoint"
	S3Bucket        Key = "s3.bucket"
	S3Prefix        Key = "s3.prefix"
	S3Region        Key = "s3.region"
	S3AccessKey     Key = "s3.access-key-id"
	S3SecretKey     Key = "s3.secret-access-key"
	S3SecretKeyFile Key = "s3.secret-access-key-file"

	SandboxMode      Key = "sandbox.mode"
	SandboxRunAs     Key = "sandbox.run-as"
	SandboxShared    Key = "sandbox.shared"
	SandboxMemory    Key = "sandbox.memory"
	SandboxProcesses Key = "sandbox.processes"
	SandboxFiles     Key = "sandbox.open-files"
	SandboxFileSize  Key = "sandbox.file-size"
	SandboxCPU       Key = "sandbox.cpu-time"

	PluginsDownload     Key = "plugins.download"
	PluginsPrivateHosts Key = "plugins.private-hosts"
	SourcePrivateHosts  Key = "deployments.private-hosts"

	WebhooksPrivateHosts Key = "webhooks.private-hosts"

	TrustPrivateHosts Key = "trust.private-hosts"

	RetentionVersions Key = "retention.versions"
	RetentionDays     Key = "retention.days"
	RetentionAudit    Key = "retention.audit-days"
)

// Group says which commands a setting is for.
type Group int

// The groups: every command that speaks to a service; serve alone; serve and worker; all of these, where only serve and
// worker have flags for it.
const (
	ForClient Group = iota
	ForServe
	ForService
	ForEach
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
	{Server, ForClient, "", false, "`HOST:PORT` of the service; not set: the embedded service of this user, started " +
		"when needed"},
	{Token, ForClient, "", true, "access token for the service"},
	{TokenFile, ForClient, "", false, "`FILE` that holds the access token"},
	{CACert, ForClient, "", false, "`FILE` of CA certificates (PEM) that the service's certificate is checked " +
		"against; not set: the system's"},
	{Organization, ForClient, "organization", false, "`NAME` of the organization of stacks that are named without one"},
	{Home, ForClient, "", false, "`DIR` of the embedded service's data; not set: ${XDG_STATE_HOME}/deployctl"},

	{Listen, ForServe, "127.0.0.1:7460", false, "`HOST:PORT` that the API listens on"},
	{PulumiListen, ForServe, "", false, "`HOST:PORT` that the Pulumi Service API listens on, for the stock CLI; not " +
		"set: it is not served"},
	{PulumiLease, ForServe, "5m", false, "`DURATION` after which an update of the stock CLI that does not answer any " +
		"more loses its stack"},
	{Console, ForServe, "on", false, "serve the console for browsers at pulumi-listen: `on`, or off"},
	{TemporalWebUI, ForServe, "", false, "`URL` of Temporal's Web UI, to which the console links; not set: it does not"},
	{LoginIssuer, ForServe, "", false, "`URL` of the identity provider (OpenID Connect) with which people log in to the " +
		"console, such as https://accounts.google.com; not set: with a token only"},
	{LoginAddress, ForServe, "", false, "`URL` at which browsers reach the console, such as " +
		"https://pulumi.example.com:8443; the provider sends people back there"},
	{LoginClientID, ForServe, "", false, "`ID` of the service as a client of the provider"},
	{LoginClientSecret, ForServe, "", true, "secret of that client; not set: it is a public one"},
	{LoginClientSecretFile, ForServe, "", false, "`FILE` that holds the secret of that client"},
	{LoginScopes, ForServe, "openid profile email", false, "`SCOPES`, separated by spaces, which the provider is asked " +
		"for"},
	{Issuer, ForService, "", false, "`URL` under which clouds reach this service as an OpenID Connect issuer, the same " +
		"for every serve and worker, such as https://deploy.example.com; not set: it is none"},
	{BootstrapToken, ForServe, "", true, "serve's own token, which creates the first admin's token"},
	{BootstrapTokenFile, ForServe, "", false, "`FILE` that holds serve's own token"},
	{TracingEndpoint, ForEach, "", false, "`URL` of a collector to which traces are exported (OTLP over gRPC), such as " +
		"http://127.0.0.1:4317 or https://collector.internal:4317; not set: there are none"},
	{TracingSample, ForEach, "1", false, "`SHARE` of the traces that are exported, from 0 to 1; one that has begun " +
		"elsewhere is exported if it is there"},
	{TracingHeaders, ForEach, "", true, "NAME=VALUE, separated by commas: headers that the collector wants, such as a " +
		"token"},
	{TracingHeadersFile, ForEach, "", false, "`FILE` that holds those headers"},
	{TracingCACert, ForEach, "", false, "`FILE` of CA certificates (PEM) that the collector's certificate is checked " +
		"against; not set: the system's"},
	{TLSCert, ForService, "", false, "`FILE` of the certificate (PEM) of the API and of metrics; required off " +
		"loopback"},
	{TLSKey, ForService, "", false, "`FILE` of the certificate's key (PEM)"},
	{Metrics, ForService, "", false, "serve Prometheus metrics and health checks on `HOST:PORT`; not set: no metrics"},
	{MetricsToken, ForService, "", true, "token that Prometheus must send; required off loopback"},
	{MetricsTokenFile, ForService, "", false, "`FILE` that holds the token for metrics"},
	{Health, ForService, "", false, "serve only the health checks /livez and /readyz on `HOST:PORT`; not set: none"},
	{LogFormat, ForService, "text", false, "`FORMAT` of the log: text or json"},
	{LogLevel, ForService, "info", false, "write log lines of `LEVEL` and above: debug, info, warn or error"},
	{Master, ForService, "", true, "key that seals everything, 32 bytes in base64; the same for every serve and " +
		"worker"},
	{MasterF, ForService, "", false, "`FILE` that holds the key; while the key is changed, several keys, one a line, " +
		"the current one first"},
	{KeyURL, ForService, "", false, "`URL` of a key in a key management service, instead of key: awskms://, " +
		"gcpkms://, azurekeyvault:// or hashivault://"},

	{TemporalAddress, ForService, "127.0.0.1:7233", false, "`HOST:PORT` of Temporal"},
	{TemporalNamespace, ForService, "default", false, "`NAME` of the Temporal namespace"},
	{TemporalAPIKey, ForService, "", true, "Temporal API key (Temporal Cloud)"},
	{TemporalAPIKeyFile, ForService, "", false, "`FILE` that holds the Temporal API key"},
	{TemporalTLSCert, ForService, "", false, "`FILE` of the client certificate (PEM) for Temporal (mTLS)"},
	{TemporalTLSKey, ForService, "", false, "`FILE` of the client certificate's key (PEM)"},
	{TemporalCACert, ForService, "", false, "`FILE` of CA certificates (PEM) that Temporal's certificate is checked " +
		"against; not set: the system's"},
	{TemporalServerName, ForService, "", false, "`NAME` in Temporal's certificate, if it differs from the address"},
	{TemporalDeployment, ForService, "", false, "`NAME` of the workers' deployment in Temporal, so that updates stay " +
		"on their build; not set: builds are not distinguished"},

	{S3Endpoint, ForService, "", false, "`URL` of an S3 server; not set: AWS"},
	{S3Bucket, ForService, "", false, "`NAME` of the bucket for state; it must exist"},
	{S3Prefix, ForService, "", false, "`PREFIX` of every key in the bucket"},
	{S3Region, ForService, "us-east-1", false, "`NAME` of the bucket's region"},
	{S3AccessKey, ForService, "", false, "`ID` of the access key; not set: the AWS SDK's default credential chain"},
	{S3SecretKey, ForService, "", true, "secret access key"},
	{S3SecretKeyFile, ForService, "", false, "`FILE` that holds the secret access key"},

	{SandboxMode, ForService, "auto", false, "`MODE` of isolating programs and plugins from the worker: auto, " +
		"run-as, namespace or off"},
	{SandboxRunAs, ForService, "", false, "`USER` that programs and plugins run as, or FIRST-LAST: a range of user " +
		"ids, one for each organization"},
	{SandboxShared, ForService, "", false, "`DIRS`, separated by colons, that all programs may change in mode " +
		"namespace, such as caches; not set: none"},
	{SandboxMemory, ForService, "8GiB", false, "limit of the private memory of each process of a program: a `SIZE`, " +
		"or none"},
	{SandboxProcesses, ForService, "16384", false, "limit of the processes and threads of a program's user or " +
		"namespace: a `NUMBER`, or none"},
	{SandboxFiles, ForService, "65536", false, "limit of the open files of each process of a program: a `NUMBER`, or " +
		"none"},
	{SandboxFileSize, ForService, "64GiB", false, "limit of the files that a process of a program writes: a `SIZE`, " +
		"or none"},
	{SandboxCPU, ForService, "24h", false, "limit of the processor time of each process of a program: a `DURATION`, " +
		"or none"},

	{PluginsDownload, ForService, "auto", false, "download plugins that are not installed: auto (from their own " +
		"addresses), off, or the `URL` of a mirror, which may have ${NAME}, ${VERSION}, ${OS} and ${ARCH}"},
	{PluginsPrivateHosts, ForService, "", false, "`HOSTS`, separated by commas, at private addresses from which " +
		"plugins may be downloaded"},
	{SourcePrivateHosts, ForService, "", false, "`HOSTS`, separated by commas, at private addresses from which " +
		"deployments may take programs"},
	{WebhooksPrivateHosts, ForService, "", false, "`HOSTS`, names, addresses or ranges such as 10.0.0.0/8, separated " +
		"by commas, at private addresses to which webhooks may lead"},

	{TrustPrivateHosts, ForServe, "", false, "`HOSTS`, separated by commas, at private addresses whose identity " +
		"tokens may be trusted"},

	{RetentionVersions, ForService, "100", false, "keep at least the latest `N` versions of a stack, whatever their " +
		"age"},
	{RetentionDays, ForService, "30", false, "keep everything of a stack for `N` days"},
	{RetentionAudit, ForServe, "365", false, "keep the audit log for `N` days"},
}
