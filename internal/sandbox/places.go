package sandbox

import (
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// systemTrees are directories that programs need with everything in them.
var systemTrees = []string{
	"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/usr", "/nix", "/dev", "/proc", "/sys", "/etc/ssl/certs",
	"/etc/pki/ca-trust",
}

// systemPlaces are directories that programs need, though not everything in them.
var systemPlaces = []string{
	"/", "/boot", "/etc", "/etc/ssl", "/etc/pki", "/home", "/media", "/mnt", "/opt", "/run", "/run/lock",
	"/run/user", "/snap", "/srv",
	"/tmp", "/var", "/var/cache", "/var/lib", "/var/log", "/var/run", "/var/spool", "/var/tmp",
}

// systemFiles are files without which programs do not find other machines; they may be links.
var systemFiles = []string{"/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/localtime"}

// homePlaces are those of the directory HOME.
var homePlaces = []string{"", ".cache", ".config", ".docker", ".kube", ".local", ".local/bin", ".local/share",
	".local/state", ".pulumi", ".ssh"}

// homeVariables name directories of which programs need some.
var homeVariables = []string{"PULUMI_HOME", "GOROOT"}

// temporaryPlaces are directories in which everybody may put files.
var temporaryPlaces = []string{"/tmp", "/var/tmp"}

// userHomes returns the home directories of this process's user that are none of the system's own.
func userHomes() []string {
	var homes []string
	if home, err := os.UserHomeDir(); err == nil {
		homes = append(homes, home)
	}
	if u, err := user.Current(); err == nil {
		homes = append(homes, u.HomeDir)
	}
	return slices.DeleteFunc(realPaths(homes), func(home string) bool {
		return slices.ContainsFunc(systemTrees, func(tree string) bool { return below(tree, home) }) ||
			slices.ContainsFunc(systemPlaces, func(place string) bool { return below(home, place) })
	})
}

// pulumiHome returns where this process's user has plugins.
func pulumiHome() string {
	if dir := os.Getenv("PULUMI_HOME"); dir != "" {
		return dir
	}
	home, _ := os.UserHomeDir()
	return filepath.Join(home, ".pulumi")
}

// pulumiParts are what programs need of the Pulumi home.
var pulumiParts = []string{"plugins", "bin"}

// tools returns the places of the programs that programs run, by the paths under which they are known: the executables
// of PATH and what was installed with them, plugins, and this binary, which is a language host.
func tools(homes []string) []string {
	var all []string
	for _, bin := range filepath.SplitList(os.Getenv("PATH")) {
		all = append(all, bin, installation(bin, homes))
	}
	for _, part := range pulumiParts {
		all = append(all, filepath.Join(pulumiHome(), part))
	}
	all = append(all, os.Getenv("GOROOT"), os.Getenv("SSL_CERT_FILE"))
	all = append(all, filepath.SplitList(os.Getenv("SSL_CERT_DIR"))...)
	if self, err := os.Executable(); err == nil {
		all = append(all, self)
	}
	return slices.DeleteFunc(all, func(path string) bool { return !filepath.IsAbs(path) })
}

// installation returns the directory of what was installed with the executables of a directory.
func installation(bin string, homes []string) string {
	dir := filepath.Dir(bin)
	above := func(home string) bool { return below(dir, home) }
	if slices.Contains([]string{"bin", "sbin", "shims"}, filepath.Base(bin)) && !slices.ContainsFunc(homes, above) {
		return dir
	}
	return bin
}

// neededPlaces returns the directories of which programs need something, by their real paths.
func neededPlaces(o Options, homes []string) []string {
	needed := append(slices.Clone(systemPlaces), os.TempDir())
	for _, file := range slices.Concat(systemFiles, tools(homes)) {
		if real, err := filepath.EvalSymlinks(file); err == nil {
			needed = append(needed, real, filepath.Dir(real))
		}
	}
	for _, variable := range homeVariables {
		needed = append(needed, os.Getenv(variable))
	}
	for _, home := range homes {
		if !o.OneUser {
			break
		}
		for _, place := range homePlaces {
			needed = append(needed, filepath.Join(home, place))
		}
	}
	return realPaths(append(needed, o.Shared...))
}

// needs reports whether programs need a directory, or one below it.
func (p *Policy) needs(dir string) bool {
	return slices.ContainsFunc(systemTrees, func(tree string) bool { return below(tree, dir) }) ||
		slices.ContainsFunc(p.needed, func(needed string) bool { return below(dir, needed) })
}

// runtimeDirs are where the daemons of this process's user have their sockets.
func runtimeDirs() []string {
	dirs := []string{"/run/user/" + strconv.Itoa(os.Geteuid())}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) {
		dirs = append(dirs, dir)
	}
	return dirs
}

// cacheVariables are variables that have tools write somewhere.
var cacheVariables = []string{"GOPATH", "GOCACHE", "GOMODCACHE", "npm_config_cache", "NPM_CONFIG_CACHE",
	"YARN_CACHE_FOLDER", "PIP_CACHE_DIR", "UV_CACHE_DIR", "POETRY_CACHE_DIR", "NUGET_PACKAGES", "GRADLE_USER_HOME"}

// withoutCaches drops the variables of an environment that have tools write where they cannot.
func (s seen) withoutCaches(env []string) []string {
	return slices.DeleteFunc(env, func(entry string) bool {
		name, value, _ := strings.Cut(entry, "=")
		return slices.Contains(cacheVariables, name) && filepath.IsAbs(value) && !s.writable(value)
	})
}
