package gitsource

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/outbound"
	"github.com/go-git/go-git/v6"
	"github.com/go-git/go-git/v6/plumbing"
	"github.com/go-git/go-git/v6/plumbing/client"
	"github.com/go-git/go-git/v6/plumbing/transport"
	xssh "github.com/go-git/go-git/v6/plumbing/transport/ssh"
	"github.com/kevinburke/ssh_config"
	"golang.org/x/crypto/ssh"
)

const (
	// serverPatience is how long a git server may take until it begins to answer.
	serverPatience = time.Minute
	// mostReceived bounds what a git server may send.
	mostReceived = 2 << 30
	// tokenUser is the user name that goes with an access token; servers take any.
	tokenUser = "x-access-token"
)

// fetcher fetches one commit.
type fetcher struct {
	order   FetchOrder
	url     *url.URL
	hostKey string
	left    int64 // of mostReceived
	said    io.Writer
}

// fetch puts the files of a commit into the directory of an order.
func fetch(ctx context.Context, o FetchOrder, said io.Writer) (Fetched, error) {
	u, err := deployments.GitURL(o.URL)
	if err != nil {
		return Fetched{}, err
	}
	f := &fetcher{order: o, url: u, left: mostReceived, said: said}
	options, err := f.client()
	if err != nil {
		return Fetched{}, err
	}
	repository, hash, err := f.checkout(ctx, options)
	if err != nil {
		return Fetched{}, f.explain(err)
	}
	commit, err := repository.CommitObject(hash)
	if err != nil {
		return Fetched{}, f.explain(err)
	}
	subject, _, _ := strings.Cut(strings.TrimSpace(commit.Message), "\n")
	return Fetched{Commit: hash.String(), Message: subject, HostKey: f.hostKey}, nil
}

// checkout clones the branch, or fetches the commit.
func (f *fetcher) checkout(ctx context.Context, options []client.Option) (*git.Repository, plumbing.Hash, error) {
	if f.order.Commit == "" {
		clone := &git.CloneOptions{URL: f.url.String(), ClientOptions: options, Tags: git.NoTags, Depth: 1,
			SingleBranch: true, Progress: f.said}
		if f.order.Branch != "" {
			clone.ReferenceName = plumbing.NewBranchReferenceName(strings.TrimPrefix(f.order.Branch, "refs/heads/"))
		}
		repository, err := git.PlainCloneContext(ctx, f.order.Dir, clone)
		if err != nil {
			return nil, plumbing.ZeroHash, err
		}
		head, err := repository.Head()
		if err != nil {
			return nil, plumbing.ZeroHash, err
		}
		return repository, head.Hash(), nil
	}
	repository, hash, err := f.revision(ctx, options)
	if err != nil {
		return nil, hash, err
	}
	worktree, err := repository.Worktree()
	if err != nil {
		return nil, hash, err
	}
	return repository, hash, worktree.Checkout(&git.CheckoutOptions{Hash: hash, Force: true})
}

// client returns the options that make go-git ask only servers that may be asked, with the credentials.
func (f *fetcher) client() ([]client.Option, error) {
	guard := &outbound.Guard{What: "programs are taken from git servers at", Setting: "deployments.private-hosts",
		Private: f.order.Private, Hosts: f.order.Hosts, Patience: serverPatience}
	if f.url.Scheme == "ssh" {
		options, err := f.ssh(guard)
		return []client.Option{client.WithTransport("ssh", xssh.NewTransport(options))}, err
	}
	if err := guard.Allows(f.url); err != nil {
		return nil, err
	}
	asked := guard.Client()
	if base, ok := asked.Transport.(*http.Transport); ok {
		dial := base.DialContext
		base.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return f.counted(dial(ctx, network, address))
		}
	}
	follow := asked.CheckRedirect
	asked.CheckRedirect = func(r *http.Request, before []*http.Request) error {
		if f.order.Auth != (Auth{}) && r.URL.Host != f.url.Host {
			return fmt.Errorf("the server redirects to %s, which must not get the credentials", r.URL.Host)
		}
		return follow(r, before)
	}
	return []client.Option{client.WithHTTPClient(asked), client.WithHTTPAuth(f)}, nil
}

// Authorizer adds the credentials to a request to the server that they are for.
func (f *fetcher) Authorizer(r *http.Request) error {
	if a := f.order.Auth; a.Password != "" && r.URL.Host == f.url.Host {
		user := a.User
		if user == "" {
			user = tokenUser
		}
		r.SetBasicAuth(user, a.Password)
	}
	return nil
}

