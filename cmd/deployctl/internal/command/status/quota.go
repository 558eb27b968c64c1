package status

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

// QuotaCommand returns deployctl quota.
func QuotaCommand(s *console.Env) *cli.Command {
	return &cli.Command{
		Name: "quota", Usage: "show and set what organizations may use",
		Subcommands: []*cli.Command{
			{
				Name: "show", Usage: "show what organizations use, and what they may use", ArgsUsage: "[ORGANIZATION]",
				Description: "Without an argument, of all organizations that you see anything of. \"7 of 20\" is 7 used of 20; " +
					"without \"of\" there is no limit.",
				Flags: console.Common(console.JSONFlag), Action: console.Action(s, runQuotaShow),
			},
			{
				Name: "set", Usage: "set limits of an organization", ArgsUsage: "ORGANIZATION",
				Description: "Only admins of all organizations can set them. A limit that is not named stays as it is, and none " +
					"removes one. All processes of the service know it within five seconds; nothing that exists or runs is " +
					"removed or stopped.",
				Flags: console.Common(
					&cli.StringFlag{Name: "stacks", Usage: "at most `N` stacks"},
					&cli.StringFlag{Name: "resources", Usage: "no update that may create resources begins while there are more " +
						"than `N` in all stacks"},
					&cli.StringFlag{Name: "updates", Usage: "at most `N` updates run at a time; others wait"},
					&cli.StringFlag{Name: "worker-minutes", Usage: "updates and previews that workers host take at most `N` " +
						"minutes within 30 days"},
					&cli.StringFlag{Name: "upload-bytes", Usage: "the files of a program have at most `SIZE` bytes, such as " +
						"50MiB"},
					&cli.StringFlag{Name: "versions", Usage: "the latest `N` versions of each stack are kept, and not more"}),
				Action: console.Action(s, runQuotaSet),
			},
		},
	}
}

func runQuotaShow(ctx context.Context, s *console.Session) error {
	if err := s.Dial(ctx); err != nil {
		return err
	}
	list, err := s.Service.Quotas(ctx, s.Flags.Args().First())
	if err != nil {
		return err
	}
	if s.Flags.Bool("json") {
		return s.SayJSON(list)
	}
	rows := [][]string{{"ORGANIZATION", "STACKS", "RESOURCES", "UPDATES", "WORKER-MINUTES", "UPLOAD", "VERSIONS"}}
	for _, q := range list {
		if q.Damaged != "" {
			s.Note("error: " + q.Damaged)
		}
		row := []string{q.Organization}
		for _, l := range deployments.Limits() {
			row = append(row, usedOf(q, l))
		}
		rows = append(rows, row)
	}
	return s.SayTable(rows)
}

// usedOf shows what is used of a limit.
func usedOf(q deployments.QuotaUse, l deployments.Limit) string {
	used, counted := q.Used[l]
	most, bounded := q.Limits[l]
	switch {
	case counted && bounded:
		return fmt.Sprintf("%d of %s", used, amount(l, most))
	case counted:
		return strconv.FormatInt(used, 10)
	case bounded:
		return amount(l, most)
	}
	return "-"
}

// amount shows a value of a limit, of bytes with the largest unit that makes it a whole number.
func amount(l deployments.Limit, n int64) string {
	if l != deployments.LimitUploadBytes || n == 0 {
		return strconv.FormatInt(n, 10)
	}
	for _, u := range units {
		if n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

// units are those of sizes, the largest first.
var units = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}}

func runQuotaSet(ctx context.Context, s *console.Session) error {
	c := deployments.QuotaChange{Organization: s.Flags.Args().First(), Set: deployments.Quota{}}
	for _, l := range deployments.Limits() {
		text := s.Flags.String(string(l))
		switch {
		case !s.Flags.IsSet(string(l)):
		case text == "none":
			c.Removed = append(c.Removed, l)
		default:
			n, err := parseAmount(l, text)
			if err != nil {
				return err
			}
			c.Set[l] = n
		}
	}
	if err := c.Validate(); err != nil {
		return err
	}
	if err := s.Dial(ctx); err != nil {
		return err
	}
	if err := s.Service.SetQuota(ctx, c); err != nil {
		return err
	}
	s.Say("The quota of %s is set; `deployctl quota show %s` shows it.", c.Organization, c.Organization)
	return nil
}

func parseAmount(l deployments.Limit, text string) (int64, error) {
	number, bytes := text, int64(1)
	if l == deployments.LimitUploadBytes {
		for _, u := range units {
			if before, found := strings.CutSuffix(text, u.name); found {
				number, bytes = strings.TrimSpace(before), u.bytes
				break
			}
		}
	}
	n, err := strconv.ParseInt(number, 10, 40)
	if err != nil || n < 0 {
		what := "a number"
		if l == deployments.LimitUploadBytes {
			what = "a number of bytes, or one with KiB, MiB or GiB,"
		}
		return 0, deployments.Errorf(deployments.CodeInvalid, "--%s takes %s or none, not %q", l, what, text)
	}
	return n * bytes, nil
}
