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

// String gives ORG/PROJECT/STACK.
func (s StackName) String() string { return s.Organization + "/" + s.Project + "/" + s.Stack }

// MaxNameLength bounds each part of a stack's name, in bytes.
const MaxNameLength = 100

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_.-]*$`)

// Validate reports the first part of the name that cannot be used, as CodeInvalid.
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

// ValidateName reports, as CodeInvalid, why value cannot be the name of a what.
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

// ParseStackName reads ORG/PROJECT/STACK, PROJECT/STACK or STACK; defaults fill the parts that are missing.
func ParseStackName(s string, defaults StackName) (StackName, error) {
	parts := strings.Split(s, "/")
	name := defaults
	switch len(parts) {
	case 1:
		name.Stack = parts[0]
	case 2:
		name.Project, name.Stack = parts[0], parts[1]
		if defaults.Project != "" && defaults.Project != parts[0] {
			// ORG/STACK is how the field writes a stack of the project at hand.
			name.Organization, name.Project = parts[0], defaults.Project
		}
	case 3:
		name = StackName{parts[0], parts[1], parts[2]}
	default:
		return name, Errorf(CodeInvalid, "%q is not a stack name; write STACK or ORG/PROJECT/STACK", s)
	}
	return name, name.Validate()
}

// previewPrefix begins the version of a preview; the id of its request follows.
const previewPrefix = "p-"

// PreviewName names the preview that a request asks for.
func PreviewName(r UpdateRequest) UpdateName { return UpdateName{r.Stack, previewPrefix + r.RequestID} }

// UpdateName names one update of a stack: ORG/PROJECT/STACK/VERSION. Previews have versions of their own ("p-" and a
// request id), because they do not change the stack.
type UpdateName struct {
	StackName
	Version string `json:"version"`
}

// String gives ORG/PROJECT/STACK/VERSION.
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

// Number gives the stack version that the update makes; zero for a preview.
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

// UpdateOfWorkflow gives the update that an UpdateWorkflowID or a RunWorkflowID names.
func UpdateOfWorkflow(id string) (UpdateName, error) {
	return ParseUpdateName(strings.TrimPrefix(strings.TrimPrefix(id, "update/"), "run/"))
}

// RunWorkflowID names the workflow that drives the core of one update.
func RunWorkflowID(u UpdateName) string { return "run/" + u.String() }

// PrivateTaskQueue is the queue that one worker process alone polls.
func PrivateTaskQueue(worker string) string { return fmt.Sprintf("deployctl-worker-%s", worker) }

// SharedTaskQueue is the StoreTaskQueue of a store without an identity.
const SharedTaskQueue = "deployctl"

// StoreTaskQueue is the queue of every worker that serves all organizations of a store: workflows, and claims of
// updates. It bears the store's identity, so a worker of another store in the same namespace is never given any of its
// work.
func StoreTaskQueue(identity string) string {
	if identity == "" {
		return SharedTaskQueue
	}
	return SharedTaskQueue + "-store-" + identity
}

// OrganizationTaskQueue has the place of a StoreTaskQueue for an organization that has workers of its own, which alone
// poll it.
func OrganizationTaskQueue(shared, organization string) string { return shared + "/" + organization }

// OrganizationOfTaskQueue returns the organization whose workers poll the queue; false when it is no
// OrganizationTaskQueue.
func OrganizationOfTaskQueue(queue string) (string, bool) {
	_, organization, own := strings.Cut(queue, "/")
	return organization, own
}

// SharedOfTaskQueue returns the StoreTaskQueue of the store that an OrganizationTaskQueue is of; any other queue as it
// is.
func SharedOfTaskQueue(queue string) string {
	shared, _, _ := strings.Cut(queue, "/")
	return shared
}

// ScheduledTaskQueue is where what runs by schedule waits for a place: every worker of the queue, which is the shared
// one or an organization's, takes only few at a time.
func ScheduledTaskQueue(queue string) string {
	scheduled := SharedOfTaskQueue(queue) + "-scheduled"
	if organization, own := OrganizationOfTaskQueue(queue); own {
		return OrganizationTaskQueue(scheduled, organization)
	}
	return scheduled
}
