package errorclass

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/deployctl/deployctl/engine"
)

func TestTheEmbeddedTableIsValid(t *testing.T) {
	table, err := builtIn()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{general, "aws", "aws-native", "gcp", "azure", "azure-native", "kubernetes"} {
		if len(table[name]) == 0 {
			t.Errorf("there are no patterns of %s", name)
		}
	}
}

func TestErrorsAsProvidersReportThemHaveTheClassThatTheyMean(t *testing.T) {
	const aws, gcp, azure, k8s, native = "aws:iam/role:Role", "gcp:pubsub/topic:Topic",
		"azure:storage/account:Account", "kubernetes:core/v1:ConfigMap", "aws-native:s3:Bucket"
	for _, c := range []struct {
		typ, step, text string
		class           engine.ErrorClass
	}{
		{aws, "create", "creating IAM Role (app): operation error IAM: CreateRole, exceeded maximum number of attempts, 3, " +
			"https response error StatusCode: 500, RequestID: 1b4f, api error InternalFailure: ", engine.ErrorAmbiguous},
		{aws, "create", "creating IAM Role (app): operation error IAM: CreateRole, https response error StatusCode: 409, " +
			"RequestID: 1b4f, EntityAlreadyExists: Role with name app already exists.", engine.ErrorExists},
		{aws, "create", "creating IAM Role (app): operation error IAM: CreateRole, https response error StatusCode: 403, " +
			"RequestID: 1b4f, api error AccessDenied: User is not authorized", engine.ErrorDefinite},
		{aws, "create", "creating SQS Queue (jobs): operation error SQS: TagQueue, https response error StatusCode: 403, " +
			"RequestID: 1b4f, api error AccessDenied: User is not authorized", engine.ErrorAmbiguous},
		{aws, "create", "waiting for SQS Queue (https://sqs/jobs) attributes create: couldn't find resource (11 retries)",
			engine.ErrorAmbiguous},
		{aws, "create", "operation error IAM: CreateRole, request send failed, Post \"https://iam/\": EOF",
			engine.ErrorAmbiguous},
		{aws, "create", "operation error EC2: CreateVpc, exceeded maximum number of attempts, 2, https response error " +
			"StatusCode: 503, RequestID: , api error RequestLimitExceeded: slow", engine.ErrorThrottled},
		{aws, "create", "operation error EC2: CreateVpc, exceeded maximum number of attempts, 2, https response error " +
			"StatusCode: 503, RequestID: , api error Unavailable: later", engine.ErrorAmbiguous},
		{aws, "create", "operation error Lambda: CreateFunction, https response error StatusCode: 400, RequestID: 7, " +
			"InvalidParameterValueException: The role defined for the function cannot be assumed by Lambda.",
			engine.ErrorNotReady},
		{aws, "delete", "operation error EC2: DeleteVpc, https response error StatusCode: 400, RequestID: 7, api error " +
			"DependencyViolation: The vpc has dependencies", engine.ErrorNotReady},
		{native, "create", `operation CREATE failed with "NotStabilized": it did not settle`, engine.ErrorAmbiguous},
		{native, "create", `operation CREATE failed with "AlreadyExists": my-bucket already exists`, engine.ErrorExists},
		{gcp, "create", "Error creating Topic: googleapi: Error 409: Resource already exists in the project, alreadyExists",
			engine.ErrorExists},
		{gcp, "create", "Error creating Topic: googleapi: Error 503: try again, backendError", engine.ErrorAmbiguous},
		{gcp, "create", "Error creating Network: googleapi: Error 400: The resource 'x' is not ready, resourceNotReady",
			engine.ErrorNotReady},
		{gcp, "create", "Error waiting to create Instance: Error waiting for Creating it: quota", engine.ErrorAmbiguous},
		{azure, "create", `A resource with the ID "/subscriptions/x" already exists - to be managed via Terraform`,
			engine.ErrorExists},
		{azure, "create", "creating Account: unexpected status 429 (429 Too Many Requests) with error: TooManyRequests",
			engine.ErrorThrottled},
		{azure, "create", "creating Account: polling after Create: polling failed", engine.ErrorAmbiguous},
		{k8s, "create", `resource "c" was not successfully created by the Kubernetes API server: configmaps "c" already ` +
			`exists`, engine.ErrorExists},
		{k8s, "create", `the server was unable to return a response in the time allotted, but may still be processing the ` +
			`request (post configmaps)`, engine.ErrorAmbiguous},
		{k8s, "create", `Internal error occurred: failed calling webhook "w": Post "https://w": no endpoints`,
			engine.ErrorNotReady},
		{k8s, "create", `configured Kubernetes cluster is unreachable: unable to load schema information from the API server: ` +
			`Get "http://h/openapi/v2?timeout=32s": dial tcp: connect: connection refused`, engine.ErrorNotReady},
		{"pkg:x:Y", "create", `Get "http://h/v2?timeout=32s": connect: connection refused`, engine.ErrorNotReady},
		{"pkg:x:Y", "create", `Get "http://h/v2?timeout=32s": request timed out`, engine.ErrorAmbiguous},
		{k8s, "read", "failed to read resource state due to unreachable cluster", engine.ErrorNotReady},
		{k8s, "create", `ConfigMap "c" is invalid: metadata.name: Invalid value`, engine.ErrorDefinite},
		{"pkg:x:Y", "create", "Put \"http://h/\": read tcp 1:2->3:4: read: connection reset by peer", engine.ErrorAmbiguous},
		{"pkg:x:Y", "create", "dial tcp 10.0.0.1:443: connect: connection refused", engine.ErrorNotReady},
		{"pkg:x:Y", "create", "timeout while waiting for state to become 'ready' (last error: StatusCode: 400)",
			engine.ErrorAmbiguous},
		{"pkg:x:Y", "create", "HTTP 404: Not Found", engine.ErrorAmbiguous}, // of what was read after it was made
		{"pkg:x:Y", "delete", `pq: role "x" does not exist (42704)`, engine.ErrorAmbiguous},
		{"pkg:x:Y", "delete", "NoSuchEntity: the role is not there", engine.ErrorAmbiguous},
		{"pkg:x:Y", "delete", "dial tcp: lookup db: no such host", engine.ErrorNotReady}, // nobody was asked
		{"pkg:x:Y", "update", `pq: role "x" does not exist (42704)`, engine.ErrorUnknown},
		{"pkg:x:Y", "create", "the moon is full", engine.ErrorUnknown},
	} {
		got, err := Table(nil).Classify(Error{Type: c.typ, Step: c.step, Code: codes.Unknown, Text: c.text})
		if err != nil || got.Class != c.class || got.Typed {
			t.Errorf("%s: %+v, not %s: %v", c.text, got, c.class, err)
		}
	}
}

