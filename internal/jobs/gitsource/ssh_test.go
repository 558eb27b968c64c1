//go:build unix

package gitsource

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"golang.org/x/crypto/ssh"
)

// newKey returns a key, and its PEM text under a passphrase.
func newKey(t *testing.T, phrase string) (ssh.Signer, string) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must(t, err)
	signer, err := ssh.NewSignerFromKey(private)
	must(t, err)
	block, err := ssh.MarshalPrivateKeyWithPassphrase(private, "", []byte(phrase))
	must(t, err)
	return signer, string(pem.EncodeToMemory(block))
}

// serveSSH serves the repository over SSH to whoever has a key; it returns the address.
func (r repository) serveSSH(t *testing.T, host ssh.Signer, allowed ssh.PublicKey) string {
	t.Helper()
	config := &ssh.ServerConfig{PublicKeyCallback: func(c ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		if c.User() != "git" || !bytes.Equal(key.Marshal(), allowed.Marshal()) {
			return nil, errors.New("another key")
		}
		return nil, nil
	}}
	config.AddHostKey(host)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go r.answer(c, config)
		}
	}()
	return listener.Addr().String()
}

// answer serves git-upload-pack on one connection.
func (r repository) answer(c net.Conn, config *ssh.ServerConfig) {
	_, channels, requests, err := ssh.NewServerConn(c, config)
	if err != nil {
		return
	}
	go ssh.DiscardRequests(requests)
	for asked := range channels {
		channel, requests, err := asked.Accept()
		if err != nil {
			return
		}
		for q := range requests {
			ours := q.Type == "exec" && strings.Contains(string(q.Payload), "git-upload-pack")
			_ = q.Reply(ours || q.Type == "env", nil)
			if !ours {
				continue
			}
			cmd := exec.Command("git-upload-pack", r.bare)
			cmd.Stdin, cmd.Stdout = channel, channel
			status := uint32(0)
			if cmd.Run() != nil {
				status = 1
			}
			_, _ = channel.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{status}))
			_ = channel.Close()
		}
	}
}

func TestARepositoryIsFetchedOverSSHWithAKey(t *testing.T) {
	r := newRepository(t, map[string]string{"a": "text"})
	host, _ := newKey(t, "x")
	key, text := newKey(t, "the passphrase")
	at := r.serveSSH(t, host, key.PublicKey())
	o := FetchOrder{URL: "ssh://git@" + at + "/shop.git", Branch: "main", Hosts: []string{"127.0.0.1"},
		Auth: Auth{Key: text, KeyPhrase: "the passphrase"}}
	f, dir, err := fetched(t, o)
	content, _ := os.ReadFile(filepath.Join(dir, "a"))
	if err != nil || f.Commit != r.commit || string(content) != "text" {
		t.Fatalf("%+v, %v", f, err)
	}
	if want := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(host.PublicKey()))); f.HostKey != want {
		t.Errorf("the key of the server is %q, not %q", f.HostKey, want)
	}

	known := o
	known.HostKey = f.HostKey
	if _, _, err := fetched(t, known); err != nil {
		t.Errorf("the server with the key that is known: %v", err)
	}
	stranger, _ := newKey(t, "x")
	known.HostKey = strings.TrimSpace(string(ssh.MarshalAuthorizedKey(stranger.PublicKey())))
	if _, _, err := fetched(t, known); err == nil || !strings.Contains(err.Error(), "another key than before") {
		t.Errorf("a server with another key: %v", err)
	}
}

func TestWhatIsNotAllowedOverSSHIsRefused(t *testing.T) {
	r := newRepository(t, nil)
	host, _ := newKey(t, "x")
	key, text := newKey(t, "the passphrase")
	_, other := newKey(t, "the passphrase")
	at := r.serveSSH(t, host, key.PublicKey())
	for why, o := range map[string]FetchOrder{
		"deployments.private-hosts": {Auth: Auth{Key: text, KeyPhrase: "the passphrase"}},
		"passphrase is wrong":       {Private: true, Auth: Auth{Key: text, KeyPhrase: "a wrong one"}},
		"does not accept":           {Private: true, Auth: Auth{Key: other, KeyPhrase: "the passphrase"}},
		"with a key":                {Private: true},
	} {
		o.URL, o.Branch = "ssh://git@"+at+"/shop.git", "main"
		_, _, err := fetched(t, o)
		if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
		if err != nil && strings.Contains(err.Error(), "PRIVATE KEY") {
			t.Errorf("the error has the key: %v", err)
		}
	}
}
