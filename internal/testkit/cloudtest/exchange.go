package cloudtest

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/aws/aws-sdk-go-v2/config"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// Exchange has the clouds' own libraries find what the environment of this process says, and get credentials from fakes
// at an address. It says what they got, a line for each cloud.
func Exchange(ctx context.Context, to io.Writer, fakes string) {
	client := &http.Client{Transport: Via(fakes)}
	say := func(cloud, got string, err error) {
		if err != nil {
			got = "refused, " + err.Error()
		}
		_, _ = fmt.Fprintf(to, "%s: %s.\n", cloud, got)
	}
	got, err := fromAWS(ctx, fakes)
	say("aws", got, err)
	got, err = fromGoogle(ctx, client)
	say("google", got, err)
	got, err = fromAzure(ctx, client)
	say("azure", got, err)
}

func fromAWS(ctx context.Context, fakes string) (string, error) {
	if err := os.Setenv("AWS_ENDPOINT_URL_STS", fakes); err != nil {
		return "", err
	}
	c, err := config.LoadDefaultConfig(ctx, config.WithRegion("eu-central-1"), config.WithRetryMaxAttempts(1))
	if err != nil {
		return "", err
	}
	got, err := c.Credentials.Retrieve(ctx)
	return got.AccessKeyID, err
}

func fromGoogle(ctx context.Context, client *http.Client) (string, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, client)
	found, err := google.FindDefaultCredentials(ctx, "https://www.googleapis.com/auth/cloud-platform")
	if err != nil {
		return "", err
	}
	got, err := found.TokenSource.Token()
	if err != nil {
		return "", err
	}
	return got.AccessToken, nil
}

func fromAzure(ctx context.Context, client *http.Client) (string, error) {
	o := &azidentity.WorkloadIdentityCredentialOptions{DisableInstanceDiscovery: true}
	o.Transport, o.Retry = client, policy.RetryOptions{MaxRetries: -1}
	credential, err := azidentity.NewWorkloadIdentityCredential(o)
	if err != nil {
		return "", err
	}
	got, err := credential.GetToken(ctx, policy.TokenRequestOptions{
		Scopes: []string{"https://management.azure.com/.default"}})
	return got.Token, err
}

// ExchangeVariable is the address of the fakes for a test binary that a program runs.
const ExchangeVariable = "CLOUDTEST_FAKES"

// ExchangeIfAsked has a test binary, which a program runs, do Exchange and end. TestMain calls it.
func ExchangeIfAsked() {
	if fakes := os.Getenv(ExchangeVariable); fakes != "" {
		Exchange(context.Background(), os.Stdout, fakes)
		os.Exit(0)
	}
}
