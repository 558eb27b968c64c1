// Release builds what somebody needs to install deployctl, from the tree alone: archives, Debian packages, an image of
// containers, a Helm chart, a compose file, lists of what is in the programs, and checksums. Two releases of one commit
// are equal, byte for byte.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

func main() {
	version := flag.String("version", "", "`VERSION` of the release, such as 1.2.3 or 1.3.0-rc.1")
	root := flag.String("root", ".", "`DIR` of the tree")
	dist := flag.String("dist", "dist", "`DIR` that the release is written to; what is there is replaced")
	only := flag.String("platforms", "", "build only these PLATFORMS, separated by commas, such as linux/amd64")
	flag.Parse()
	if err := run(*root, *dist, *version, *only); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

func run(root, dist, version, only string) error {
	r, err := read(root, version)
	if err != nil {
		return err
	}
	targets, err := chosen(only)
	if err != nil {
		return err
	}
	programs, err := os.MkdirTemp("", "deployctl-release-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(programs) }()
	if err := r.buildAll(programs, targets); err != nil {
		return err
	}
	if err := r.gather(programs); err != nil {
		return err
	}
	if err := os.RemoveAll(dist); err != nil {
		return err
	}
	if err := r.pack(dist); err != nil {
		return err
	}
	sums, err := os.ReadFile(filepath.Join(dist, sumsFile))
	if err != nil {
		return err
	}
	fmt.Print(string(sums))
	return nil
}

// chosen returns the targets that a list of platforms, separated by commas, names; all of them if it is empty.
func chosen(only string) ([]target, error) {
	if only == "" {
		return targets, nil
	}
	var found []target
	for name := range strings.SplitSeq(only, ",") {
		before := len(found)
		for _, t := range targets {
			if t.String() == name {
				found = append(found, t)
			}
		}
		if len(found) == before {
			return nil, fmt.Errorf("nothing is released for %q; the platforms are %v", name, targets)
		}
	}
	return found, nil
}
