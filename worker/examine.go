package worker

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// Finding is the result of one check of a service's environment.
type Finding struct {
	What   string // the part that was checked
	Detail string // further information
	Err    error  // what is wrong and what to do; nil: nothing
	// Tolerable means that the service can start anyway.
	Tolerable bool
	// Skipped means that it was not checked; Detail says why.
	Skipped bool
}

// skipped are the findings about what was not checked, because a part does not answer or is not right.
func skipped(because string, whats ...string) (found []Finding) {
	for _, what := range whats {
		found = append(found, Finding{What: what, Skipped: true, Detail: "not checked, because of " + because})
	}
	return found
}

// ofTemporal are the checks that need a connection to Temporal.
var ofTemporal = []string{"namespace", "search attributes", "store", "age of the bucket"}

// oldestMajor and oldestMinor are the version of the oldest supported Temporal server: the first in which
// update-with-start is enabled by default.
const oldestMajor, oldestMinor = 1, 28

// maxSkew is how far clocks may differ without a warning: beyond it expiries, signatures and log times are wrong.
const maxSkew = 30 * time.Second

// quickTimeout is how long Temporal may take to answer when another part has failed already.
const quickTimeout = 5 * time.Second

// Examine checks everything that a service of this configuration needs, and connects if it can. The connection is nil
// when a finding is not tolerable; otherwise the caller closes it.
func Examine(ctx context.Context, c Config) (*Connection, []Finding) {
	store, err := openStore(ctx, c)
	if err != nil {
		if store == nil {
			return nil, []Finding{{What: "bucket", Err: err}}
		}
		return nil, c.withoutBucket(ctx, store, err)
	}
	if err := c.awaitSetUp(ctx, store); err != nil {
		return nil, c.withoutBucket(ctx, store, err)
	}
	found := []Finding{{What: "bucket", Detail: store.s3.String()}}
	connection, err := connectTo(ctx, c, store)
	if err != nil {
		ctx, cancel := context.WithTimeout(ctx, max(c.patience(), bucket.Patience)) // the bucket has just answered
		defer cancel()
		found = append(append(found, store.examine(ctx, true)...), Finding{What: "Temporal", Err: err})
		return nil, append(found, skipped("Temporal", ofTemporal...)...)
	}
	found = append(found, connection.examine(ctx)...)
	if !c.ReadOnly && !slices.ContainsFunc(found, Finding.fatal) {
		if err := c.setUp(ctx, store); err != nil {
			found = append(found, Finding{What: "bucket", Err: err})
		}
	}
	if slices.ContainsFunc(found, Finding.fatal) {
		connection.Close()
		return nil, found
	}
	return connection, found
}

// withoutBucket returns what is found when the bucket is not as it must be.
func (c Config) withoutBucket(ctx context.Context, store *objects, err error) []Finding {
	found := append([]Finding{{What: "bucket", Err: err}}, skipped("the bucket", "conditional writes", "clocks")...)
	found = append(found, Finding{What: "Temporal", Detail: c.Temporal.Address, Err: c.temporalError(ctx, store)})
	return append(found, skipped("the bucket", ofTemporal...)...)
}

// temporalError reports whether Temporal cannot be reached either.
func (c Config) temporalError(ctx context.Context, store *objects) error {
	options, err := c.Temporal.options(c, store.Keys.Ring())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, min(c.patience(), quickTimeout))
	defer cancel()
	connected, err := c.Temporal.dial(ctx, options)
	if err == nil {
		connected.Close()
	}
	return err
}

func (f Finding) fatal() bool { return f.Err != nil && !f.Tolerable }

// Fatal returns the first error with which a service cannot start.
func Fatal(found []Finding) error {
	if i := slices.IndexFunc(found, Finding.fatal); i >= 0 {
		return found[i].Err
	}
	return nil
}

// examine checks the parts of a connection.
func (c *Connection) examine(ctx context.Context) []Finding {
	ctx, cancel := context.WithTimeout(ctx, c.config.Patience)
	defer cancel()
	version, old := c.version(ctx)
	owner := c.namespaceOwner(ctx)
	look := c.config.ReadOnly || owner.fatal() // nothing is written to another store's namespace
	made, attributes := c.ensureAttributes(ctx, look)
	found := append(c.objects.examine(ctx, look), []Finding{
		{What: "Temporal", Detail: strings.TrimSpace(c.config.Temporal.Address + " " + version), Err: old},
		{What: "namespace", Detail: c.config.Temporal.Namespace},
		{What: "search attributes", Detail: made, Err: attributes},
		owner,
	}...)
	if owner.fatal() {
		return found
	}
	return append(found, Finding{What: "age of the bucket", Err: c.restoredFromBackup(ctx), Tolerable: true})
}

