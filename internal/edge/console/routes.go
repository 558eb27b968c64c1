package console

import (
	"net/http"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
)

// route is one line of the table of what is served.
type route struct {
	method, path string
	// like are the full names of the methods of the gRPC API that tell what the page shows: its reader needs what the
	// rule of each demands. A route without one needs no session, and shows nothing of anybody.
	like   []string
	does   []grpcapi.Rule
	handle func(*call) (answer, error)
}

// resolve looks up the rules of a route.
func (r *route) resolve() error {
	for _, method := range r.like {
		rule, ok := grpcapi.RuleOf(method)
		if !ok {
			return deployments.Errorf(deployments.CodeInternal, "the page %s names %s, which is no method of the API", r.path,
				method)
		}
		r.does = append(r.does, rule)
	}
	return nil
}

// name names a route in metrics, which must be few.
func (r *route) name() string {
	if r.path == "" {
		return "unknown page of the console"
	}
	return r.method + " " + r.path
}

// stackPath is the path of a stack.
const stackPath = Root + "{org}/{project}/{stack}"

func toHome(*call) (answer, error) { return redirect(Root), nil }

// routes returns the table.
func routes() []*route {
	const (
		statuses, ongoing = api.Stacks_ListStatuses_FullMethodName, api.Deployments_ListOngoing_FullMethodName
		mode              = api.Modes_GetMode_FullMethodName
		stack, past       = api.Stacks_GetStack_FullMethodName, api.Stacks_History_FullMethodName
		schedules, drift  = api.Schedules_ListSchedules_FullMethodName, api.Schedules_GetDrift_FullMethodName
		export, watch     = api.Stacks_Export_FullMethodName, api.Deployments_Watch_FullMethodName
	)
	open := func(method, path string, handle func(*call) (answer, error)) *route {
		return &route{method: method, path: path, handle: handle}
	}
	page := func(path string, handle func(*call) (answer, error), like ...string) *route {
		return &route{method: http.MethodGet, path: path, like: like, handle: handle}
	}
	return []*route{
		open(http.MethodGet, Root+"style.css", asset("style.css", "text/css; charset=utf-8")),
		open(http.MethodGet, Root+"script.js", asset("script.js", "text/javascript; charset=utf-8")),
		open(http.MethodGet, Root+"icon.svg", asset("icon.svg", "image/svg+xml")),
		open(http.MethodGet, Root+"login", loginPage), open(http.MethodPost, Root+"logout", logout),
		// its form has the token, so that the handler checks the rule
		{method: http.MethodPost, path: Root + "login", handle: login},
		open(http.MethodGet, Root[:len(Root)-1], toHome), open(http.MethodGet, "/{$}", toHome),
		page(Root+"{$}", homePage, statuses, ongoing, mode),
		page(stackPath, overviewPage, stack, past, schedules, drift),
		page(stackPath+"/resources", resourcesPage, export),
		page(stackPath+"/graph", graphPage, export),
		page(stackPath+"/outputs", outputsPage, export),
		page(stackPath+"/updates", historyPage, past),
		page(stackPath+"/updates/{version}", updatePage, past, watch),
		page(stackPath+"/updates/{version}/log", logPage, past, watch),
		page(stackPath+"/previews/{id}", previewPage, past),
	}
}
