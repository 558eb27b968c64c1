package pulumiapi

import (
	"net/http"
	"strings"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// credential says how the caller of a route is authenticated.
type credential int

const (
	byToken    credential = iota // a token of the service
	byLease                      // the token of the lease of the update in the path
	byAnyone                     // no token is needed
	byIdentity                   // what the body has, which the handler checks: an identity token, or a token in a form
)

// route is one line of the table of what is served.
type route struct {
	method, path string
	// calls are the calls of the stock CLI's client that the route answers.
	calls []string
	by    credential
	// like is the full name of the method of the gRPC API that does the same. Its rule says which role is needed, and
	// what the audit log has.
	like string
	does grpcapi.Rule
	// raised reports whether a call needs the role that the method needs when its field of that name is set; it may be
	// nil.
	raised func(*call) bool
	// onlyWrites: unlike the method, it begins nothing.
	onlyWrites bool
	// limit bounds the decompressed body; 0: smallBody.
	limit  int64
	handle func(*call) (any, error)
	// failed makes another answer of an error; nil: the error as it is.
	failed func(c *call, status int, e apitype.ErrorResponse) (int, any)
}

// resolve looks up the rule of a route.
func (r *route) resolve() error {
	if r.by == byAnyone {
		return nil
	}
	rule, ok := grpcapi.RuleOf(r.like)
	if !ok {
		return deployments.Errorf(deployments.CodeInternal, "the route %s %s names no method of the API", r.method, r.path)
	}
	r.does = rule
	return nil
}

// updateKinds may stand in the path of an update. The stock CLI always writes the first one.
var updateKinds = []string{"update", "preview", "refresh", "destroy"}

// patterns returns the patterns of a route for a mux; paths of updates are served for each kind.
func (r *route) patterns() []string {
	const own = "/update/{id}"
	if !strings.Contains(r.path, own) {
		return []string{r.method + " " + r.path}
	}
	var all []string
	for _, kind := range updateKinds {
		all = append(all, r.method+" "+strings.Replace(r.path, own, "/"+kind+"/{id}", 1))
	}
	return all
}

// stackPath is the path of a stack, updatePath that of an update.
const (
	stackPath  = "/api/stacks/{org}/{project}/{stack}"
	updatePath = stackPath + "/update/{id}"
)

func calls(names ...string) []string { return names }

func forced(c *call) bool { return c.query().Get("force") == "true" }

// routes returns the table.
func routes() []route {
	all := append(accountRoutes(), stackRoutes()...)
	all = append(append(all, updateRoutes()...), leaseRoutes()...)
	all = append(append(all, scheduleRoutes()...), driftRoutes()...)
	all = append(append(all, deploymentRoutes()...), webhookRoutes()...)
	return append(append(all, peopleRoutes()...), issuerRoutes()...)
}

// accountRoutes are about the service and the caller.
func accountRoutes() []route {
	const listing = api.Stacks_ListStacks_FullMethodName
	return []route{
		{method: http.MethodGet, path: "/api/capabilities", calls: calls("GetCapabilities"), by: byAnyone,
			handle: capabilities},
		{method: http.MethodGet, path: "/api/cli/version", calls: calls("GetCLIVersionInfo"), by: byAnyone,
			handle: cliVersion},
		{method: http.MethodGet, path: "/api/user", calls: calls("GetPulumiAccountDetails"), like: listing, handle: user},
		{method: http.MethodGet, path: "/api/user/stacks", calls: calls("ListStacks"), like: listing, handle: listStacks},
		{method: http.MethodGet, path: "/api/user/organizations/default", calls: calls("GetDefaultOrg"), like: listing,
			handle: defaultOrganization},
		{method: http.MethodHead, path: "/api/stacks/{org}/{project}", calls: calls("DoesProjectExist"), like: listing,
			handle: projectExists},
	}
}

// stackRoutes are about one stack.
func stackRoutes() []route {
	return []route{
		{method: http.MethodPost, path: "/api/stacks/{org}/{project}", calls: calls("CreateStack"),
			like: api.Stacks_CreateStack_FullMethodName, limit: stateBody, handle: createStack},
		{method: http.MethodGet, path: stackPath, calls: calls("GetStack"), like: api.Stacks_GetStack_FullMethodName,
			handle: getStack},
		{method: http.MethodDelete, path: stackPath, calls: calls("DeleteStack"),
			like: api.Stacks_RemoveStack_FullMethodName, raised: forced, handle: removeStack},
		{method: http.MethodPost, path: stackPath + "/rename", calls: calls("RenameStack"),
			like: api.Stacks_RenameStack_FullMethodName, handle: renameStack},
		{method: http.MethodPatch, path: stackPath + "/tags", calls: calls("UpdateStackTags"),
			like: api.Stacks_TagStack_FullMethodName, handle: tagStack},
		{method: http.MethodGet, path: stackPath + "/export", calls: calls("ExportStackDeployment"),
			like: api.Stacks_Export_FullMethodName, handle: exportStack},
		{method: http.MethodGet, path: stackPath + "/export/{version}", like: api.Stacks_Export_FullMethodName,
			handle: exportStack},
		{method: http.MethodGet, path: stackPath + "/outputs", calls: calls("GetStackOutputs"),
			like: api.Stacks_Export_FullMethodName, handle: stackOutputs},
		{method: http.MethodPost, path: stackPath + "/import", calls: calls("ImportStackDeployment"),
			like: api.Stacks_Import_FullMethodName, limit: stateBody, handle: importStack},
		{method: http.MethodGet, path: stackPath + "/updates", calls: calls("GetStackUpdates"),
			like: api.Stacks_History_FullMethodName, handle: history},
		{method: http.MethodGet, path: stackPath + "/updates/latest", calls: calls("GetLatestConfiguration"),
			like: api.Stacks_History_FullMethodName, handle: latestUpdate},
		{method: http.MethodGet, path: stackPath + "/updates/{version}", like: api.Stacks_History_FullMethodName,
			handle: oneUpdate},
		{method: http.MethodGet, path: stackPath + "/updates/latest/previews", calls: calls("GetLatestStackPreviews"),
			like: api.Stacks_History_FullMethodName, handle: previews},
		{method: http.MethodPost, path: stackPath + "/encrypt", calls: calls("EncryptValue"),
			like: api.Stacks_Encrypt_FullMethodName, handle: encrypt},
		{method: http.MethodPost, path: stackPath + "/batch-encrypt", calls: calls("BatchEncrypt"),
			like: api.Stacks_Encrypt_FullMethodName, limit: batchBody, handle: encryptAll},
		{method: http.MethodPost, path: stackPath + "/decrypt", calls: calls("DecryptValue"),
			like: api.Stacks_Decrypt_FullMethodName, handle: decrypt},
		{method: http.MethodPost, path: stackPath + "/batch-decrypt", calls: calls("BatchDecryptValue"),
			like: api.Stacks_Decrypt_FullMethodName, limit: batchBody, handle: decryptAll},
		{method: http.MethodPost, path: stackPath + "/decrypt/log-decryption",
			calls: calls("Log3rdPartySecretsProviderDecryptionEvent"), like: api.Stacks_Decrypt_FullMethodName,
			handle: nothing},
		{method: http.MethodPost, path: stackPath + "/decrypt/log-batch-decryption",
			calls: calls("LogBulk3rdPartySecretsProviderDecryptionEvent"), like: api.Stacks_Decrypt_FullMethodName,
			handle: nothing},
		{method: http.MethodGet, path: stackPath + "/policypacks", calls: calls("GetStackPolicyPacks"),
			like: api.Stacks_GetStack_FullMethodName, handle: policyPacks},
	}
}

// updateRoutes are what the callers of updates do by their own tokens.
func updateRoutes() []route {
	all := []route{
		{method: http.MethodPost, path: updatePath, calls: calls("StartUpdate"),
			like: api.Deployments_Submit_FullMethodName, handle: startUpdate},
		{method: http.MethodPost, path: updatePath + "/cancel", calls: calls("CancelUpdate"),
			like: api.Deployments_Cancel_FullMethodName, handle: cancelUpdate},
		{method: http.MethodGet, path: updatePath, calls: calls("GetUpdateEvents"),
			like: api.Deployments_Watch_FullMethodName, handle: updateStatus},
		{method: http.MethodGet, path: updatePath + "/events", calls: calls("GetUpdateEngineEvents"),
			like: api.Deployments_Watch_FullMethodName, handle: updateEvents},
		{method: http.MethodPost, path: stackPath + "/begin-update", calls: calls("BeginUpdate"),
			like: api.Deployments_Submit_FullMethodName, handle: beginUpdate},
	}
	for _, kind := range updateKinds {
		create := route{method: http.MethodPost, path: stackPath + "/" + kind, like: api.Deployments_Submit_FullMethodName,
			handle: func(c *call) (any, error) { return createUpdate(c, kind) }}
		if kind == "update" {
			create.calls = calls("CreateUpdate")
		}
		all = append(all, create)
	}
	return all
}

// leaseRoutes are what a running update does by the token of its lease.
func leaseRoutes() []route {
	const like = api.Bundles_PutFile_FullMethodName // it is recorded by its start and its end
	return []route{
		{method: http.MethodPost, path: updatePath + "/renew_lease", calls: calls("RenewUpdateLease"), by: byLease,
			like: like, handle: renewLease},
		{method: http.MethodPatch, path: updatePath + "/checkpoint", calls: calls("PatchUpdateCheckpoint"), by: byLease,
			like: like, limit: stateBody, handle: writeCheckpoint},
		{method: http.MethodPatch, path: updatePath + "/checkpointverbatim",
			calls: calls("PatchUpdateCheckpointVerbatim"), by: byLease, like: like, limit: stateBody,
			handle: writeVerbatim},
		{method: http.MethodPatch, path: updatePath + "/checkpointdelta", calls: calls("PatchUpdateCheckpointDelta"),
			by: byLease, like: like, limit: stateBody, handle: writeDelta},
		{method: http.MethodPatch, path: updatePath + "/journalentries", calls: calls("SaveJournalEntries"), by: byLease,
			like: like, limit: batchBody, handle: writeJournal},
		{method: http.MethodPost, path: updatePath + "/events/batch", calls: calls("RecordEngineEvents"), by: byLease,
			like: like, limit: batchBody, handle: writeEvents},
		{method: http.MethodPost, path: updatePath + "/complete", calls: calls("CompleteUpdate"), by: byLease,
			like: api.Deployments_Submit_FullMethodName, handle: completeUpdate},
	}
}
