package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/sys/doors"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/statestore"
)

// The stock CLI shows its token to whoever has the address at which it has logged in. So the embedded service has that
// address for itself while it runs, and what the CLI shows there is worthless once the service has ended.

// pulumiUsual is where the embedded service serves the Pulumi Service API if nobody else has the port: the stock CLI
// prints links to the console, and logs in with a browser, only for this address.
const pulumiUsual = "localhost:8080"

// pulumiConsole is where the stock CLI looks for the console of that address.
const pulumiConsole = "localhost:3000"

// stockListeners are the addresses that are open for the stock CLI; those that are not are nil.
type stockListeners struct{ api, console net.Listener }

// openStock opens an address of the Pulumi Service API, and the console of the usual one. There, people enter their
// token where the CLI leads them, so without the console's address that one is not opened either, unless only programs
// of this user or root have it. If an address cannot be opened, it is returned, too.
func openStock(address string) (l stockListeners, taken string, err error) {
	if l.api, err = grpcapi.Listen(address, nil); err != nil {
		return stockListeners{}, address, err
	}
	if address != pulumiUsual {
		return l, "", nil
	}
	console, err := grpcapi.Listen(pulumiConsole, nil)
	switch {
	case err == nil:
		l.console = console
	case !ofThisUser(pulumiConsole):
		_ = l.api.Close() // nobody was served
		return stockListeners{}, pulumiConsole, err
	}
	return l, "", nil
}

// ofThisUser reports whether only programs of this user or root listen on the port of an address. It is false where the
// system does not tell.
func ofThisUser(address string) bool {
	_, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	uids, _ := doors.Holders(port)
	return len(uids) > 0 && !slices.ContainsFunc(uids, func(uid int) bool { return uid != 0 && uid != os.Getuid() })
}

// callback reports, as CodeForbidden, that another user's process listens on the port to which a login with a browser
// leads: the CLI may have ended, or never have been there.
func callback(port int) error {
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if _, known := doors.Holders(port); !known || ofThisUser(address) {
		return nil
	}
	return deployments.Errorf(deployments.CodeForbidden, "no program of yours listens on %s, where the token would be "+
		"sent: run `pulumi login` again", address)
}

// ownerOf names who listens on the port of an address.
func ownerOf(address string) string {
	_, text, _ := net.SplitHostPort(address)
	port, _ := strconv.Atoi(text)
	return devserver.PortOwner(port)
}

// openStock opens the address for the stock CLI, and writes it to the status of the service. Once the service had an
// address of its own, it keeps that. If another user has it by then, no other one takes its place: CLIs would go on to
// talk to that user.
func (d *devCall) openStock(server *devserver.Server) (stockListeners, error) {
	s := &server.Status
	wanted := d.settings.Get(settings.PulumiListen)
	address := cmp.Or(wanted, s.PulumiUsed, pulumiUsual)
	l, taken, err := openStock(address)
	switch {
	case err == nil:
	case wanted != "":
		return l, fmt.Errorf("%w (%s has it)", err, ownerOf(taken))
	case s.PulumiUsed != "" && !ofThisUser(taken):
		s.PulumiProblem = fmt.Sprintf("%s, where the stock CLI has logged in, is not served: %s has %s. Do not use the "+
			"stock CLI there: it would talk to that process. End the process, and start the service again; or set "+
			"DEPLOYCTL_PULUMI_LISTEN to another address, and log in there", address, ownerOf(taken), taken)
		server.Log.Error("the stock CLI is not served", "address", address, "taken", taken, "owner", ownerOf(taken))
		return l, nil
	default:
		s.PulumiProblem = fmt.Sprintf("%s has %s, so log in at %s", ownerOf(taken), taken, server.PulumiAddress)
		server.Log.Warn("the stock CLI is served elsewhere", "address", server.PulumiAddress, "taken", taken,
			"owner", ownerOf(taken))
		address = server.PulumiAddress
		if l, _, err = openStock(address); err != nil {
			return l, err
		}
	}
	s.PulumiAddress, s.PulumiUsed = address, address
	if l.console != nil {
		s.ConsoleAddress = pulumiConsole
	}
	l.api = doors.SameUser(l.api)
	if l.console != nil {
		l.console = doors.SameUser(l.console)
	}
	return l, nil
}

// stockToken is the name of the token that the embedded service makes for the stock CLI. Tokens that CLIs get by a
// login with a browser have names that begin so.
const stockToken = "pulumi"

// stockTokenFor is how long it is good, at most.
const stockTokenFor = 90 * 24 * time.Hour

// forStock reports whether a token of this name is for the stock CLI.
func forStock(name string) bool {
	return strings.HasPrefix(name, deployments.LocalToken+"."+stockToken)
}

// stockTokenFile is the path of the file with the token for the stock CLI.
func stockTokenFile(home string) string { return filepath.Join(home, "pulumi-token") }

// renewStockToken ends what CLIs had until now, which they have shown to whoever had the address since the service
// ended, and writes a new token to a file in the home, for as long as this service runs.
func renewStockToken(ctx context.Context, store *statestore.Store, status *devserver.Status) error {
	all, err := store.Access.ListTokens(ctx)
	if err != nil {
		return err
	}
	for _, t := range all {
		if exchanged := t.Origin != nil && t.Origin.Trust != ""; !exchanged && !forStock(t.Name) {
			continue
		}
		if err := store.Access.RemoveToken(ctx, t.Name); err != nil && deployments.CodeOf(err) != deployments.CodeNotFound {
			return err
		}
	}
	file := stockTokenFile(status.Home)
	if status.PulumiAddress == "" {
		if err := os.Remove(file); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	text, err := store.Access.DeriveToken(ctx, deployments.Token{Name: stockToken,
		Expires: time.Now().Add(stockTokenFor).UTC(),
		Origin:  &deployments.Origin{Token: deployments.LocalToken}})
	if err != nil {
		return err
	}
	status.PulumiTokenFile = file
	return writeToken(file, text)
}

// stockAuthority knows the tokens of the stock CLI, which act for the local user, so that what is done with them, such
// as a schedule, lasts longer than they do. It refuses others: they are good for longer than the service has the
// address.
type stockAuthority struct {
	grpcapi.Authority
	tokenFile string
}

// Authenticate implements grpcapi.Authority.
func (a stockAuthority) Authenticate(ctx context.Context, text string) (deployments.Caller, error) {
	caller, err := a.Authority.Authenticate(ctx, text)
	switch {
	case err != nil || caller.Identity != "": // exchanged since the service started
		return caller, err
	case forStock(caller.Token):
		return grpcapi.LocalUser(), nil
	}
	return deployments.Caller{}, deployments.Errorf(deployments.CodeForbidden, "the token %s is not for the stock CLI, "+
		"which shows it to any process that has the address while the embedded service does not run: log in with "+
		"PULUMI_ACCESS_TOKEN=$(cat %s), a token that ends with the service", caller.Token, a.tokenFile)
}
