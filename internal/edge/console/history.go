package console

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/deployments"
)

// historySize is how many updates a page of the history lists.
const historySize = 50

// historyRow is an update of a stack.
type historyRow struct {
	deployments.UpdateInfo
	URL, Changed string
}

// history lists a part of the stack's updates.
func (c *call) history(p deployments.Page) (rows []historyRow, err error) {
	list, err := c.console.Service.HistoryPage(c.Context(), c.stack, p)
	for _, u := range list {
		rows = append(rows, historyRow{u, urlOf(c.stack, &u), changed(u.Changes)})
	}
	return rows, err
}

// past are the words for what was done.
var past = map[string]string{"create": "created", "update": "updated", "delete": "deleted", "replace": "replaced",
	"import": "imported", "refresh": "refreshed"}

// changed says how many resources an update has changed, and how.
func changed(changes map[string]int) string {
	var parts []string
	for _, kind := range slices.Sorted(maps.Keys(changes)) {
		if n := changes[kind]; n > 0 && kind != "same" {
			parts = append(parts, fmt.Sprintf("%d %s", n, cmp.Or(past[kind], kind)))
		}
	}
	if len(parts) == 0 && changes["same"] > 0 {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}

// pages leads through a list that has several pages.
type pages struct {
	Number         int
	Previous, Next string
}

// asked returns the number of the page of a list that the reader asks for, from 1.
func (c *call) asked() (int, error) {
	text := cmp.Or(c.URL.Query().Get("page"), "1")
	n, err := strconv.Atoi(text)
	if n < 1 || err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, deployments.Errorf(deployments.CodeInvalid, "the page of a list must be a whole number from 1, not %q",
			short(20, text))
	}
	return n, nil
}

// pagesAt returns the ways from a page of a list to those beside it.
func (c *call) pagesAt(number int, more bool) pages {
	p := pages{Number: number}
	at := func(n int) string {
		query := c.URL.Query()
		query.Set("page", strconv.Itoa(n))
		return c.URL.Path + "?" + query.Encode()
	}
	if number > 1 {
		p.Previous = at(number - 1)
	}
	if more {
		p.Next = at(number + 1)
	}
	return p
}

// historyPage lists the updates of a stack.
func historyPage(c *call) (answer, error) {
	number, err := c.asked()
	if err != nil {
		return answer{}, err
	}
	rows, err := c.history(deployments.Page{Number: number, Size: historySize})
	if err != nil {
		return answer{}, err
	}
	p := c.stackPageOf("Updates")
	p.Data = struct {
		Updates []historyRow
		Pages   pages
	}{rows, c.pagesAt(number, len(rows) == historySize)}
	return c.page("history", p)
}

// previewPage leads to a preview by the id of its request, as the stock CLI names it.
func previewPage(c *call) (answer, error) {
	return redirect(updateURL(deployments.CreatedName(c.stack, c.PathValue("id")))), nil
}
