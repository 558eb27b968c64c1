package pulumiapi

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

func TestTenThousandWrongTokensAreSlowedAndAllOfThemAreInTheAuditLog(t *testing.T) {
	newBench(t) // the compressor of the process must not be of the bubble
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		audit := b.store.Access.OpenAudit(slog.New(slog.DiscardHandler))
		var err error
		b.handler, err = Handler(Config{Service: offline{b.server, b.store}, Auditor: audit, Authority: b.store.Access,
			Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		const guesses, clients = 10_000, 100
		began := time.Now()
		var all sync.WaitGroup
		for range clients {
			all.Go(func() {
				for range guesses / clients {
					b.want(http.StatusUnauthorized, http.MethodGet, "/api/user", "token dctl.admin.guess", "")
				}
			})
		}
		all.Wait()
		if took := time.Since(began); took < 5*time.Minute {
			t.Errorf("%d guesses from one address took %s", guesses, took)
		}
		if err := audit.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		noted := 0
		err = b.store.Access.Audit(t.Context(), deployments.AuditQuery{Organization: deployments.AnyOrganization},
			func(e deployments.AuditEntry) error {
				noted += 1 + e.Repeated
				return nil
			})
		// the next refused call will count those since the last entry
		if err != nil || noted < guesses-clients || noted > guesses {
			t.Errorf("the audit log has %d, %v", noted, err)
		}
	})
}

// TestNoSecretOfACallIsInALog makes calls that hold secrets in each place, good ones and refused ones.
func TestNoSecretOfACallIsInALog(t *testing.T) {
	var text bytes.Buffer
	b := newBenchWith(t, slog.New(slog.NewJSONHandler(&text, &slog.HandlerOptions{Level: slog.LevelDebug})))
	all := deployments.Grant{Role: deployments.RoleAdmin, Organization: deployments.AnyOrganization}
	good, err := b.store.Access.CreateToken(t.Context(), deployments.Token{Name: "good", Grant: &all})
	if err != nil {
		t.Fatal(err)
	}
	l := deployments.Leased{ID: "mine", Update: deployments.UpdateName{StackName: dev, Version: "7"},
		Expires: time.Now().Add(time.Hour)}
	lease := b.server.Leases.LeaseToken(l)
	const guess, plain, jwt = "a-guessed-token-text", "the plain text of a secret", "eyJhbGciOiJSUzI1NiJ9.e30.c2ln"
	form := []string{"Content-Type", "application/x-www-form-urlencoded"}
	for _, r := range routes() {
		for _, authorization := range []string{"token " + good, "token " + guess, "update-token " + lease,
			"update-token " + guess, "Basic " + guess} {
			if r.by == byToken && asksTemporal(r.method, r.path) && strings.Contains(authorization, good) {
				continue
			}
			b.do(r.method, sampled(r)+"?cliSessionNonce="+guess, authorization,
				strings.NewReader(`{"plaintext":"`+plain+`"}`))
		}
		if r.by == byIdentity {
			for _, token := range []string{good, guess} {
				b.do(r.method, sampled(r), "", strings.NewReader("token="+token+"&subject_token="+jwt+
					"&grant_type="+grantExchange+"&audience=urn:pulumi:org:acme&subject_token_type="+typeIdentityToken+
					"&cliSessionPort=1234&cliSessionNonce="+guess), form...)
			}
		}
	}
	noted := text.String()
	for _, e := range b.log.entries {
		noted += e.Subject + " " + e.Error + " " + e.Token + " " + e.Method + "\n"
	}
	if len(b.log.entries) == 0 || text.Len() == 0 {
		t.Fatal("nothing is logged")
	}
	for name, secret := range map[string]string{"a token": good[len("dctl.good."):], "the token of a lease": lease,
		"a guess": guess, "a secret": plain, "an identity token": jwt} {
		if i := strings.Index(noted, secret); i >= 0 {
			t.Errorf("%s is in a log: …%s…", name, noted[max(i-200, 0):i])
		}
	}
}
