package service

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service/gitpush"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Push starts the deployment that a message of a git server asks for: an update for a push to the branch of the stack's
// settings, a preview for a pull request. It returns why there is none, if so. CodeUnauthorized: the message is not
// from somebody who has the secret of the stack's webhook, or the stack has none. CodeExists: it was taken before.
//
// The body of a message whose header is good is read; checked is called once it has been checked, too.
func (s *Service) Push(
	ctx context.Context, name deployments.StackName, header http.Header,
	read func() (body []byte, checked func(), err error),
) (d deployments.Deployment, why string, err error) {
	unknown := deployments.Errorf(deployments.CodeUnauthorized, "this message is not signed with the secret of a webhook "+
		"of the stack %s", name)
	stored, err := s.store.Jobs.DeploymentSettings(ctx, name)
	if err != nil && deployments.CodeOf(err) == deployments.CodeNotFound {
		return d, "", unknown
	}
	if err != nil {
		return d, "", err
	}
	if stored.Webhook == nil || !gitpush.Possible(header, stored.Webhook.Secret.Value, time.Now()) {
		return d, "", unknown
	}
	body, checked, err := read()
	if err != nil {
		return d, "", err
	}
	m := gitpush.Message{Header: header, Body: body}
	right := m.From(stored.Webhook.Secret.Value, time.Now())
	checked()
	if !right {
		return d, "", unknown
	}
	e, err := m.Event()
	if err != nil {
		return d, "", err
	}
	if why, err := ignored(ctx, stored, e); err != nil || why != "" {
		return d, why, err
	}
	taken, err := deliveryOf(m, time.Now())
	if err != nil {
		return d, "", err
	}
	if err := s.Jobs.TakeDelivery(ctx, name, taken); err != nil {
		return d, "", err
	}
	// With the settings by which the message was judged, and whose author it acts for: they may be others by now.
	d, err = s.createDeployment(ctx, pushed(name, stored, *e), stored)
	if err != nil {
		_ = s.Jobs.ForgetDelivery(context.WithoutCancel(ctx), name, taken) // it may be sent again
	}
	return d, "", err
}

// takenFor is how long after an event the message about it is taken, and so how long it is remembered that it was; git
// servers repeat theirs for three days. aheadBy is how far their clocks may be ahead.
const takenFor, aheadBy = 7 * 24 * time.Hour, 5 * time.Minute

// deliveryOf returns what is to be remembered of a message; CodeInvalid for one that is too old. One that does not say
// its age is remembered for ever, because it could be sent again at any time.
func deliveryOf(m gitpush.Message, now time.Time) (jobs.Delivery, error) {
	at := m.Happened(now)
	switch {
	case at.IsZero():
		return jobs.Delivery{Digest: m.Digest()}, nil
	case now.Sub(at) > takenFor || at.Sub(now) > aheadBy:
		return jobs.Delivery{}, deployments.Errorf(deployments.CodeInvalid, "this message is about %s, and it is %s: "+
			"messages are taken for %d days; push again, or run `pulumi deployment run`", at.UTC().Format(time.RFC3339),
			now.UTC().Format(time.RFC3339), int(takenFor.Hours()/24))
	}
	return jobs.Delivery{Digest: m.Digest(), Lasts: takenFor}, nil
}

// pushed returns the request of the deployment that an event starts. It may do what whoever made the settings may.
func pushed(
	name deployments.StackName, stored jobs.Settings, e gitpush.Event,
) deployments.DeploymentRequest {
	r := deployments.DeploymentRequest{Stack: name, Operation: apitype.Update, Inherits: true,
		Authority: stored.Authority, Initiator: "push to " + e.Branch}
	if e.PullRequest > 0 {
		r.Operation, r.Initiator = apitype.Preview, fmt.Sprintf("pull request %d", e.PullRequest)
	}
	if a := stored.Authority; a != nil && len(a.Holders) > 0 {
		r.RequestedBy = a.Holders[0].Token
		if a.Holders[0].Member != "" {
			r.RequestedBy = a.Holders[0].Member
		}
	}
	r.Settings.SourceContext = &apitype.SourceContext{Git: &apitype.SourceContextGit{Commit: e.Commit}}
	return r
}

// ignored says why an event deploys nothing, if so.
func ignored(ctx context.Context, stored jobs.Settings, e *gitpush.Event) (string, error) {
	if e == nil {
		return "this event deploys nothing", nil
	}
	rules := pushRules(stored.DeploymentSettings)
	if why := unasked(stored, rules, e); why != "" {
		return why, nil
	}
	touches, err := e.Touches(ctx, rules.Paths)
	if err != nil || touches {
		return "", err
	}
	return "none of the paths in the deployment settings has changed", nil
}

// unasked says why the settings ask for no deployment of an event, whatever it has changed.
func unasked(stored jobs.Settings, rules apitype.DeploymentSettingsGitHub, e *gitpush.Event) string {
	git := stored.Git()
	u, err := deployments.GitURL(git.RepoURL)
	switch {
	case err != nil:
		return "the deployment settings name no repository"
	case !e.Of(u):
		return fmt.Sprintf("it is about another repository (%s) than the one in the deployment settings (%s)", e.Repository,
			deployments.ShownURL(u))
	case git.Branch == "" || git.Branch != e.Branch:
		return fmt.Sprintf("it is about another branch (%s) than the one in the deployment settings (%s)", e.Branch,
			cmp.Or(git.Branch, "none"))
	case e.PullRequest > 0 && !rules.PreviewPullRequests:
		return "the deployment settings ask for no previews of pull requests"
	case e.PullRequest > 0 && e.Foreign:
		return "the pull request is from another repository"
	case e.PullRequest == 0 && !rules.DeployCommits:
		return "the deployment settings ask for no deployments of pushes"
	}
	return ""
}

// pushRules returns what pushes start.
func pushRules(s deployments.DeploymentSettings) apitype.DeploymentSettingsGitHub {
	switch {
	case s.GitHub != nil:
		return *s.GitHub
	case s.VCS != nil:
		return apitype.DeploymentSettingsGitHub{DeployCommits: s.VCS.DeployCommits,
			PreviewPullRequests: s.VCS.PreviewPullRequests, Paths: s.VCS.Paths}
	}
	return apitype.DeploymentSettingsGitHub{}
}
