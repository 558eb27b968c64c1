package console

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
)

// formBody bounds a form.
const formBody = 16 << 10

// loginForm is what the page of the login shows.
type loginForm struct {
	To, Hint, Failed string
	WrongToken       bool // that is what has failed
	// Provider is the name of the identity provider; empty: there is none.
	Provider string
	// Organization is the one that the provider's login is for, and Organizations those of which one is to be chosen.
	Organization  string
	Organizations []string
}

// loginPage asks for a token.
func loginPage(c *call) (answer, error) {
	query := c.URL.Query()
	return c.askToken(loginForm{To: query.Get("to"), Organization: query.Get("organization")})
}

func (c *call) askToken(f loginForm) (answer, error) {
	f.To, f.Hint = local(f.To), c.console.TokenHint
	if c.console.Provider != nil {
		f.Provider = c.console.Provider.Name()
	}
	return c.page("login", page{Title: "Log in", Data: f})
}

// login begins a session with the token of the form, if its owner may see anything. A page of another site cannot log
// its reader in as somebody else.
func login(c *call) (answer, error) {
	form, err := c.form()
	if err != nil {
		return answer{}, err
	}
	c.entry.Method = "console login"
	rule, _ := grpcapi.RuleOf(api.Stacks_ListStatuses_FullMethodName)
	token := strings.TrimSpace(form.Get("token"))
	if err := c.admit(token, []grpcapi.Rule{rule}); err != nil {
		c.refused = true
		status, text := c.told(err)
		c.entry.Code, c.entry.Error = deployments.CodeOf(err), text
		a, failed := c.askToken(loginForm{To: form.Get("to"), Failed: text, WrongToken: true})
		a.status = status
		return a, failed
	}
	return redirect(local(form.Get("to"))), c.keep(token, time.Time{})
}

// logout ends the session.
func logout(c *call) (answer, error) {
	if _, err := c.form(); err != nil {
		return answer{}, err
	}
	c.forget()
	return redirect(Root + "login"), nil
}

// form reads the form of a page of ours.
func (c *call) form() (url.Values, error) {
	if err := http.NewCrossOriginProtection().Check(c.Request); err != nil {
		c.refused = true
		return nil, deployments.Errorf(deployments.CodeForbidden, "the form was sent by another page")
	}
	body, err := io.ReadAll(http.MaxBytesReader(c.answer, c.Body, formBody))
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the form cannot be read, or is larger than %d KiB",
			formBody>>10)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the form cannot be read")
	}
	return form, nil
}
