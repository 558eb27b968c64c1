package gitpush

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/glob"
)

// Event is a push to a branch, or a change of a pull request.
type Event struct {
	Repository string // as OWNER/NAME
	// Addresses are its URLs over HTTP and SSH: those of a server below a path have more than OWNER/NAME.
	Addresses [2]string
	Branch    string // that was pushed to, or that the pull request is to be merged into
	Commit    string // to deploy
	// PullRequest is the number of the pull request; 0 for a push.
	PullRequest int
	// Foreign is that a pull request is from another repository, whose authors may not deploy.
	Foreign bool
	// Paths are the files that changed; nil when not all are known, or there are too many.
	Paths []string
}

// commit is a commit in the message about a push.
type commit struct{ Added, Removed, Modified []string }

// github is what the messages of GitHub have.
type github struct {
	Ref, After, Action string
	Deleted            bool
	Commits            []commit
	Number             int
	Repository         githubRepository
	PullRequest        struct {
		Head, Base struct {
			SHA  string
			Ref  string
			Repo githubRepository
		}
	} `json:"pull_request"`
}

type githubRepository struct {
	FullName string `json:"full_name"`
	CloneURL string `json:"clone_url"`
	SSHURL   string `json:"ssh_url"`
}

func (r githubRepository) addresses() [2]string { return [2]string{r.CloneURL, r.SSHURL} }

// gitlab is what the messages of GitLab have.
type gitlab struct {
	Ref, After   string
	CheckoutSHA  string `json:"checkout_sha"`
	TotalCommits int    `json:"total_commits_count"`
	Commits      []commit
	Project      struct {
		Path    string `json:"path_with_namespace"`
		HTTPURL string `json:"git_http_url"`
		SSHURL  string `json:"git_ssh_url"`
	}
	Attributes struct {
		IID        int
		Action     string
		OldRev     string `json:"oldrev"` // with an update that brings commits
		Target     string `json:"target_branch"`
		SourceID   int    `json:"source_project_id"`
		TargetID   int    `json:"target_project_id"`
		LastCommit struct {
			ID string
		} `json:"last_commit"`
	} `json:"object_attributes"`
}

// mostCommits is how many commits GitHub describes in one message; of more, not all files are known.
const mostCommits = 2048

// branchPrefix begins the names of branches among references.
const branchPrefix = "refs/heads/"

// Kind returns what a message is about, in the words of its git server; empty when its header does not say.
func Kind(h http.Header) string { return cmp.Or(h.Get("X-Github-Event"), h.Get("X-Gitlab-Event")) }

// Event returns what a message is about; nil for something that deploys nothing, such as a ping, a tag or a branch that
// was deleted.
func (m Message) Event() (*Event, error) {
	kind := Kind(m.Header)
	var gh github
	var gl gitlab
	var err error
	switch kind {
	case "push", "pull_request":
		err = json.Unmarshal(m.Body, &gh)
	case "Push Hook", "Merge Request Hook":
		err = json.Unmarshal(m.Body, &gl)
	default:
		return nil, nil
	}
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the message of the git server cannot be read: %w", err)
	}
	e := map[string]func() *Event{"push": gh.push, "pull_request": gh.pullRequest, "Push Hook": gl.push,
		"Merge Request Hook": gl.mergeRequest}[kind]()
	if e != nil && !isCommit(e.Commit) {
		return nil, nil
	}
	return e, nil
}

// isCommit reports whether a text is the name of a commit, and not that of none, which is all zeros.
func isCommit(text string) bool {
	hexadecimal := func(r rune) bool { return r >= '0' && r <= '9' || r >= 'a' && r <= 'f' }
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0") != "" &&
		!strings.ContainsFunc(text, func(r rune) bool { return !hexadecimal(r) })
}

func (g github) push() *Event {
	branch, is := strings.CutPrefix(g.Ref, branchPrefix)
	if !is || g.Deleted {
		return nil
	}
	return &Event{Repository: g.Repository.FullName, Addresses: g.Repository.addresses(), Branch: branch, Commit: g.After,
		Paths: changed(g.Commits, len(g.Commits) < mostCommits)}
}

func (g github) pullRequest() *Event {
	if !slices.Contains([]string{"opened", "synchronize", "reopened"}, g.Action) {
		return nil
	}
	head, base := g.PullRequest.Head, g.PullRequest.Base
	return &Event{Repository: base.Repo.FullName, Addresses: base.Repo.addresses(), Branch: base.Ref, Commit: head.SHA,
		PullRequest: g.Number, Foreign: head.Repo.FullName != base.Repo.FullName}
}

func (g gitlab) addresses() [2]string { return [2]string{g.Project.HTTPURL, g.Project.SSHURL} }

func (g gitlab) push() *Event {
	branch, is := strings.CutPrefix(g.Ref, branchPrefix)
	if !is || g.CheckoutSHA == "" {
		return nil
	}
	return &Event{Repository: g.Project.Path, Addresses: g.addresses(), Branch: branch, Commit: g.After,
		Paths: changed(g.Commits, len(g.Commits) == g.TotalCommits)}
}

func (g gitlab) mergeRequest() *Event {
	a := g.Attributes
	if !slices.Contains([]string{"open", "update", "reopen"}, a.Action) || a.Action == "update" && a.OldRev == "" {
		return nil
	}
	return &Event{Repository: g.Project.Path, Addresses: g.addresses(), Branch: a.Target,
		Commit: a.LastCommit.ID, PullRequest: a.IID, Foreign: a.SourceID != a.TargetID}
}

// mostNames is how many bytes the names of changed files may have that are compared with patterns. It bounds how long
// that takes.
const mostNames = 256 << 10

// changed returns the files of commits; nil when these are not all or too many, or there are none, as after a forced
// push.
func changed(commits []commit, all bool) []string {
	if !all {
		return nil
	}
	var paths []string
	for _, c := range commits {
		paths = append(append(append(paths, c.Added...), c.Removed...), c.Modified...)
	}
	length := 0
	for _, name := range paths {
		length += len(name)
	}
	if length > mostNames {
		return nil
	}
	return paths
}

// Touches reports whether a file that changed, or a directory above it, matches one of the patterns, in which ** stands
// for any number of directories. Without patterns, and when not all files are known, it does.
func (e Event) Touches(ctx context.Context, patterns []string) (bool, error) {
	if len(patterns) == 0 || e.Paths == nil {
		return true, nil
	}
	for _, pattern := range patterns {
		segments := append(glob.Inside(strings.Split(strings.Trim(pattern, "/"), "/")), "**") // and all that is in it
		for _, name := range e.Paths {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			if glob.Path(segments, strings.Split(name, "/")) {
				return true, nil
			}
		}
	}
	return false, nil
}

// Of reports whether an event is of the repository at a URL. The host does not count: a server has several names.
func (e Event) Of(repository *url.URL) bool {
	name := nameIn(repository)
	return strings.EqualFold(name, e.Repository) || slices.ContainsFunc(e.Addresses[:], func(text string) bool {
		u, err := deployments.GitURL(text)
		return err == nil && strings.EqualFold(name, nameIn(u))
	})
}

func nameIn(u *url.URL) string { return strings.Trim(strings.TrimSuffix(u.Path, ".git"), "/") }