// examine checks a bucket; with look it writes nothing.
func (o *objects) examine(ctx context.Context, look bool) []Finding {
	return []Finding{
		{What: "conditional writes", Err: bucket.Probe(ctx, o.retried, look)},
		{What: "clocks", Err: o.clocks(ctx), Tolerable: true},
	}
}

// clocks compares this machine's clock with that of the object store.
func (o *objects) clocks(ctx context.Context) error {
	skew, err := o.s3.Skew(ctx)
	if err != nil {
		return fmt.Errorf("the clock of the object store cannot be read: %w", err)
	}
	way := "ahead of"
	if skew < 0 {
		way, skew = "behind", -skew
	}
	if skew <= maxSkew {
		return nil
	}
	return deployments.Errorf(deployments.CodeInvalid,
		"this machine's clock is %s %s that of the %s: set it (NTP), or credentials, expiries and times in histories "+
			"are wrong", skew.Round(time.Second), way, o.s3)
}

// version returns the version of the Temporal server, and an error if it is too old.
func (c *Connection) version(ctx context.Context) (string, error) {
	info, err := c.Client.WorkflowService().GetSystemInfo(ctx, &workflowservice.GetSystemInfoRequest{})
	if err != nil {
		return "", deployments.Errorf(deployments.CodeUnavailable, "Temporal at %s does not report its version: %s",
			c.config.Temporal.Address, reason(err))
	}
	var major, minor int
	text := info.GetServerVersion()
	if _, err := fmt.Sscanf(text, "%d.%d", &major, &minor); err != nil { // a custom build
		return text, nil
	}
	if major < oldestMajor || major == oldestMajor && minor < oldestMinor {
		return text, deployments.Errorf(deployments.CodeInvalid, "Temporal at %s is version %s, which is too old: "+
			"upgrade it to %d.%d or later",
			c.config.Temporal.Address, text, oldestMajor, oldestMinor)
	}
	return text, nil
}

// ensureAttributes creates the search attributes that the namespace lacks, and returns a sentence that
// names them. If that is not allowed, the error says how an administrator can. With look it creates nothing, and the
// sentence says what a start would create.
func (c *Connection) ensureAttributes(ctx context.Context, look bool) (made string, err error) {
	operator, namespace := c.Client.OperatorService(), c.config.Temporal.Namespace
	have, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{Namespace: namespace})
	if err != nil {
		return c.askForAttributes(ctx)
	}
	missing := map[string]enums.IndexedValueType{}
	for _, name := range deployments.SearchAttributes {
		kind, there := have.GetCustomAttributes()[name]
		if there && kind != enums.INDEXED_VALUE_TYPE_KEYWORD {
			return "", deployments.Errorf(deployments.CodeInvalid,
				"the search attribute %s of namespace %s is a %s and must be a Keyword: use another namespace "+
					"(temporal.namespace)", name, namespace, kind)
		}
		if !there {
			missing[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
		}
	}
	if len(missing) == 0 {
		return "", nil
	}
	names := strings.Join(slices.Sorted(maps.Keys(missing)), ", ")
	if look {
		return "a start makes " + names, nil
	}
	_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{Namespace: namespace,
		SearchAttributes: missing})
	if err != nil {
		return "", c.lacking(slices.Sorted(maps.Keys(missing)), err)
	}
	return "made " + names, c.awaitAttributes(ctx)
}

// askForAttributes finds out whether each attribute exists, where listing them is not allowed.
func (c *Connection) askForAttributes(ctx context.Context) (string, error) {
	var missing []string
	for _, name := range deployments.SearchAttributes {
		err := c.searchable(ctx, name)
		switch code := serviceerror.ToStatus(err).Code(); {
		case err == nil:
		case code == codes.InvalidArgument:
			missing = append(missing, name)
		default:
			return "", deployments.Errorf(deployments.CodeUnavailable,
				"the search attributes of namespace %s cannot be read: %s", c.config.Temporal.Namespace,
				reason(err))
		}
	}
	if len(missing) == 0 {
		return "", nil
	}
	return "", c.lacking(missing, nil)
}

