package real

import (
	"bufio"
	"context"
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
)

// terraformProvider is the newest provider of a name that was given (REAL_NAME_PROVIDER), or that Terraform has
// installed in one of its directories (TF_PLUGIN_DIR, or those of which Terraform's documentation says that it looks).
func terraformProvider(t *testing.T, name string) string {
	t.Helper()
	given := "REAL_" + strings.ToUpper(name) + "_PROVIDER"
	if path := os.Getenv(given); path != "" {
		return path
	}
	home, _ := os.UserHomeDir()
	for _, dir := range []string{os.Getenv("TF_PLUGIN_DIR"), os.Getenv("TF_PLUGIN_CACHE_DIR"),
		filepath.Join(home, ".terraform.d", "plugins"), "/usr/local/share/terraform/plugins"} {
		found, err := filepath.Glob(filepath.Join(dir, "*", "*", name, "*", "*", "terraform-provider-"+name+"_*"))
		if err == nil && dir != "" && len(found) > 0 {
			return found[len(found)-1]
		}
	}
	t.Skipf("no provider of Terraform for %s: set %s to its path, or TF_PLUGIN_DIR to a mirror that has it", name, given)
	return ""
}

// cloud is an emulator of AWS.
type cloud struct{ url string }

// onAWS is Terraform's provider for AWS, as a package that is made at run time, and an emulator.
func onAWS(t *testing.T) *subject {
	provider := terraformProvider(t, "aws")
	dir, files := bridged(t, "aws", provider, "aws_iam_role", "aws_dynamodb_table", "aws_sns_topic", "aws_vpc",
		"aws_vpcs", "aws_cloudwatch_log_group", "aws_caller_identity", "aws_region", "aws_partition")
	return &subject{
		server: &cloud{emulator(t)}, env: []string{"PATH=" + dir + string(os.PathListSeparator) + harnessPath(t)},
		files: files, plugin: "pulumi-resource-terraform-provider", program: awsProgram,
		config: [][2]string{{"deployctl:mark", "true"}},
	}
}

// emulator is the URL of the emulator that was given, or of one of the test's own.
func emulator(t *testing.T) string {
	t.Helper()
	if given := os.Getenv("REAL_AWS_ENDPOINT"); given != "" {
		return given
	}
	path, err := exec.Command(filepath.Join(harness.Root(), "tools", "cached"), "peers/kumo", "./server").Output()
	if err != nil {
		t.Skipf("the emulator of AWS could not be built: %v", err)
	}
	cmd := exec.Command(strings.TrimSpace(string(path)))
	stdin, err := cmd.StdinPipe()
	harness.Must(t, err)
	out, err := cmd.StdoutPipe()
	harness.Must(t, err)
	harness.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	harness.Must(t, err)
	return strings.TrimSpace(line)
}

const awsHead = `name: real
runtime: yaml
resources:
  cloud:
    type: pulumi:providers:aws
    defaultProvider: true
    properties:
      region: us-east-1
      accessKey: "123456789012"
      secretKey: test
      skipCredentialsValidation: true
      skipMetadataApiCheck: "true"
      skipRequestingAccountId: true
      maxRetries: 1
      endpoints: [{iam: URL, ec2: URL, sns: URL, dynamodb: URL, sqs: URL, sts: URL, logs: URL}]
`

const trust = `'{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"ec2.amazonaws.com"},` +
	`"Action":"sts:AssumeRole"}]}'`

