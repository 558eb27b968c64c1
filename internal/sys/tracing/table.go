package tracing

import "go.opentelemetry.io/otel/attribute"

// Key is the name of an attribute.
type Key string

// Of returns the attribute with a text.
func (k Key) Of(text string) Attribute { return attribute.String(string(k), text) }

// Int returns the attribute with a number.
func (k Key) Int(n int) Attribute { return attribute.Int(string(k), n) }

// The attributes. Those without the prefix deployctl are of the semantic conventions of OpenTelemetry.
const (
	ErrorType    Key = "error.type"
	ExitCode     Key = "process.exit.code"
	RPCSystem    Key = "rpc.system"
	RPCService   Key = "rpc.service"
	RPCMethod    Key = "rpc.method"
	RPCStatus    Key = "rpc.grpc.status_code"
	HTTPMethod   Key = "http.request.method"
	HTTPRoute    Key = "http.route"
	HTTPStatus   Key = "http.response.status_code"
	Request      Key = "deployctl.request"
	Organization Key = "deployctl.organization"
	Stack        Key = "deployctl.stack"
	Update       Key = "deployctl.update"
	UpdateKind   Key = "deployctl.update.kind"
	Result       Key = "deployctl.result"
	Resources    Key = "deployctl.resources"
	Claim        Key = "deployctl.claim"
	Epoch        Key = "deployctl.epoch"
	Attempt      Key = "deployctl.attempt"
	Outcome      Key = "deployctl.outcome"
	ResourceType Key = "deployctl.resource.type"
	ResourceName Key = "deployctl.resource.name"
	Count        Key = "deployctl.count"
	TemporalRun  Key = "temporal.run_id"
)

// Names of spans that are not those of a command, a method or a route.
const (
	SpanStack      = "stack"
	SpanUpdate     = "update"
	SpanClaim      = "claim"
	SpanRun        = "run"
	SpanProgram    = "program"
	SpanPlan       = "plan"
	SpanCascade    = "cascade"
	SpanCompare    = "compare"
	SpanAnalyze    = "analyze"
	SpanHook       = "hook"
	SpanStep       = "step"
	SpanRefresh    = "refresh"
	SpanSettle     = "settle"
	SpanCommit     = "commit"
	SpanSchedule   = "schedule"
	SpanDeployment = "deployment"
)

var (
	ofUpdate   = []Key{Organization, Stack, Update}
	ofRPC      = []Key{RPCSystem, RPCService, RPCMethod, RPCStatus, ErrorType}
	ofActivity = append([]Key{Attempt, ErrorType}, ofUpdate...)
)

// Table has the attributes that spans may have, by name. In a name, words in capitals stand for any text.
// docs/observability.md repeats it.
var Table = map[string][]Key{
	"deployctl COMMAND":           {ExitCode, ErrorType},
	"deployctl.v1.SERVICE/METHOD": append([]Key{Request}, ofRPC...),
	"METHOD /ROUTE":               {HTTPMethod, HTTPRoute, HTTPStatus, Request, ErrorType},
	SpanStack:                     append([]Key{UpdateKind, Result}, ofUpdate...),
	SpanUpdate:                    append([]Key{UpdateKind, Result, Resources, ErrorType}, ofUpdate...),
	SpanClaim:                     append([]Key{Claim}, ofUpdate...),
	SpanRun:                       append([]Key{TemporalRun, ErrorType}, ofUpdate...),
	SpanProgram:                   append([]Key{Epoch}, ofActivity...),
	SpanPlan:                      append([]Key{Count}, ofActivity...),
	SpanCascade:                   ofActivity,
	SpanCompare:                   ofActivity,
	SpanAnalyze:                   ofActivity,
	SpanHook:                      ofActivity,
	SpanStep + " KIND":            append([]Key{ResourceType, ResourceName, Outcome}, ofActivity...),
	SpanRefresh:                   append([]Key{Count}, ofActivity...),
	SpanSettle:                    append([]Key{ResourceType, ResourceName, Outcome}, ofActivity...),
	SpanCommit:                    ofActivity,
	SpanSchedule:                  {Organization, Stack, Attempt, ErrorType},
	SpanDeployment:                {Organization, Stack, Attempt, ErrorType},
	"pulumirpc.SERVICE/METHOD":    ofRPC,
}
