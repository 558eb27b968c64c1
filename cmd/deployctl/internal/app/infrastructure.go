package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/kms"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/jobs/deployment"
	"github.com/deployctl/deployctl/internal/jobs/webhooks"
	"github.com/deployctl/deployctl/internal/plugin/plugins"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sys/doors"
	"github.com/deployctl/deployctl/internal/sys/heap"
	"github.com/deployctl/deployctl/internal/sys/outbound"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/internal/values/workload"
	"github.com/deployctl/deployctl/providers"
	"github.com/deployctl/deployctl/providers/s3"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
	"github.com/deployctl/deployctl/worker"
)

// infrastructure is what a service and its workers connect to, and their own settings.
type infrastructure struct {
	temporal temporalSettings
	s3       s3Settings
	keepers  []seal.Keeper // of the keys that seal everything
	adopt    bool          // see statestore.Options
	// instance names this process; gone are instances that are known to have ended (see devserver.Status).
	instance string
	gone     []string
	// organizations are the organizations of a worker; see worker.Options.
	organizations []string
	// heap counts what pools of memory have given out; nil: nobody asks.
	heap *heap.Limit
	// retention is what garbage collection keeps of a stack.
	retention statestore.Retention
	// plugins are the servers from which plugins may be downloaded; nil: none.
	plugins *plugins.Network
	// sources are the git servers from which deployments may take programs.
	sources deployment.Sources
	// defaults are what resources of the first-party package fall back on.
	defaults providers.Defaults
	// webhooks are the servers to which events may be sent.
	webhooks webhooks.Network
	// issuers are the hosts of issuers of identity tokens that may be at private addresses.
	issuers []string
	// issuer is the address of the service as an issuer of workload tokens; empty: it is none.
	issuer string
	// lease is how long an update of the stock CLI may go without renewing its lease.
	lease time.Duration
	// pages are the settings of the console; nil: none is served.
	pages *pages
	// dir is the directory of a worker for the files of programs.
	dir string
	// embedded means that the service is one user's own, on one machine.
	embedded bool
	// sandbox isolates the programs of a worker.
	sandbox *sandbox.Policy
	metrics *exporter
	tracing *tracing.Tracing // nil: no spans
	log     *slog.Logger
}

type temporalSettings struct {
	address, namespace, apiKey string
	tlsCert, tlsKey, caCert    string // paths
	serverName                 string // see worker.Temporal
	deployment                 string // see worker.Options
}

type s3Settings struct {
	endpoint, bucket, prefix, region string
	accessKey, secretKey             string
	secretKeyFile                    string // see bucket.S3Options
	// dial connects to the server; nil: as a net.Dialer does.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// under describes the prefix for a message.
func (s s3Settings) under() string {
	if s.prefix == "" {
		return ""
	}
	return " with the prefix " + s.prefix
}

// infrastructureOf reads the settings of serve and worker. The error joins all faults of the settings.
func infrastructureOf(s settings.Settings, log *slog.Logger) (infrastructure, error) {
	in, err := foundationOf(s, log)
	faults := []error{err, nil, nil, nil, nil}
	in.retention, faults[1] = retentionOf(s)
	in.plugins, faults[2] = pluginsOf(s)
	in.sources = sourcesOf(s)
	in.webhooks, faults[3] = webhooksOf(s)
	in.issuer, faults[4] = issuerOf(s)
	return in, errors.Join(faults...)
}

// pluginsOf reads the settings of downloads of plugins.
func pluginsOf(s settings.Settings) (*plugins.Network, error) {
	network, err := plugins.ParseNetwork(s.Get(settings.PluginsDownload), s.Get(settings.PluginsPrivateHosts))
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%s (set by %s): %w", settings.PluginsDownload,
			s.Source(settings.PluginsDownload), err)
	}
	return network, nil
}

// sourcesOf reads the settings of git servers.
func sourcesOf(s settings.Settings) deployment.Sources {
	return deployment.Sources{Hosts: outbound.Hosts(s.Get(settings.SourcePrivateHosts))}
}

