package pulumiapi

// Reasons for which calls of the stock CLI are not served.
const (
	noGitHubApp = "deployctl has no GitHub app: a webhook of the repository starts deployments"
	noPolicies  = "deployctl has no policy groups of an organization; `pulumi up --policy-pack DIR` works"
	noRoles     = "the roles are viewer, deployer and admin; `deployctl member add --stacks` and `deployctl team " +
		"add --stacks` limit them to stacks"
	noTemplates    = "deployctl has no templates of an organization; `pulumi new` uses those of Pulumi's repository"
	noRegistry     = "deployctl has no private registry"
	noEnvironments = "deployctl has no environments (Pulumi ESC)"
	noAI           = "deployctl has no AI agents"
	noInsights     = "deployctl has no insights and no search across stacks"
	noSpec         = "deployctl does not describe its API in OpenAPI yet"
	noSignup       = "deployctl has no accounts to sign up for: an admin creates tokens with `deployctl token create`"
	noLogSession   = "deployctl does not take encrypted logs of clients"
	noUsage        = "deployctl does not count the resources of an organization"
	elsewhere      = "it downloads from an address that another answer has given"
)

// refused lists the calls of the stock CLI's client that are not served, with the reason.
var refused = map[string]string{
	"SignupAgent": noSignup, "ValidateAgentClaim": noSignup,
	"ListOrgTemplates": noTemplates, "DownloadOrgTemplate": noTemplates,
	"ListPolicyGroups": noPolicies, "CreatePolicyGroup": noPolicies, "GetPolicyGroup": noPolicies,
	"UpdatePolicyGroup": noPolicies, "DeletePolicyGroup": noPolicies, "ListPolicyIssues": noPolicies,
	"GetPolicyComplianceResults": noPolicies, "GetPolicyIssue": noPolicies, "ListPolicyPacks": noPolicies,
	"PublishPolicyPack": noPolicies, "ApplyPolicyPack": noPolicies, "GetPolicyPackSchema": noPolicies,
	"DisablePolicyPack": noPolicies, "RemovePolicyPack": noPolicies, "RemovePolicyPackByVersion": noPolicies,
	"DownloadPolicyPack": noPolicies, "BatchUpdatePolicyGroup": noPolicies, "GetPolicyPack": noPolicies,
	"GetStackPolicyGroups": noPolicies, "ExportPolicyIssues": noPolicies, "UpdatePolicyIssue": noPolicies,
	"ListPolicyExceptions": noPolicies, "GetPolicyException": noPolicies, "CreatePolicyException": noPolicies,
	"CreatePolicyExceptionDraft": noPolicies, "RemovePolicyException": noPolicies,
	"CreateOrgRole": noRoles, "UpdateOrgRole": noRoles, "DeleteOrgRole": noRoles,
	"UpdateStackConfig":     noEnvironments,
	"GetGHAppIntegration":   noGitHubApp,
	"GetSearchQueryResults": noInsights, "GetNaturalLanguageQueryResults": noInsights,
	"SearchInsightsResources": noInsights, "GetInsightsResource": noInsights, "ScanInsightsAccount": noInsights,
	"ListInsightsAccounts": noInsights, "GetInsightsScan": noInsights, "ListInsightsAccountScans": noInsights,
	"CreateInsightsAccount": noInsights, "GetInsightsAccount": noInsights, "GetInsightsScanLogs": noInsights,
	"CreateNeoTask": noAI, "UpdateNeoTask": noAI, "GetNeoTask": noAI, "GetNeoTaskEvents": noAI,
	"StreamNeoTaskEvents": noAI, "PostNeoTaskUserEvent": noAI, "callCopilot": noAI,
	"PublishPackage": noRegistry, "StartTemplatePublish": noRegistry, "CompleteTemplatePublish": noRegistry,
	"PublishTemplate": noRegistry, "GetPackage": noRegistry, "DeletePackageVersion": noRegistry,
	"GetTemplate": noRegistry, "DownloadTemplate": noRegistry, "ListPackages": noRegistry, "ListTemplates": noRegistry,
	"downloadWithRawClient": elsewhere, "GetCloudAPISpec": noSpec, "ListESCEnvironments": noEnvironments,
	"GetOrgUsageSummary": noUsage, "CreateLogEncryptionSession": noLogSession,
}

// refusedPrefixes are the reasons by the start of a path.
var refusedPrefixes = map[string]string{
	"/api/agents/": noSignup, "/api/registry/": noRegistry, "/api/esc/": noEnvironments,
	"/api/environments/": noEnvironments, "/api/preview/agents/": noAI, "/api/ai/": noAI,
	"/api/preview/insights/": noInsights, "/api/preview/registry/": noRegistry, "/api/openapi/": noSpec,
	"/api/log-encryption-session/": noLogSession, "/api/console/": noGitHubApp,
}

// refusedParts are the reasons by what follows the name of a stack or of an organization in a path.
var refusedParts = map[string]string{
	"config":       noEnvironments,
	"policy":       noPolicies,
	"policygroups": noPolicies, "policypacks": noPolicies, "policyresults": noPolicies, "roles": noRoles,
	"teams": noRoles, "templates": noTemplates, "search": noInsights,
	"resources": noUsage,
}
