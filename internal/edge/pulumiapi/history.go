package pulumiapi

import (
	"errors"
	"strconv"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// kinds translates kinds of updates; others are updates.
var kinds = map[engine.Kind]apitype.UpdateKind{
	engine.KindUp: apitype.UpdateUpdate, engine.KindRefresh: apitype.RefreshUpdate,
	engine.KindDestroy: apitype.DestroyUpdate, engine.KindImport: apitype.StackImportUpdate,
	deployments.KindRename: apitype.RenameUpdate, deployments.KindRestore: apitype.StackImportUpdate,
}

func kindOf(u deployments.UpdateInfo) apitype.UpdateKind {
	if u.DryRun {
		return apitype.PreviewUpdate
	}
	if kind, ok := kinds[u.Kind]; ok {
		return kind
	}
	return apitype.UpdateUpdate
}

// results translates statuses of updates; others are failures.
var results = map[string]apitype.UpdateResult{
	deployments.StatusSucceeded: apitype.SucceededResult, deployments.StatusRunning: apitype.InProgressResult,
	deployments.StatusQueued: apitype.NotStartedResult,
}

func resultOf(u deployments.UpdateInfo) apitype.UpdateResult {
	if result, ok := results[u.Status]; ok {
		return result
	}
	return apitype.FailedResult
}

// asked returns the page of a list that a call asks for, with at most so many items; size is that of one that does not
// say.
func (c *call) asked(size, most int) (deployments.Page, error) {
	page, err := c.number("page", 1)
	if err == nil {
		size, err = c.number("pageSize", size)
	}
	return deployments.Page{Number: page, Size: min(size, most)}, err
}

// number returns a number of the query, from 1; otherwise is that of a query without it.
func (c *call) number(name string, otherwise int) (int, error) {
	text := c.query().Get(name)
	if text == "" || text == "0" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if n < 1 || err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, deployments.Errorf(deployments.CodeInvalid, "%s must be a whole number from 1, not %q", name, clean(text))
	}
	return n, nil
}

const (
	// mostHistory is how many updates one answer has at most.
	mostHistory = 1000
	// listedBytes limits the configurations and environments of the updates of one answer.
	listedBytes = 32 << 20
)

// history lists updates, the newest first, in pages if the client asks for them.
func history(c *call) (any, error) {
	page, err := c.asked(mostHistory, mostHistory)
	if err != nil {
		return nil, err
	}
	list, err := c.edge.Service.HistoryPage(c.Context(), c.stack, page)
	if err != nil {
		return nil, err
	}
	answer := apitype.GetHistoryResponse{Updates: []apitype.UpdateInfo{}}
	size := 0
	for _, u := range list {
		if u.Next != "" { // what continues it is listed: an update that waited while its stack was settled is one
			continue
		}
		info, err := c.describe(u)
		if err != nil {
			return nil, err
		}
		bytes := textOf(info)
		if size += bytes; size > listedBytes {
			return nil, deployments.TooLarge("the configurations of these updates are more than %d MiB: ask for fewer at once "+
				"(--page-size)", listedBytes>>20)
		}
		if err := mempool.Take(c.Context(), textTimes*int64(bytes)); err != nil {
			return nil, err
		}
		answer.Updates = append(answer.Updates, info)
	}
	return answer, nil
}

// textOf returns how long the texts of an update's configuration and environment are.
func textOf(u apitype.UpdateInfo) (bytes int) {
	for key, text := range u.Environment {
		bytes += len(key) + len(text)
	}
	for key, v := range u.Config {
		bytes += len(key) + len(v.String)
	}
	return bytes
}

// describe describes an update, with its configuration if a client has executed it.
func (c *call) describe(u deployments.UpdateInfo) (apitype.UpdateInfo, error) {
	info := apitype.UpdateInfo{
		Kind: kindOf(u), Message: u.Message, Environment: map[string]string{},
		Config: map[string]apitype.ConfigValue{}, Result: resultOf(u), Version: u.Update.Number(), ResourceCount: u.Resources,
	}
	info.StartTime, info.EndTime = timesOf(u, time.Now())
	if len(u.Changes) > 0 {
		info.ResourceChanges = make(map[apitype.OpType]int, len(u.Changes))
		for kind, n := range u.Changes {
			info.ResourceChanges[apitype.OpType(kind)] = n
		}
	}
	r, err := c.edge.Service.Request(c.Context(), c.named(u))
	if notFound(err) {
		return info, nil // it had none, or is no longer kept
	}
	if err != nil {
		return info, err
	}
	if r.Lease != nil && r.Lease.Metadata != nil {
		info.Environment = r.Lease.Metadata
	}
	info.Config, err = c.configuration(r)
	return info, err
}

