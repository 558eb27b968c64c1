package service

import (
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a schedule is due by its own time zone, whatever the machine knows

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// dueAt tells whether a schedule is due at a time, to the second, by what is known of it in the bucket.
func dueAt(w *statestore.Wanted, at time.Time) bool {
	switch sched := w.Schedule; {
	case sched.Every != 0:
		every := int64(sched.Every / time.Second)
		return at.Unix()%every == int64(offsetOf(sched.Every, w.Made)/time.Second)%every
	case sched.Cron != "":
		zone, fields, err := fieldsOf(sched.Cron)
		return err == nil && matches(fields, at.In(zone))
	default:
		return at.Equal(sched.At.Truncate(time.Second))
	}
}

// abbreviations of cron expressions.
var abbreviations = map[string]string{
	"@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
	"@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}

// fieldsOf takes a cron expression apart, as Temporal does: its seven fields are seconds, minutes, hours, days of the month, months,
// days of the week and years.
func fieldsOf(cron string) (*time.Location, []string, error) {
	zone, text := time.UTC, strings.TrimSpace(cron)
	if strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=") {
		name, rest, _ := strings.Cut(text, " ")
		_, name, _ = strings.Cut(name, "=")
		var err error
		if zone, err = time.LoadLocation(name); err != nil {
			return nil, nil, deployments.Errorf(deployments.CodeInvalid, "the cron expression names the time zone %q, which is not known", name)
		}
		text = rest
	}
	text, _, _ = strings.Cut(text, "#")
	text = strings.TrimSpace(text)
	if long, ok := abbreviations[text]; ok {
		text = long
	}
	fields := strings.Fields(text)
	switch len(fields) {
	case 5:
		fields = append(append([]string{"0"}, fields...), "*")
	case 6:
		fields = append([]string{"0"}, fields...)
	case 7:
	default:
		return nil, nil, deployments.Errorf(deployments.CodeInvalid,
			"a cron expression has five to seven fields, and %q has %d; for an interval use --every", text, len(fields))
	}
	return zone, fields, nil
}

var (
	months = []string{"", "january", "february", "march", "april", "may", "june", "july", "august", "september", "october", "november", "december"}
	days   = []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"}
)

// matches tells whether every field has the time.
func matches(fields []string, at time.Time) bool {
	day := int(at.Weekday())
	return has(fields[0], at.Second(), 59, nil) && has(fields[1], at.Minute(), 59, nil) && has(fields[2], at.Hour(), 23, nil) &&
		has(fields[3], at.Day(), 31, nil) && has(fields[4], int(at.Month()), 12, months) &&
		(has(fields[5], day, 7, days) || day == 0 && has(fields[5], 7, 7, days)) && has(fields[6], at.Year(), 2100, nil)
}

// has tells whether a field of a cron expression has a value: *, 3, 3-5, */2, 3/2, 3-9/2, and lists of them, with names for numbers.
func has(field string, value, last int, names []string) bool {
	return slices.ContainsFunc(strings.Split(field, ","), func(part string) bool {
		part, stepText, stepped := strings.Cut(part, "/")
		fromText, toText, ranged := strings.Cut(part, "-")
		first, end, step := 0, last, 1
		if stepped {
			step, _ = strconv.Atoi(stepText)
		}
		switch {
		case part != "*":
			first = number(fromText, names)
		case last == 31 || last == 12:
			first = 1
		case last == 2100:
			first = 2000
		}
		switch {
		case ranged:
			end = number(toText, names)
		case !stepped && part != "*":
			end = first
		}
		return step > 0 && first >= 0 && value >= first && value <= end && (value-first)%step == 0
	})
}

// number reads a number, or the beginning of a name; -1 when it is neither.
func number(text string, names []string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	return slices.IndexFunc(names, func(name string) bool { return text != "" && strings.HasPrefix(name, strings.ToLower(text)) })
}
