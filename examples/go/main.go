// Command almanac declares a page per month of a year as objects that anyone may read, an index of them, and a command
// that counts their days.
package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/pulumi"
	"github.com/pulumi/pulumi/sdk/v3/go/pulumi/config"
)

// thing is any resource of deployctl's own providers: they need no SDK, a type and properties are enough.
type thing struct {
	pulumi.CustomResourceState
	Name   pulumi.StringOutput `pulumi:"name"`
	URL    pulumi.StringOutput `pulumi:"url"`
	Stdout pulumi.StringOutput `pulumi:"stdout"`
}

func main() {
	pulumi.Run(func(ctx *pulumi.Context) error {
		year := 2026
		if set, err := config.TryInt(ctx, "year"); err == nil {
			year = set
		}
		bucket, err := declare(ctx, "deployctl:s3:Bucket", "almanac", pulumi.Map{"publicRead": pulumi.Bool(true)})
		if err != nil {
			return err
		}
		var links pulumi.StringArray
		days := 0
		for month := time.January; month <= time.December; month++ {
			page, err := declare(ctx, "deployctl:s3:Object", strings.ToLower(month.String()), pulumi.Map{
				"bucket":  bucket.Name,
				"key":     pulumi.String(fmt.Sprintf("%02d.txt", month)),
				"content": pulumi.String(calendar(year, month)),
			})
			if err != nil {
				return err
			}
			links = append(links, pulumi.Sprintf("<li><a href=%q>%s</a>", page.URL, month))
			days += length(year, month)
		}
		index, err := declare(ctx, "deployctl:s3:Object", "index", pulumi.Map{
			"bucket": bucket.Name, "key": pulumi.String("index.html"),
			"content": pulumi.Sprintf("<!doctype html><title>%d</title><ul>%s</ul>", year, join(links)),
		})
		if err != nil {
			return err
		}
		count, err := declare(ctx, "deployctl:command:Run", "count", pulumi.Map{
			"create":      pulumi.String("echo $YEAR has $DAYS days"),
			"environment": pulumi.StringMap{"YEAR": pulumi.Sprintf("%d", year), "DAYS": pulumi.Sprintf("%d", days)},
		})
		if err != nil {
			return err
		}
		ctx.Export("url", index.URL)
		ctx.Export("count", count.Stdout)
		return nil
	})
}

// declare registers a resource.
func declare(ctx *pulumi.Context, token, name string, args pulumi.Map) (*thing, error) {
	var t thing
	err := ctx.RegisterResource(token, name, args, &t)
	return &t, err
}

func join(texts pulumi.StringArray) pulumi.StringOutput {
	joined := texts.ToStringArrayOutput().ApplyT(func(all []string) string { return strings.Join(all, "\n") })
	return joined.(pulumi.StringOutput)
}

// length is how many days a month has.
func length(year int, month time.Month) int {
	return time.Date(year, month+1, 0, 0, 0, 0, 0, time.UTC).Day()
}

// calendar is a month as a table of weeks, Monday first.
func calendar(year int, month time.Month) string {
	var page strings.Builder
	fmt.Fprintf(&page, "%s %d\nMo Tu We Th Fr Sa Su\n", month, year)
	column := (int(time.Date(year, month, 1, 0, 0, 0, 0, time.UTC).Weekday()) + 6) % 7
	page.WriteString(strings.Repeat("   ", column))
	for day := 1; day <= length(year, month); day++ {
		fmt.Fprintf(&page, "%2d", day)
		if column = (column + 1) % 7; column == 0 || day == length(year, month) {
			page.WriteByte('\n')
		} else {
			page.WriteByte(' ')
		}
	}
	return page.String()
}
