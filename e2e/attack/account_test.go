//go:build unix

package attack

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
)

// nextStart puts files where the service, and what it runs, look at the next start: into HOME, the directories of
// settings, those of PATH, and beside the binary.
func nextStart(t *testing.T, f *field) {
	sandboxed(t)
	home, err := os.UserHomeDir()
	harness.Must(t, err)
	var path, settings string
	for _, variable := range f.Env {
		if dirs, ok := strings.CutPrefix(variable, "PATH="); ok {
			path = strings.ReplaceAll(dirs, ":", " ")
		}
		if dir, ok := strings.CutPrefix(variable, "XDG_CONFIG_HOME="); ok {
			settings = filepath.Join(dir, "deployctl")
		}
	}
	const planted = ".planted-by-an-attack"
	tool, found := f.script(t, "next-start", fmt.Sprintf(`
for d in %s %s/.config %s %s %s; do
  mkdir -p $d 2>/dev/null
  (echo x > $d/%s) 2>/dev/null && echo "WRONG: $d" >> $FOUND
done
ln -s /usr %s 2>/dev/null && echo "WRONG: a link" >> $FOUND
(echo x >> %s) 2>/dev/null && echo "WRONG: the binary" >> $FOUND
`, home, home, path, settings, filepath.Dir(f.Binary), planted, settings, f.Binary))
	tool.Run(t, "up", "--yes", "--skip-preview")
	if said := found(); strings.Contains(said, "WRONG") {
		t.Errorf("it has changed what is read at the next start: %s", said)
	}
	for _, dir := range append(strings.Fields(path), home, filepath.Join(home, ".config"), settings,
		filepath.Dir(f.Binary)) {
		if os.Remove(filepath.Join(dir, planted)) == nil {
			t.Errorf("it has put a file into %s", dir)
		}
	}
}

// socketsOfTheUser connects to sockets of the user, as those of a terminal multiplexer or an agent with keys are.
func socketsOfTheUser(t *testing.T, f *field) {
	sandboxed(t)
	cache, err := os.UserCacheDir()
	harness.Must(t, err)
	dir, err := os.MkdirTemp(cache, "attack-")
	harness.Must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	var reached atomic.Int64
	file, abstract := filepath.Join(dir, "agent"), "@"+filepath.Base(dir)
	for _, address := range []string{file, abstract} {
		listener, err := net.Listen("unix", address)
		harness.Must(t, err)
		t.Cleanup(func() { _ = listener.Close() })
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				reached.Add(1)
				_ = conn.Close()
			}
		}()
	}
	tool, found := f.script(t, "sockets", fmt.Sprintf(`
perl -MSocket -e 'for my $path ("%s", "\0%s") {
  socket(my $s, AF_UNIX, SOCK_STREAM, 0) or die;
  print "tried\n";
  print "WRONG: connected\n" if connect($s, sockaddr_un($path));
}' >> $FOUND 2>&1
`, file, strings.TrimPrefix(abstract, "@")))
	tool.Run(t, "up", "--yes", "--skip-preview")
	said := found()
	if n := reached.Load(); n != 0 || strings.Contains(said, "WRONG") || strings.Count(said, "tried") != 2 {
		t.Errorf("%d sockets of the user are reached; the program says %s", n, said)
	}
}