func TestAStacksOwnPatternsAreAskedFirst(t *testing.T) {
	stack := Table{
		"pkg":     {{Class: engine.ErrorDefinite, HTTP: []string{"5xx"}, Text: []string{"moon"}}},
		"pkg:x:Y": {{Class: engine.ErrorNotReady, On: []string{"delete"}, Code: []string{"Moon*"}}},
	}
	if err := stack.Compile(); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		step, text string
		want       Verdict
	}{
		{"create", "status 500: the MOON", Verdict{engine.ErrorDefinite, `deployctl:errors: HTTP 500, "MOON"`, false}},
		{"create", "status 500: the sun", Verdict{engine.ErrorAmbiguous, "general: HTTP 500", false}},
		{"delete", "MoonIsFull", Verdict{engine.ErrorNotReady, "deployctl:errors: MoonIsFull", false}},
	} {
		if got, err := stack.Classify(Error{"pkg:x:Y", c.step, codes.Unknown, c.text}); got != c.want || err != nil {
			t.Errorf("%s %s: %+v %v", c.step, c.text, got, err)
		}
	}
}

func TestAStatusCodeOfTheProtocolSaysTheClass(t *testing.T) {
	for _, c := range []struct {
		step  string
		code  codes.Code
		class engine.ErrorClass
	}{
		{"create", codes.InvalidArgument, engine.ErrorDefinite},
		{"update", codes.NotFound, engine.ErrorDefinite},
		{"delete", codes.NotFound, engine.ErrorAmbiguous}, // it may be gone by a deletion whose answer was lost
	} {
		got, err := Table(nil).Classify(Error{"pkg:x:Y", c.step, c.code, "timed out"})
		if want := (Verdict{c.class, "general: gRPC " + c.code.String(), true}); got != want || err != nil {
			t.Errorf("%s: %+v %v", c.step, got, err)
		}
	}
}

// TestATableCostsNoMoreThanItMay has tables that are short as texts: a worker would have gigabytes of them.
func TestATableCostsNoMoreThanItMay(t *testing.T) {
	large := strings.Repeat("x{1000}", 70)
	for name, table := range map[string]Table{
		"a large expression":  {"pkg": {{Class: engine.ErrorDefinite, Text: []string{large}}}},
		"large ones together": {"a": {{Class: engine.ErrorDefinite, Text: slices.Repeat([]string{"x{1000}"}, 30)}}},
		"many values":         {"pkg": {{Class: engine.ErrorDefinite, Code: slices.Repeat([]string{"x"}, mostValues)}}},
		"many patterns":       {"pkg": slices.Repeat([]Pattern{{Class: engine.ErrorDefinite, Code: []string{"x"}}}, 600)},
		"large ones of packages": {
			"a": {{Class: engine.ErrorDefinite, Text: slices.Repeat([]string{"x{1000}"}, 15)}},
			"b": {{Class: engine.ErrorDefinite, Text: slices.Repeat([]string{"x{1000}"}, 15)}},
		},
	} {
		if err := table.Compile(); err == nil {
			t.Errorf("%s are accepted", name)
		}
	}
}

func TestPatternsThatNothingCanMatchAreRejected(t *testing.T) {
	for _, p := range []Pattern{
		{Class: "definitely", Text: []string{"x"}},
		{Class: engine.ErrorUnknown, Text: []string{"x"}},
		{Class: engine.ErrorDefinite},
		{Class: engine.ErrorDefinite, Text: []string{"("}},
		{Class: engine.ErrorDefinite, Text: []string{""}},
		{Class: engine.ErrorDefinite, Text: []string{strings.Repeat("x", longestPattern+1)}},
		{Class: engine.ErrorDefinite, HTTP: []string{"600"}},
		{Class: engine.ErrorDefinite, GRPC: []string{"Nope"}},
		{Class: engine.ErrorDefinite, On: []string{"read"}, Text: []string{"x"}},
	} {
		if (Table{"pkg": {p}}).Compile() == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
}
