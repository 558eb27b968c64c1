// Package examples has the example projects that are also templates of deployctl new.
package examples

import "embed"

// Website is a project of static files in a bucket of deployctl:s3.
//
//go:embed website
var Website embed.FS