// ssh returns the options of SSH. Nothing is read from the files of a user.
func (f *fetcher) ssh(guard *outbound.Guard) (xssh.Options, error) {
	o := xssh.Options{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			return f.counted(guard.Dial(ctx, network, address))
		},
		UserSettings: func(context.Context, *transport.Request) (*ssh_config.UserSettings, error) {
			none := &ssh_config.UserSettings{IgnoreErrors: true}
			none.ConfigFinder(func() string { return os.DevNull })
			return none, nil
		},
	}
	if f.order.Auth.Key == "" {
		return o, deployments.Errorf(deployments.CodeInvalid, "a git server is asked over SSH with a key: give one "+
			"(--git-auth-ssh-private-key-path)")
	}
	signer, err := ssh.ParsePrivateKey([]byte(f.order.Auth.Key))
	if missing := (*ssh.PassphraseMissingError)(nil); errors.As(err, &missing) {
		signer, err = ssh.ParsePrivateKeyWithPassphrase([]byte(f.order.Auth.Key), []byte(f.order.Auth.KeyPhrase))
	}
	if err != nil {
		return o, deployments.Errorf(deployments.CodeInvalid, "the SSH key for the git server cannot be read: it is no "+
			"private key, or its passphrase is wrong")
	}
	user := f.url.User.Username()
	if user == "" {
		user = xssh.DefaultUsername
	}
	o.ClientConfig = func(context.Context, *transport.Request) (*ssh.ClientConfig, error) {
		return &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, Timeout: serverPatience,
			HostKeyCallback: f.checkHostKey, HostKeyAlgorithms: f.hostKeyAlgorithms()}, nil
	}
	return o, nil
}

// checkHostKey accepts the key that the server had at first.
func (f *fetcher) checkHostKey(_ string, _ net.Addr, key ssh.PublicKey) error {
	f.hostKey = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
	if f.order.HostKey != "" && f.hostKey != f.order.HostKey {
		return deployments.Errorf(deployments.CodeInvalid, "the git server %s has another key than before (%s): somebody "+
			"may be in its place. If it has a new key, remove the deployment settings of the stack and set them again",
			f.url.Hostname(), ssh.FingerprintSHA256(key))
	}
	return nil
}

// hostKeyAlgorithms asks for the kind of key that is known; otherwise for any.
func (f *fetcher) hostKeyAlgorithms() []string {
	switch kind, _, _ := strings.Cut(f.order.HostKey, " "); kind {
	case "":
		return ssh.SupportedAlgorithms().HostKeys
	case ssh.KeyAlgoRSA:
		return []string{ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256}
	default:
		return []string{kind}
	}
}

// counted bounds what is received over a connection.
func (f *fetcher) counted(c net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	return &countedConn{c, f}, nil
}

type countedConn struct {
	net.Conn
	of *fetcher
}

var errTooMuch = errors.New("the git server sends too much")

// Read fails once the server has sent too much.
func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.of.left -= int64(n); c.of.left < 0 {
		return 0, errTooMuch
	}
	return n, err
}

// explain says what is wrong with a repository.
func (f *fetcher) explain(err error) error {
	var own *deployments.Error
	var refused *outbound.RefusedError
	at := outbound.Shown(f.url)
	code := deployments.CodeInvalid
	var text string
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &refused):
		text = refused.Error()
	case errors.Is(err, transport.ErrAuthenticationRequired), errors.Is(err, transport.ErrAuthorizationFailed),
		strings.Contains(err.Error(), "unable to authenticate"):
		text = fmt.Sprintf("the git server does not accept the credentials for %s: check them", at)
	case errors.Is(err, transport.ErrRepositoryNotFound):
		text = fmt.Sprintf("there is no repository %s, or these credentials may not see it", at)
	case f.order.Branch != "" && (errors.Is(err, plumbing.ErrReferenceNotFound) || absentRef(err)): // nothing of this name
		text = fmt.Sprintf("the repository %s has no branch %q", at, f.order.Branch)
	case errors.Is(err, transport.ErrEmptyRemoteRepository):
		text = fmt.Sprintf("the repository %s is empty", at)
	case errors.Is(err, errTooMuch):
		text = fmt.Sprintf("the git server sends more than %d MiB for %s", mostReceived>>20, at)
	default:
		code, text = deployments.CodeUnavailable, fmt.Sprintf("get %s: %v", at, err)
	}
	return &deployments.Error{Code: code, Message: text, Err: err}
}