// webhooksOf reads the setting of where webhooks may lead.
func webhooksOf(s settings.Settings) (webhooks.Network, error) {
	network, err := webhooks.ParseNetwork(s.Get(settings.WebhooksPrivateHosts))
	if err != nil {
		return network, deployments.Errorf(deployments.CodeInvalid, "%s (set by %s): %w", settings.WebhooksPrivateHosts,
			s.Source(settings.WebhooksPrivateHosts), err)
	}
	return network, nil
}

// issuerOf reads the setting of the service as an issuer.
func issuerOf(s settings.Settings) (string, error) {
	address := s.Get(settings.Issuer)
	if address == "" {
		return "", nil
	}
	if err := workload.ValidateIssuer(address); err != nil {
		return "", deployments.Errorf(deployments.CodeInvalid, "%s (set by %s): %w", settings.Issuer,
			s.Source(settings.Issuer), err)
	}
	return address, nil
}

// foundationOf reads the settings of Temporal, of the bucket and of the key.
func foundationOf(s settings.Settings, log *slog.Logger) (infrastructure, error) {
	in := infrastructure{
		temporal: temporalSettings{
			address: s.Get(settings.TemporalAddress), namespace: s.Get(settings.TemporalNamespace),
			tlsCert: s.Get(settings.TemporalTLSCert), tlsKey: s.Get(settings.TemporalTLSKey),
			caCert:     s.Get(settings.TemporalCACert),
			serverName: s.Get(settings.TemporalServerName),
			deployment: s.Get(settings.TemporalDeployment),
		},
		s3: s3Settings{
			endpoint: s.Get(settings.S3Endpoint), bucket: s.Get(settings.S3Bucket), prefix: s.Get(settings.S3Prefix),
			region: s.Get(settings.S3Region), accessKey: s.Get(settings.S3AccessKey),
		},
		log: log,
	}
	var faults []error
	if in.s3.bucket == "" {
		faults = append(faults, deployments.Errorf(deployments.CodeInvalid,
			"the service needs a bucket for its state: set --s3-bucket, DEPLOYCTL_S3_BUCKET or s3.bucket in %s",
			s.File()))
	}
	if s.Get(settings.S3SecretKey) == "" {
		in.s3.secretKeyFile = s.Get(settings.S3SecretKeyFile)
	}
	var err error
	in.temporal.apiKey, err = s.Secret(settings.TemporalAPIKey)
	faults = append(faults, err)
	in.s3.secretKey, err = s.Secret(settings.S3SecretKey)
	faults = append(faults, err)
	in.keepers, err = keepersOf(s)
	return in, errors.Join(append(faults, err)...)
}

// keepersOf reads the keepers of the service's keys: a key of a key management service, and master keys, the first of
// which is the current one.
func keepersOf(s settings.Settings) ([]seal.Keeper, error) {
	var keepers []seal.Keeper
	if text := s.Get(settings.KeyURL); text != "" {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		keeper, err := kms.Open(ctx, text)
		if err != nil {
			return nil, deployments.Errorf(deployments.CodeOf(err), "key-url: %w", err)
		}
		keepers = append(keepers, keeper)
	}
	text, err := s.Secret(settings.Master)
	if err != nil {
		return nil, err
	}
	for _, one := range strings.FieldsFunc(text, func(r rune) bool { return unicode.IsSpace(r) || r == ',' }) {
		key, err := base64.StdEncoding.DecodeString(one)
		if err != nil || len(key) != 32 {
			return nil, deployments.Errorf(deployments.CodeInvalid,
				"the service's key must be 32 bytes in base64, or several such keys, one a line, the current one "+
					"first; the content of %s is not", keySource(s))
		}
		keeper, err := seal.NewMasterKeeper(key)
		if err != nil {
			return nil, err
		}
		keepers = append(keepers, keeper)
	}
	if path := s.Get(settings.MasterF); len(keepers) == 0 && path != "" {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			"the file of the service's key, %s (key-file, set by %s), is empty: restore the key from its copy", path,
			s.Source(settings.MasterF))
	}
	if len(keepers) == 0 {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			"the service needs its key: set DEPLOYCTL_KEY, --key-file or --key-url (create one with: head -c 32 "+
				"/dev/urandom | base64, and keep a copy)")
	}
	return keepers, nil
}