// awsProgram has types with names, with ids that are made of values, and with ids that only the server knows.
func awsProgram(s stage) string {
	days, cidr, key := 7, "10.1.0.0/16", "id"
	if s.changed {
		days = 14
	}
	if s.replaced {
		cidr, key = "10.2.0.0/16", "key"
	}
	text := strings.ReplaceAll(awsHead, "URL", s.address) + fmt.Sprintf(`
  outside: {type: "aws:iamRole", properties: {name: %[1]s-outside, maxSessionDuration: 3600, assumeRolePolicy: %[2]s}}
`, s.prefix, trust)
	for i := range 2 {
		text += fmt.Sprintf(`
  role%[2]d:
    type: aws:iamRole
    properties: {name: %[1]s-role%[2]d, maxSessionDuration: %[7]d, assumeRolePolicy: %[4]s}
  logs%[2]d: {type: "aws:cloudwatchLogGroup", properties: {name: %[1]s-logs%[2]d, retentionInDays: %[3]d}}
  topic%[2]d: {type: "aws:snsTopic", properties: {name: %[1]s-topic%[2]d, displayName: "of %[3]d days"}}
  net%[2]d: {type: "aws:vpc", properties: {cidrBlock: %[5]s, tags: {Name: %[1]s-net%[2]d}}}
  table%[2]d:
    type: aws:dynamodbTable
    properties:
      {name: %[1]s-table%[2]d, billingMode: PAY_PER_REQUEST, hashKey: %[6]s, attributes: [{name: %[6]s, type: S}]}
    options: {deleteBeforeReplace: true}
`, s.prefix, i, days, trust, cidr, key, days*600) // seconds, from 3,600 on
	}
	return text
}

func (c *cloud) proxy(t *testing.T, faults *Faults) string {
	p, err := NewHTTP(c.url, faults)
	harness.Must(t, err)
	t.Cleanup(p.Close)
	return p.URL
}

// call asks a service: by a form, or by a target with JSON.
func (c *cloud) call(ctx context.Context, service, target, body string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if target != "" {
		req.Header.Set("Content-Type", "application/x-amz-json-1.1")
		req.Header.Set("X-Amz-Target", target)
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=123456789012/20260101/us-east-1/"+service+
		"/aws4_request, SignedHeaders=host, Signature=0")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err == nil && res.StatusCode >= http.StatusBadRequest {
		err = fmt.Errorf("%s %s: %s: %s", service, body, res.Status, text)
	}
	return text, err
}

func (c *cloud) objects(ctx context.Context, prefix string) (all []object, err error) {
	add := func(kind, name, id string) {
		if strings.HasPrefix(name, prefix+"-") {
			all = append(all, object{kind, name, id})
		}
	}
	var roles struct {
		Names []string `xml:"ListRolesResult>Roles>member>RoleName"`
	}
	var topics struct {
		ARNs []string `xml:"ListTopicsResult>Topics>member>TopicArn"`
	}
	var nets struct {
		Items []struct {
			ID   string `xml:"vpcId"`
			Tags []struct {
				Key   string `xml:"key"`
				Value string `xml:"value"`
			} `xml:"tagSet>item"`
		} `xml:"vpcSet>item"`
	}
	var tables struct{ TableNames []string }
	var groups struct {
		LogGroups []struct{ LogGroupName string }
	}
	for _, ask := range []struct {
		service, target, body string
		into                  any
	}{
		{"iam", "", "Action=ListRoles&Version=2010-05-08", &roles},
		{"sns", "", "Action=ListTopics&Version=2010-03-31", &topics},
		{"ec2", "", "Action=DescribeVpcs&Version=2016-11-15", &nets},
		{"dynamodb", "DynamoDB_20120810.ListTables", "{}", &tables},
		{"logs", "Logs_20140328.DescribeLogGroups", "{}", &groups},
	} {
		text, err := c.call(ctx, ask.service, ask.target, ask.body)
		if err == nil && ask.target == "" {
			err = xml.Unmarshal(text, ask.into)
		} else if err == nil {
			err = json.Unmarshal(text, ask.into)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range roles.Names {
		add("role", name, name)
	}
	for _, arn := range topics.ARNs {
		add("topic", arn[strings.LastIndex(arn, ":")+1:], arn)
	}
	for _, name := range tables.TableNames {
		add("table", name, name)
	}
	for _, g := range groups.LogGroups {
		add("log group", g.LogGroupName, g.LogGroupName)
	}
	for _, n := range nets.Items {
		for _, tag := range n.Tags {
			if tag.Key == "Name" {
				add("network", tag.Value, n.ID)
			}
		}
	}
	return all, nil
}

func (c *cloud) alter(ctx context.Context, prefix string) error {
	_, err := c.call(ctx, "iam", "", url.Values{"Action": {"UpdateRole"}, "Version": {"2010-05-08"},
		"RoleName": {prefix + "-outside"}, "MaxSessionDuration": {"7200"}}.Encode())
	return err
}