// searchable searches by an attribute; an invalid argument means that it does not exist.
func (c *Connection) searchable(ctx context.Context, names ...string) error {
	_, err := c.Client.WorkflowService().CountWorkflowExecutions(ctx, &workflowservice.CountWorkflowExecutionsRequest{
		Namespace: c.config.Temporal.Namespace, Query: strings.Join(names, " = 'none' AND ") + " = 'none'",
	})
	return err
}

// awaitAttributes waits until the whole cluster knows the created attributes. A cluster admits few such calls, ten a
// second for all processes unless it is told otherwise, and the checks that follow need their time, too.
func (c *Connection) awaitAttributes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, c.config.Patience/2)
	defer cancel()
	for pause := redial; ; pause = min(2*pause, rareRedial) {
		last := c.searchable(ctx, deployments.SearchAttributes...)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return deployments.Errorf(deployments.CodeUnavailable,
				"the search attributes that were just made are not known yet: %s; start again in a minute",
				reason(last))
		case <-time.After(pause):
		}
	}
}

// lacking says how an administrator can create the missing attributes.
func (c *Connection) lacking(missing []string, why error) error {
	t := c.config.Temporal
	refused := ""
	if why != nil {
		refused = fmt.Sprintf(", and these credentials may not make them (%s)", reason(why))
	}
	self, cloud := "", ""
	for _, name := range missing {
		self += fmt.Sprintf(" --name %s --type Keyword", name)
		cloud += fmt.Sprintf(" --search-attribute %s=Keyword", name)
	}
	return deployments.Errorf(deployments.CodeInvalid, "namespace %s lacks the search attributes %s%s; make them with "+
		"`temporal operator search-attribute create --address %s --namespace %s%s`, on Temporal Cloud with `tcld "+
		"namespace search-attributes add --namespace %s%s`",
		t.Namespace, strings.Join(missing, ", "), refused, t.Address, t.Namespace, self, t.Namespace, cloud)
}

// sampledUpdates is how many of Temporal's latest updates are looked up in the bucket, and searchedUpdates how many if
// that lacks one of them. mostBehind is how many stacks are named.
const (
	sampledUpdates, searchedUpdates = 20, 1000
	mostBehind                      = 20
)

// restoredFromBackup reports a bucket that lacks updates which Temporal has: it was restored from a backup.
func (c *Connection) restoredFromBackup(ctx context.Context) error {
	behind, err := c.behind(ctx, sampledUpdates)
	if err != nil || len(behind) == 0 {
		return err
	}
	if all, err := c.behind(ctx, searchedUpdates); err == nil {
		behind = all
	}
	var names []string
	for name, u := range behind {
		names = append(names, fmt.Sprintf("%s (Temporal has its update %s)", name, u.Version))
	}
	slices.Sort(names)
	more := ""
	if len(names) > mostBehind {
		more = fmt.Sprintf(" and %d more", len(names)-mostBehind)
		names = names[:mostBehind]
	}
	return deployments.Errorf(deployments.CodeInvalid, "the bucket is older than Temporal's namespace %s: it does not "+
		"know the latest updates of %s%s. If the bucket was restored from a backup, the states of these stacks are older "+
		"than their resources: run `deployctl refresh` for each before `deployctl up`", c.config.Temporal.Namespace,
		strings.Join(names, ", "), more)
}

// behind returns the stacks of Temporal's latest updates, so many, whose heads do not know these. Only an update that
// has succeeded has certainly claimed its version: others may have been withdrawn before they began.
func (c *Connection) behind(ctx context.Context, most int) (map[deployments.StackName]deployments.UpdateName, error) {
	page, err := c.Client.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Query: "WorkflowType = 'Update' AND ExecutionStatus = 'Completed'", PageSize: int32(most),
	})
	if err != nil {
		return nil, fmt.Errorf("Temporal's latest updates cannot be listed: %s", reason(err))
	}
	latest := map[deployments.StackName]deployments.UpdateName{}
	for _, w := range page.GetExecutions() {
		id, ok := strings.CutPrefix(w.GetExecution().GetWorkflowId(), "update/")
		u, err := deployments.ParseUpdateName(id)
		if ok && err == nil && u.Number() > latest[u.StackName].Number() {
			latest[u.StackName] = u
		}
	}
	for name, u := range latest {
		if head, err := c.Store.Head(ctx, name); err != nil || head.Next > u.Number() {
			delete(latest, name)
		}
	}
	return latest, nil
}
