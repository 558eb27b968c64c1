package deployments

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// DefaultOrganization is the organization of the embedded service.
const DefaultOrganization = "organization"

// StackName names a stack: ORG/PROJECT/STACK.
type StackName struct {
	Organization string `json:"organization"`
	Project      string `json:"project"`
	Stack        string `json:"stack"`
}

// String returns ORG/PROJECT/STACK.
func (s StackName) String() string { return s.Organization + "/" + s.Project + "/" + s.Stack }

// MaxNameLength limits each part of a stack's name, in bytes.
const MaxNameLength = 100

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Validate reports the first part of the name that is not valid, as CodeInvalid.
func (s StackName) Validate() error {
	for _, part := range []struct{ what, value string }{
		{"organization", s.Organization}, {"project", s.Project}, {"stack", s.Stack},
	} {
		if err := ValidateName(part.what, part.value); err != nil {
			return err
		}
	}
	return nil
}

// ValidateName reports, as CodeInvalid, why value is not a valid name; what says what it names.
func ValidateName(what, value string) error {
	switch {
	case value == "":
		return Errorf(CodeInvalid, "the %s needs a name", what)
	case len(value) > MaxNameLength:
		return Errorf(CodeInvalid, "the %s name is %d bytes long; at most %d are allowed", what, len(value),
			MaxNameLength)
	case !validName.MatchString(value):
		return Errorf(CodeInvalid, "%q cannot be the name of a %s: use letters, digits, '-', '_' and '.', and begin "+
			"with a letter or digit", value, what)
	}
	return nil
}

// ParseStackName reads ORG/PROJECT/STACK, ORG/STACK or STACK; defaults fill the parts that are missing. Two parts never
// name a project: both tools, and the programs that they run, read them alike.
func ParseStackName(s string, defaults StackName) (StackName, error) {
	parts := strings.Split(s, "/")
	name := defaults
	switch len(parts) {
	case 1:
		name.Stack = parts[0]
	case 2:
		name.Organization, name.Stack = parts[0], parts[1]
	case 3:
		name = StackName{parts[0], parts[1], parts[2]}
	default:
		return name, Errorf(CodeInvalid, "%q is not a stack name; write STACK, ORG/STACK or ORG/PROJECT/STACK", s)
	}
	return name, name.Validate()
}

// previewPrefix is the start of a preview's version; the id of its request follows.
const previewPrefix = "p-"

// PreviewName returns the name of the preview that a request asks for.
func PreviewName(r UpdateRequest) UpdateName { return UpdateName{r.Stack, previewPrefix + r.RequestID} }

// UpdateName names one update of a stack: ORG/PROJECT/STACK/VERSION. The version of a preview is "p-" and its request
// id: it has no number, because it does not change the stack.
type UpdateName struct {
	StackName
	Version string `json:"version"`
}

// String returns ORG/PROJECT/STACK/VERSION.
func (u UpdateName) String() string { return u.StackName.String() + "/" + u.Version }

// ParseUpdateName reads ORG/PROJECT/STACK/VERSION.
func ParseUpdateName(s string) (UpdateName, error) {
	i := strings.LastIndexByte(s, '/')
	if i < 0 {
		return UpdateName{}, Errorf(CodeInvalid, "%q is not an update; write ORG/PROJECT/STACK/VERSION", s)
	}
	stack, err := ParseStackName(s[:i], StackName{})
	u := UpdateName{stack, s[i+1:]}
	if err == nil {
		err = u.Validate()
	}
	return u, err
}

// Number returns the stack version that the update makes; 0 for a preview.
func (u UpdateName) Number() int {
	n, err := strconv.Atoi(u.Version)
	if err != nil {
		return 0
	}
	return n
}

// Workflow ids.

// StackWorkflowID names the workflow that is the stack's lock and queue.
func StackWorkflowID(s StackName) string { return "stack/" + s.String() }

// UpdateWorkflowID names the workflow of one update.
func UpdateWorkflowID(u UpdateName) string { return "update/" + u.String() }

// UpdateOfWorkflow returns the update that an UpdateWorkflowID or a RunWorkflowID names.
func UpdateOfWorkflow(id string) (UpdateName, error) {
	return ParseUpdateName(strings.TrimPrefix(strings.TrimPrefix(id, "update/"), "run/"))
}

// RunWorkflowID names the workflow that drives the core of one update.
func RunWorkflowID(u UpdateName) string { return "run/" + u.String() }

// PrivateTaskQueue is the queue that one worker process alone polls.
func PrivateTaskQueue(worker string) string { return fmt.Sprintf("deployctl-worker-%s", worker) }

// SharedTaskQueue is the StoreTaskQueue of a store without an identity.
const SharedTaskQueue = "deployctl"

// StoreTaskQueue is the queue of all workers that serve every organization of a store: workflows and claims. It
// contains the store's identity, so workers of another store in the same namespace get none of its tasks.
func StoreTaskQueue(identity string) string {
	if identity == "" {
		return SharedTaskQueue
	}
	return SharedTaskQueue + "-store-" + identity
}

// OrganizationTaskQueue replaces StoreTaskQueue for an organization that has its own workers, which alone poll it.
func OrganizationTaskQueue(shared, organization string) string { return shared + "/" + organization }

// OrganizationOfTaskQueue returns the organization whose workers poll the queue; false when it is not an
// OrganizationTaskQueue.
func OrganizationOfTaskQueue(queue string) (string, bool) {
	_, organization, own := strings.Cut(queue, "/")
	return organization, own
}

// SharedOfTaskQueue returns the StoreTaskQueue to which an OrganizationTaskQueue belongs; other queues unchanged.
func SharedOfTaskQueue(queue string) string {
	shared, _, _ := strings.Cut(queue, "/")
	return shared
}

// ScheduledTaskQueue is the queue of scheduled work: each worker of the given queue takes only a few of its tasks at a
// time.
func ScheduledTaskQueue(queue string) string { return queueBeside(queue, "-scheduled") }

// DeliveryTaskQueue is the queue of deliveries to webhooks: each worker of the given queue makes only a few at a time.
func DeliveryTaskQueue(queue string) string { return queueBeside(queue, "-deliveries") }

// RemoteTaskQueue is the queue of what deployments from git repositories wait for: however many there are, they take no
// place of the activities of updates. What waits for its turn, or to be prepared, takes no place there either: its
// activity is tried again later.
func RemoteTaskQueue(queue string) string { return queueBeside(queue, "-deployments") }

// queueBeside returns another queue of the workers of a queue.
func queueBeside(queue, suffix string) string {
	beside := SharedOfTaskQueue(queue) + suffix
	if organization, own := OrganizationOfTaskQueue(queue); own {
		return OrganizationTaskQueue(beside, organization)
	}
	return beside
}
