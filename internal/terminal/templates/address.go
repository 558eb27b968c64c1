package templates

import (
	"net/url"
	"path"
	"regexp"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/safetext"
)

// address is a place in a git repository.
type address struct {
	remote string // of the repository
	ref    string // "" until it is known
	tree   string // REF/DIR, undivided
	dir    string
}

// name is what the template is called.
func (a address) name() string {
	if a.dir != "" {
		return path.Base(a.dir)
	}
	return strings.TrimSuffix(path.Base(a.remote), ".git")
}

// scp matches the short form of an address for ssh, USER@HOST:PATH.
var scp = regexp.MustCompile(`^([A-Za-z0-9._-]+@[A-Za-z0-9][A-Za-z0-9.-]*):([^-/].*)$`)

// IsAddress reports whether a text is meant as the address of a git repository, not as a directory.
func IsAddress(text string) bool { return strings.Contains(text, "://") || scp.MatchString(text) }

// parseAddress reads the address of a template, in the forms in which Pulumi's templates are named: the repository,
// then /tree/REF/DIR or /DIR. The repository is the first two parts of the path, or everything to one that ends in
// .git.
func parseAddress(text string) (address, error) {
	if safetext.Visible(text) != text {
		return address{}, deployments.Errorf(deployments.CodeInvalid, "the template's address has control characters")
	}
	if m := scp.FindStringSubmatch(text); m != nil && !strings.Contains(text, "://") {
		return divide(m[1]+":", m[2])
	}
	u, err := url.Parse(text)
	if err != nil {
		return address{}, deployments.Errorf(deployments.CodeInvalid, "%q is no address of a git repository: %w", text,
			err)
	}
	switch u.Scheme {
	case "https", "ssh", "file":
	default:
		return address{}, deployments.Errorf(deployments.CodeInvalid, "a template comes from an https://, ssh:// or "+
			"file:// address of a git repository, not from %s://", u.Scheme)
	}
	if u.RawQuery != "" || u.Fragment != "" || strings.HasPrefix(u.Hostname(), "-") {
		return address{}, deployments.Errorf(deployments.CodeInvalid, "%q is no address of a git repository", text)
	}
	rest := strings.TrimPrefix(u.Path, "/")
	u.Path, u.RawPath = "", ""
	base := u.String()
	if u.Scheme == "file" {
		base = "file://"
	}
	return divide(base+"/", rest)
}

// divide divides a path on a server into that of the repository and what is in it.
func divide(base, rest string) (address, error) {
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	n := min(2, len(parts))
	for i, part := range parts {
		if strings.HasSuffix(part, ".git") {
			n = i + 1
			break
		}
	}
	for _, part := range parts {
		if part == "" || part == "." || part == ".." {
			return address{}, deployments.Errorf(deployments.CodeInvalid, "the template's address has a part %q in its "+
				"path", part)
		}
	}
	a := address{remote: base + strings.Join(parts[:n], "/")}
	rest = strings.Join(parts[n:], "/")
	if tree, found := strings.CutPrefix(rest, "tree/"); found {
		a.tree = tree
	} else {
		a.dir = rest
	}
	return a, nil
}
