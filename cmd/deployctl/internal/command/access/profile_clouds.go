package access

import (
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// Flags of clouds.
const (
	awsRole              = "aws-role"
	googleProvider       = "google-provider"
	googleServiceAccount = "google-service-account"
	azureTenant          = "azure-tenant"
	azureClient          = "azure-client"
	azureSubscription    = "azure-subscription"
)

// cloudFlags set clouds of a profile.
func cloudFlags() []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: awsRole, Usage: "updates take the role of AWS with this `ARN`"},
		&cli.StringFlag{Name: googleProvider, Usage: "updates are known to Google by this `PROVIDER` of a workload identity " +
			"pool, its full name"},
		&cli.StringFlag{Name: googleServiceAccount, Usage: "with --google-provider: updates impersonate the service " +
			"account `EMAIL`"},
		&cli.StringFlag{Name: azureTenant, Usage: "with --azure-client: the `ID` of its tenant"},
		&cli.StringFlag{Name: azureClient, Usage: "updates are the application or managed identity of Azure with this " +
			"client `ID`"},
		&cli.StringFlag{Name: azureSubscription, Usage: "with --azure-client: the `ID` of the subscription"},
	}
}

// removedCloudFlags remove clouds of a profile.
func removedCloudFlags() []cli.Flag {
	return []cli.Flag{
		&cli.BoolFlag{Name: deployments.CloudAWS, Usage: "remove the role of AWS"},
		&cli.BoolFlag{Name: deployments.CloudGoogle, Usage: "remove what it has of Google"},
		&cli.BoolFlag{Name: deployments.CloudAzure, Usage: "remove what it has of Azure"},
	}
}

// cloudsOf reads the flags that set clouds. Those of one cloud are set together.
func cloudsOf(s *console.Session) (c deployments.Clouds, err error) {
	for flag, needs := range map[string]string{googleServiceAccount: googleProvider, azureTenant: azureClient,
		azureClient: azureTenant, azureSubscription: azureClient} {
		if s.Flags.IsSet(flag) && !s.Flags.IsSet(needs) {
			return c, deployments.Errorf(deployments.CodeInvalid, "--%s needs --%s: what a profile has of a cloud is set "+
				"together", flag, needs)
		}
	}
	if s.Flags.IsSet(awsRole) {
		c.AWS = &deployments.AWSRole{Role: s.Flags.String(awsRole)}
	}
	if s.Flags.IsSet(googleProvider) {
		name := s.Flags.String(googleProvider)
		for _, prefix := range []string{"https:", "//iam.googleapis.com/"} { // as Google shows it, too
			name = strings.TrimPrefix(name, prefix)
		}
		c.Google = &deployments.GoogleWorkload{Provider: name, ServiceAccount: s.Flags.String(googleServiceAccount)}
	}
	if s.Flags.IsSet(azureClient) {
		c.Azure = &deployments.AzureClient{Tenant: s.Flags.String(azureTenant), Client: s.Flags.String(azureClient),
			Subscription: s.Flags.String(azureSubscription)}
	}
	return c, nil
}

// removedClouds reads the flags that remove clouds.
func removedClouds(s *console.Session) (names []string) {
	for _, name := range []string{deployments.CloudAWS, deployments.CloudGoogle, deployments.CloudAzure} {
		if s.Flags.Bool(name) {
			names = append(names, name)
		}
	}
	return names
}

// sayClouds shows the clouds of a profile.
func sayClouds(s *console.Session, c deployments.Clouds) {
	if c.AWS != nil {
		s.Say("  AWS: %s", c.AWS.Role)
	}
	if g := c.Google; g != nil {
		as := ""
		if g.ServiceAccount != "" {
			as = " as " + g.ServiceAccount
		}
		s.Say("  Google: %s%s", g.Provider, as)
	}
	if a := c.Azure; a != nil {
		in := ""
		if a.Subscription != "" {
			in = ", subscription " + a.Subscription
		}
		s.Say("  Azure: client %s of the tenant %s%s", a.Client, a.Tenant, in)
	}
}
