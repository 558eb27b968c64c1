package pulumiapi

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/auditfile"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

const (
	// auditPage is how many entries one answer lists.
	auditPage = 100
	// maxExported limits the entries of an export, and maxExportedBytes their size: it is built in memory, where it is
	// exportedTimes as large.
	maxExported, maxExportedBytes, exportedTimes = 200_000, 64 << 20, 3
	// auditStep is how much of the audit log is read at a time, from the end; auditKept is how far back it goes.
	auditStep, auditKept = 7 * 24 * time.Hour, 10 * 365 * 24 * time.Hour
)

// auditFilter selects entries for the stock CLI.
type auditFilter struct {
	query  deployments.AuditQuery // Since is set while reading
	since  time.Time              // nothing before is wanted
	method string
	last   string // request id of the entry at Until that was answered last; empty: entries at Until are wanted
}

// secondAudit is in the path of the audit log's second version.
const secondAudit = "/auditlogs/v2"

// auditFilterOf reads the query of a call. In the first version, what is called startTime is the end of the time.
func auditFilterOf(c *call) (auditFilter, error) {
	values := c.query()
	method, user := "eventType", "user"
	f := auditFilter{query: deployments.AuditQuery{Organization: c.PathValue("org"), Until: time.Now().UTC()}}
	bounds := map[string]*time.Time{"startTime": &f.query.Until}
	if strings.Contains(c.route.path, secondAudit) {
		method, user = "eventFilter", "userFilter"
		bounds = map[string]*time.Time{"startTime": &f.since, "endTime": &f.query.Until}
	}
	f.method, f.query.User = values.Get(method), values.Get(user)
	for name, bound := range bounds {
		text := values.Get(name)
		if text == "" {
			continue
		}
		at, err := time.Parse(time.RFC3339, text)
		if seconds, number := strconv.ParseInt(text, 10, 64); number == nil {
			at, err = time.Unix(seconds, 0), nil
		}
		if err != nil {
			return f, deployments.Errorf(deployments.CodeInvalid, "%q is not a time: write seconds since 1970, or "+
				"2006-01-02T15:04:05Z", clean(text))
		}
		*bound = at
	}
	if token := values.Get("continuationToken"); token != "" {
		text, err := base64.RawURLEncoding.DecodeString(token)
		at, last, ok := strings.Cut(string(text), " ")
		nanos, number := strconv.ParseInt(at, 10, 64)
		if err != nil || number != nil || !ok {
			return f, deployments.Errorf(deployments.CodeInvalid, "the continuation token is not one of this service")
		}
		f.query.Until, f.last = time.Unix(0, nanos), last
	}
	return f, nil
}

// position returns the token with which a list continues after an entry.
func position(e deployments.AuditEntry) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strconv.FormatInt(e.Time.UnixNano(), 10) + " " + e.Request))
}

// wants reports whether an entry is selected. Entries of the same time are in the order of their requests.
func (f auditFilter) wants(e deployments.AuditEntry, until time.Time) bool {
	if e.Time.Equal(until) && f.last != "" && until.Equal(f.query.Until) && e.Request >= f.last {
		return false
	}
	return f.method == "" || f.method == e.Method
}

// read returns up to most entries, the newest first, which it reads from the end. What it has of them takes memory.
func (f auditFilter) read(c *call, most int) ([]deployments.AuditEntry, error) {
	release, err := c.edge.gate.HoldExport(c.Context(), c.party())
	c.release = append(c.release, release)
	if err != nil {
		return nil, err
	}
	var entries []deployments.AuditEntry
	var size int64
	end, step := f.query.Until, auditStep
	oldest := later(end.Add(-auditKept), f.since)
	for ; end.After(oldest) && len(entries) < most; step *= 2 {
		query := f.query
		query.Since, query.Until = later(end.Add(-step), f.since), end
		var found []deployments.AuditEntry
		err := c.administered().Audit(c.Context(), query, func(e deployments.AuditEntry) error {
			if !f.wants(e, end) || e.Time.Equal(end) && !end.Equal(f.query.Until) {
				return nil
			}
			if found = append(found, e); len(found) > 2*most {
				found = newest(found, most)
			}
			if most < maxExported {
				return nil
			}
			if size += e.Size(); size > maxExportedBytes {
				return tooManyExported
			}
			if size%mempool.Step < e.Size() {
				return mempool.Take(c.Context(), exportedTimes*mempool.Step)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		entries, end = append(entries, newest(found, most)...), query.Since
	}
	return entries[:min(len(entries), most)], nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// newest returns up to most entries, the newest first.
func newest(entries []deployments.AuditEntry, most int) []deployments.AuditEntry {
	slices.SortStableFunc(entries, func(a, b deployments.AuditEntry) int {
		if by := b.Time.Compare(a.Time); by != 0 {
			return by
		}
		return strings.Compare(b.Request, a.Request)
	})
	return entries[:min(len(entries), most)]
}

var tooManyExported = deployments.Errorf(deployments.CodeInvalid, "more than %d entries, or %d MiB, are selected: "+
	"select a user, an event type, or an earlier end, or use `deployctl audit --format csv`", maxExported, maxExportedBytes>>20)

// listAudit lists the audit log, the newest entries first.
func listAudit(c *call) (any, error) {
	f, err := auditFilterOf(c)
	if err != nil {
		return nil, err
	}
	entries, err := f.read(c, auditPage+1)
	if err != nil {
		return nil, err
	}
	answer := apitype.ListAuditLogEventsResponse{AuditLogEvents: []apitype.AuditLogEvent{}}
	for i, e := range entries {
		if i == auditPage {
			answer.ContinuationToken = position(entries[i-1])
			break
		}
		who := e.Member
		if who == "" {
			who = e.Token
		}
		answer.AuditLogEvents = append(answer.AuditLogEvents, apitype.AuditLogEvent{Timestamp: e.Time.Unix(),
			Event: e.Method, Description: described(e), User: apitype.UserInfo{Name: who, GitHubLogin: who},
			SourceIP: grpcapi.Host(e.Peer), TokenID: e.Token, TokenName: e.Token})
	}
	return answer, nil
}

// described returns what an entry is about, and how the call ended.
func described(e deployments.AuditEntry) string {
	var parts []string
	for _, part := range []string{e.Stack, e.Subject, e.Identity} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	if e.Secrets {
		parts = append(parts, "secrets shown")
	}
	if e.Code != "" {
		parts = append(parts, string(e.Code))
	}
	return strings.Join(parts, ", ")
}

// exportAudit writes the audit log as CSV or CEF, the oldest entry first.
func exportAudit(c *call) (any, error) {
	f, err := auditFilterOf(c)
	if err != nil {
		return nil, err
	}
	write, kind := auditfile.CSV, "text/csv; charset=utf-8"
	switch format := c.query().Get("format"); format {
	case "", "csv":
	case "cef":
		write, kind = auditfile.CEF, "text/plain; charset=utf-8"
	default:
		return nil, deployments.Errorf(deployments.CodeInvalid, "%q is not a format: use csv or cef", clean(format))
	}
	entries, err := f.read(c, maxExported+1)
	if err != nil {
		return nil, err
	}
	if len(entries) > maxExported {
		return nil, tooManyExported
	}
	slices.Reverse(entries)
	var text bytes.Buffer
	if err := write(&text, entries); err != nil {
		return nil, err
	}
	return content{kind, text.Bytes()}, nil
}