// timesOf returns when an update began and ended. The CLI subtracts one from the other, whatever they are: an update
// that runs ends now, and of one whose times are not known both are 0.
func timesOf(u deployments.UpdateInfo, now time.Time) (start, end int64) {
	if u.Started.IsZero() {
		return 0, 0
	}
	if u.Ended.IsZero() {
		u.Ended = now
	}
	return u.Started.Unix(), u.Started.Add(u.Took()).Unix()
}

// named returns the name of an update of the stack by its present name: the history has the name at that time.
func (c *call) named(u deployments.UpdateInfo) deployments.UpdateName {
	return deployments.UpdateName{StackName: c.stack, Version: u.Update.Version}
}

// configuration returns the configuration of an update. Secrets of one that the service has executed are in plaintext
// in its request: they are encrypted, by the secrets provider that the client's configuration file names.
func (c *call) configuration(r deployments.UpdateRequest) (map[string]apitype.ConfigValue, error) {
	values := make(map[string]apitype.ConfigValue, len(r.Config))
	for key, v := range r.Config {
		text := v.Value
		if v.Secret && r.Lease == nil {
			var err error
			if text, err = c.encrypted(text, r.Secrets); err != nil {
				return nil, err
			}
		}
		values[key] = apitype.ConfigValue{String: text, Secret: v.Secret, Object: v.Object}
	}
	return values, nil
}

// encrypted encrypts a secret by a secrets provider, which needs the key that the update has; "" without it.
func (c *call) encrypted(text string, p deployments.SecretsProvider) (string, error) {
	if !p.NeedsClient() {
		sealed, err := c.edge.Service.Encrypt(c.Context(), c.stack, []string{text})
		if err != nil {
			return "", err
		}
		return sealed[0], nil
	}
	if len(p.Key) != config.SymmetricCrypterKeyBytes {
		return "", nil // only a client could
	}
	return config.NewSymmetricCrypter(p.Key).EncryptValue(c.Context(), text)
}

// latestUpdate returns the newest update, whose configuration `pulumi config refresh` reads.
func latestUpdate(c *call) (any, error) {
	for u, err := range c.edge.Service.UpdatesOf(c.Context(), c.stack) {
		if err != nil {
			return nil, err
		}
		if u.Kind == engine.KindUp || u.Kind == engine.KindRefresh || u.Kind == engine.KindDestroy {
			return c.version(u)
		}
	}
	return nil, deployments.Errorf(deployments.CodeNotFound, "the stack %s has no update", c.stack)
}

// oneUpdate returns one update by its version.
func oneUpdate(c *call) (any, error) {
	name := deployments.UpdateName{StackName: c.stack, Version: c.PathValue("version")}
	if err := name.Validate(); err != nil {
		return nil, err
	}
	info, err := c.edge.Service.Info(c.Context(), name)
	if err != nil {
		return nil, err
	}
	return c.version(info)
}

// version describes an update as the newest one. One whose configuration is not known any more is not found: the CLI
// would replace its own configuration by none.
func (c *call) version(u deployments.UpdateInfo) (any, error) {
	if _, err := c.edge.Service.Request(c.Context(), c.named(u)); notFound(err) {
		return nil, deployments.Errorf(deployments.CodeNotFound, "the configuration of update %s of %s is not kept",
			u.Update.Version, c.stack)
	}
	info, err := c.describe(u)
	for key, v := range info.Config {
		if v.Secret && v.String == "" {
			return nil, deployments.Errorf(deployments.CodeInvalid, "update %s of %s does not have the key that encrypts its "+
				"secret %s", u.Update.Version, c.stack, key)
		}
	}
	return struct {
		Info          apitype.UpdateInfo `json:"info"`
		UpdateID      string             `json:"updateID"`
		Version       int                `json:"version"`
		LatestVersion int                `json:"latestVersion"`
	}{info, u.Update.Version, u.Update.Number(), u.Update.Number()}, err
}

// mostPreviews is how many previews are listed.
const mostPreviews = 20

// previews lists the latest previews, the newest first, as long as they are kept: they are not part of a stack's
// history.
func previews(c *call) (any, error) {
	list, err := c.edge.Service.LatestPreviews(c.Context(), c.stack, mostPreviews)
	if err != nil {
		return nil, err
	}
	answer := apitype.GetLatestStackPreviewsResponse{Updates: []apitype.StackPreview{}}
	for _, u := range list {
		answer.Updates = append(answer.Updates, apitype.StackPreview{UpdateID: u.Update.Version})
	}
	return answer, nil
}

// notFound reports whether an error says that something does not exist.
func notFound(err error) bool {
	var e *deployments.Error
	return errors.As(err, &e) && e.Code == deployments.CodeNotFound
}