// keySource returns the setting from which the service's key comes.
func keySource(s settings.Settings) string {
	if s.Get(settings.Master) != "" {
		return s.Source(settings.Master)
	}
	return fmt.Sprintf("the file %s (key-file, set by %s)", s.Get(settings.MasterF), s.Source(settings.MasterF))
}

// config returns the configuration of a connection.
func (in infrastructure) config() worker.Config {
	return worker.Config{
		Temporal: worker.Temporal{
			Address: in.temporal.address, Namespace: in.temporal.namespace, APIKey: in.temporal.apiKey,
			TLSCert: in.temporal.tlsCert, TLSKey: in.temporal.tlsKey, CACert: in.temporal.caCert,
			ServerName: in.temporal.serverName,
		},
		S3: bucket.S3Options{
			Endpoint: in.s3.endpoint, Region: in.s3.region, Bucket: in.s3.bucket, Prefix: in.s3.prefix,
			AccessKey: in.s3.accessKey, SecretKey: in.s3.secretKey, SecretKeyFile: in.s3.secretKeyFile,
			Dial: in.s3.dial,
		},
		Keepers: in.keepers, Adopt: in.adopt, Log: in.log, Metrics: in.metrics.sdk(), WrapObjects: in.metrics.objects(),
		Tracing: in.tracing,
	}
}

// retentionOf reads the settings of retention.
func retentionOf(s settings.Settings) (statestore.Retention, error) {
	versions, err := countOf(s, settings.RetentionVersions)
	days, wrong := countOf(s, settings.RetentionDays)
	return statestore.Retention{Versions: versions, Age: time.Duration(days) * 24 * time.Hour}, errors.Join(err, wrong)
}

// auditKept reads how long the audit log is kept.
func auditKept(s settings.Settings) (time.Duration, error) {
	days, err := countOf(s, settings.RetentionAudit)
	return time.Duration(days) * 24 * time.Hour, err
}

// countOf reads a setting that is a whole number.
func countOf(s settings.Settings, key settings.Key) (int, error) {
	n, err := strconv.Atoi(s.Get(key))
	if err != nil || n < 1 || n > most {
		return 0, deployments.Errorf(deployments.CodeInvalid,
			"%s must be a whole number from 1 to %d, not %q (set by %s)", key, most, s.Get(key), s.Source(key))
	}
	return n, nil
}

// most is the largest number in a retention setting: the days of a hundred years.
const most = 36_500

// embeddedInfrastructure returns the infrastructure of a running embedded service.
func embeddedInfrastructure(server *devserver.Server, dir string) (infrastructure, error) {
	status := server.Status
	keeper, err := seal.NewMasterKeeper(server.Keys.Master)
	accessKey, secretKey := server.Keys.OfPrograms()
	return infrastructure{
		temporal: temporalSettings{
			address: status.TemporalAddress, namespace: status.Namespace,
			tlsCert: status.TemporalCredentials, tlsKey: status.TemporalCredentials, caCert: status.TemporalCredentials,
		},
		s3: s3Settings{
			endpoint: status.S3Endpoint, bucket: status.Bucket, region: devserver.Region,
			accessKey: server.Keys.S3AccessKey, secretKey: server.Keys.S3SecretKey,
			dial: doors.Dialer(net.Dialer{}), // the server may be gone, and another user's in its place
		},
		defaults: providers.Defaults{S3: s3.Config{
			Endpoint: status.S3Endpoint, Region: devserver.Region, AccessKey: accessKey, SecretKey: secretKey,
		}},
		// Only the user can write the home's bucket, so one of an older release is adopted.
		keepers: []seal.Keeper{keeper}, adopt: true, instance: status.Instance, gone: status.Gone,
		dir: dir, embedded: true, log: server.Log,
	}, err
}
