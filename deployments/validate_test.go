package deployments_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

var dev = deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}

// asked is a request that is valid.
func asked() deployments.UpdateRequest {
	return deployments.UpdateRequest{
		Stack: dev, RequestID: "6f1c2a4e-0b1d-4c5f-8a37-1f2e3d4c5b6a", Kind: engine.KindUp, Bundle: "sha256:" +
			strings.Repeat("0a", 32),
		OnBusy: deployments.OnBusyQueue, Parallel: 16, Message: "first line\n\tsecond", Initiator: "ann@host",
		Config: map[string]deployments.ConfigValue{"aws:region": {Value: "x"},
			"shop:config:size": {Value: "\x00"}},
		Environment: []string{"PATH=/bin", "EMPTY=", "=C:=C:\\"},
		Targets:     []string{"urn:pulumi:dev::shop::a:b:C::name with spaces", "**bucket*"}, Replace: []string{"db"},
		Secrets: deployments.SecretsProvider{Type: deployments.SecretsPassphrase, Salt: "v1:a:b",
			Key: make([]byte, 32)},
	}
}

func TestARequestThatCanBeCarriedOutIsValid(t *testing.T) {
	if err := asked().Validate(); err != nil {
		t.Error(err)
	}
	for _, kind := range []engine.Kind{engine.KindUp, engine.KindRefresh, engine.KindDestroy} {
		r := deployments.UpdateRequest{Stack: dev, RequestID: "a-run_1-look", Kind: kind}
		if err := r.Validate(); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

// importing is a request of an import that is valid.
func importing() deployments.UpdateRequest {
	r := asked()
	r.Kind, r.Targets, r.Replace = engine.KindImport, nil, nil
	r.Imports = []deployments.Import{
		{Type: "app:x:Owner", Name: "owner", Component: true},
		{Type: "pulumi:providers:aws", Name: "own", Inputs: "{}"},
		{Type: "aws:s3:Bucket", Name: "site", ID: "b-1", Parent: "urn:pulumi:dev::shop::app:x:Owner::owner",
			Provider: "urn:pulumi:dev::shop::pulumi:providers:aws::own"},
	}
	r.Variables = map[string]string{"urn:pulumi:dev::shop::app:x:Owner::owner": "owner"}
	return r
}

func TestAnImportThatCannotBeMadeIsRejected(t *testing.T) {
	if err := importing().Validate(); err != nil {
		t.Error(err)
	}
	for name, spoil := range map[string]func(*deployments.UpdateRequest){
		"in an up":              func(r *deployments.UpdateRequest) { r.Kind = engine.KindUp },
		"with targets":          func(r *deployments.UpdateRequest) { r.Targets = []string{"a"} },
		"with a refresh":        func(r *deployments.UpdateRequest) { r.Refresh = true },
		"twice":                 func(r *deployments.UpdateRequest) { r.Imports = append(r.Imports, r.Imports[2]) },
		"without an id":         func(r *deployments.UpdateRequest) { r.Imports[2].ID = "" },
		"a component with one":  func(r *deployments.UpdateRequest) { r.Imports[0].ID = "x" },
		"a provider with one":   func(r *deployments.UpdateRequest) { r.Imports[1].ID = "x" },
		"a custom remote one":   func(r *deployments.UpdateRequest) { r.Imports[2].Remote = true },
		"without a name":        func(r *deployments.UpdateRequest) { r.Imports[2].Name = "" },
		"a type of one part":    func(r *deployments.UpdateRequest) { r.Imports[2].Type = "Bucket" },
		"below no URN":          func(r *deployments.UpdateRequest) { r.Imports[2].Parent = "owner" },
		"by no provider":        func(r *deployments.UpdateRequest) { r.Imports[2].Provider = r.Imports[2].Parent },
		"with inputs":           func(r *deployments.UpdateRequest) { r.Imports[2].Inputs = "{}" },
		"a variable of nothing": func(r *deployments.UpdateRequest) { r.Variables["x"] = "y" },
		"a name with an escape": func(r *deployments.UpdateRequest) { r.Imports[2].Name = "\x1b]0;x\a" },
	} {
		r := importing()
		spoil(&r)
		if err := r.Validate(); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARequestThatIsNotValidIsRejected(t *testing.T) {
	minus := -1
	for name, spoil := range map[string]func(*deployments.UpdateRequest){
		"no kind":                   func(r *deployments.UpdateRequest) { r.Kind = "" },
		"a kind of a newer client":  func(r *deployments.UpdateRequest) { r.Kind = "repair" },
		"an import of nothing":      func(r *deployments.UpdateRequest) { r.Kind = engine.KindImport },
		"a restore":                 func(r *deployments.UpdateRequest) { r.Kind = deployments.KindRestore },
		"a kind in capitals":        func(r *deployments.UpdateRequest) { r.Kind = "Up" },
		"no id":                     func(r *deployments.UpdateRequest) { r.RequestID = "" },
		"an id that climbs":         func(r *deployments.UpdateRequest) { r.RequestID = "x/../../../vic/updates/1" },
		"an id with a slash":        func(r *deployments.UpdateRequest) { r.RequestID = "a/b" },
		"an id with dots":           func(r *deployments.UpdateRequest) { r.RequestID = ".." },
		"an id with a NUL":          func(r *deployments.UpdateRequest) { r.RequestID = "a\x00" },
		"an id with a line break":   func(r *deployments.UpdateRequest) { r.RequestID = "a\n" },
		"a long id":                 func(r *deployments.UpdateRequest) { r.RequestID = strings.Repeat("a", 65) },
		"a stack that climbs":       func(r *deployments.UpdateRequest) { r.Stack.Stack = "../dev" },
		"no organization":           func(r *deployments.UpdateRequest) { r.Stack.Organization = "" },
		"a strange way to wait":     func(r *deployments.UpdateRequest) { r.OnBusy = "later" },
		"less than no steps":        func(r *deployments.UpdateRequest) { r.Parallel = -1 },
		"too many steps":            func(r *deployments.UpdateRequest) { r.Parallel = deployments.MaxParallel + 1 },
		"a negative version":        func(r *deployments.UpdateRequest) { r.BaseVersion = &minus },
		"a bundle that is a path":   func(r *deployments.UpdateRequest) { r.Bundle = "../" + r.Bundle },
		"a bundle of another hash":  func(r *deployments.UpdateRequest) { r.Bundle = "md5:00" },
		"a key without namespace":   func(r *deployments.UpdateRequest) { r.Config["region"] = deployments.ConfigValue{} },
		"a key with a space":        func(r *deployments.UpdateRequest) { r.Config["a b:c"] = deployments.ConfigValue{} },
		"a key that is an equation": func(r *deployments.UpdateRequest) { r.Config["shop:a=b"] = deployments.ConfigValue{} },
		"a long key": func(r *deployments.UpdateRequest) {
			r.Config["a:"+strings.Repeat("b", 256)] = deployments.ConfigValue{}
		},
		"a key of no encoding": func(r *deployments.UpdateRequest) { r.Config["a:\xff"] = deployments.ConfigValue{} },
		"a variable without value": func(r *deployments.UpdateRequest) {
			r.Environment = append(r.Environment,
				"NAME")
		},
		"a variable with a NUL": func(r *deployments.UpdateRequest) {
			r.Environment = append(r.Environment,
				"A=\x00")
		},
		"an empty target":         func(r *deployments.UpdateRequest) { r.Targets = append(r.Targets, "") },
		"a target with an escape": func(r *deployments.UpdateRequest) { r.Targets = append(r.Targets, "\x1b]0;x\a") },
		"a long target": func(r *deployments.UpdateRequest) {
			r.Replace = []string{
				strings.Repeat("x", 9<<10)}
		},
		"many targets": func(r *deployments.UpdateRequest) {
			r.Targets = make([]string,
				deployments.MaxTargets+1)
		},
		"an unknown provider":      func(r *deployments.UpdateRequest) { r.Secrets.Type = "vault" },
		"a short key":              func(r *deployments.UpdateRequest) { r.Secrets.Key = []byte("short") },
		"a message with an escape": func(r *deployments.UpdateRequest) { r.Message = "\x1b]0;PWNED\a" },
		"a long message":           func(r *deployments.UpdateRequest) { r.Message = strings.Repeat("x", 9<<10) },
		"a policy pack outside the bundle": func(r *deployments.UpdateRequest) {
			r.PolicyPacks = []deployments.PolicyPack{{Dir: "../pack"}}
		},
		"a policy pack's configuration that is no JSON": func(r *deployments.UpdateRequest) {
			r.PolicyPacks = []deployments.PolicyPack{{Dir: "pack", Config: "{"}}
		},
		"policy packs of a destroy": func(r *deployments.UpdateRequest) {
			r.Kind, r.PolicyPacks = engine.KindDestroy, []deployments.PolicyPack{{Dir: "pack"}}
		},
		"more than can travel": func(r *deployments.UpdateRequest) {
			r.Environment = []string{"A=" +
				strings.Repeat("x", 2<<20)}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := asked()
			spoil(&r)
			err := r.Validate()
			if deployments.CodeOf(err) != deployments.CodeInvalid {
				t.Fatalf("got %v", err)
			}
			if strings.ContainsAny(err.Error(), "\x00\x1b\n") || len(err.Error()) > 400 {
				t.Errorf("the message cannot be shown: %q", err)
			}
		})
	}
}

// TestALimitIsWhereItIsSaidToBe has the limits as numbers: one that is changed is noticed, here and in the check.
func TestALimitIsWhereItIsSaidToBe(t *testing.T) {
	text := func(n int) string { return strings.Repeat("a", n) }
	tags := func(n int) map[string]string {
		made := map[string]string{}
		for i := range n {
			made[fmt.Sprint(i)] = ""
		}
		return made
	}
	update := deployments.UpdateName{StackName: dev, Version: "1"}
	request := func(change func(*deployments.UpdateRequest)) error {
		r := asked()
		change(&r)
		return r.Validate()
	}
	for name, c := range map[string]struct {
		limit int
		check func(n int) error
	}{
		"a request id": {64, func(n int) error { return deployments.ValidateRequestID(text(n)) }},
		"a preview's name": {64, func(n int) error {
			return deployments.UpdateName{StackName: dev, Version: "p-" + text(n)}.Validate()
		}},
		"a configuration key": {256, func(n int) error { return deployments.ValidateConfigKey("a:" + text(n-2)) }},
		"configuration keys": {10_000, func(n int) error {
			return request(func(r *deployments.UpdateRequest) {
				for i := range n - len(r.Config) {
					r.Config["n:"+fmt.Sprint(i)] = deployments.ConfigValue{}
				}
			})
		}},
		"environment variables": {10_000, func(n int) error {
			return request(func(r *deployments.UpdateRequest) { r.Environment = slices.Repeat([]string{"A="}, n) })
		}},
		"targets": {10_000, func(n int) error {
			return request(func(r *deployments.UpdateRequest) { r.Targets = slices.Repeat([]string{"a"}, n) })
		}},
		"replacements": {10_000, func(n int) error {
			return request(func(r *deployments.UpdateRequest) { r.Replace = slices.Repeat([]string{"a"}, n) })
		}},
		"imports": {10_000, func(n int) error {
			return request(func(r *deployments.UpdateRequest) {
				r.Kind, r.Targets, r.Replace = engine.KindImport, nil, nil
				for i := range n {
					r.Imports = append(r.Imports, deployments.Import{Type: "a:b:C", Name: fmt.Sprint(i), ID: "x"})
				}
			})
		}},
		"policy packs": {50, func(n int) error {
			return request(func(r *deployments.UpdateRequest) {
				r.Bundle = "sha256:" + strings.Repeat("0", 64)
				r.PolicyPacks = slices.Repeat([]deployments.PolicyPack{{Dir: "a"}}, n)
			})
		}},
		"a target": {8 << 10, func(n int) error { return deployments.ValidateTarget(text(n)) }},
		"a message": {8 << 10, func(n int) error {
			return request(
				func(r *deployments.UpdateRequest) { r.Message = text(n) })
		}},
		"tags":  {100, func(n int) error { return deployments.ValidateTags(tags(n)) }},
		"a tag": {128, func(n int) error { return deployments.ValidateTags(map[string]string{text(n): ""}) }},
		"a tag's value": {1 << 10, func(n int) error {
			return deployments.ValidateTags(
				map[string]string{"a": text(n)})
		}},
		"an initiator": {256, func(n int) error { return deployments.ValidateInitiator(text(n)) }},
		"a key's URL": {4 << 10, func(n int) error {
			return deployments.SecretsProvider{URL: text(n)}.Validate()
		}},
		"an encrypted key": {16 << 10, func(n int) error {
			return deployments.SecretsProvider{EncryptedKey: text(n)}.Validate()
		}},
		"a salt": {1 << 10, func(n int) error { return deployments.SecretsProvider{Salt: text(n)}.Validate() }},
		"a resource's id": {64 << 10, func(n int) error {
			return deployments.ValidateResolution(update, "urn:pulumi:dev::shop::a:b:C::name", text(n))
		}},
		"values to encrypt":       {10_000, deployments.ValidateValues},
		"references of resources": {1_000_000, deployments.ValidateReferences},
		"a whole request": {3 << 19, func(n int) error {
			r := deployments.UpdateRequest{Stack: dev, RequestID: "r", Kind: engine.KindUp, Environment: []string{"A="}}
			empty, err := json.Marshal(r)
			r.Environment[0] += text(n - len(empty))
			return errors.Join(err, r.Validate())
		}},
	} {
		if err := c.check(c.limit); err != nil {
			t.Errorf("%s of %d: %v", name, c.limit, err)
		}
		if err := c.check(c.limit + 1); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s of %d: %v", name, c.limit+1, err)
		}
	}
}

func TestAnUpdateIsNamedByItsNumberOrAsAPreview(t *testing.T) {
	for version, valid := range map[string]bool{
		"1": true, "2147483646": true, "p-6f1c2a4e-0b1d-4c5f-8a37-1f2e3d4c5b6a": true, "p1": true,
		"": false, "0": false, "-1": false, "+1": false, "01": false, "2147483647": false, "99999999999": false,
		"1 ": false,
		"p":  false, "p-a/b": false, "p-..": false, "..": false, "removal": false, "p-a\n": false, "p-" +
			strings.Repeat("a", 65): false, "1/2": false,
	} {
		u := deployments.UpdateName{StackName: dev, Version: version}
		if err := u.Validate(); (err == nil) != valid {
			t.Errorf("%q: %v", version, err)
		}
	}
}

func TestAPreviewIsNamedAfterItsRequest(t *testing.T) {
	u := deployments.PreviewName(asked())
	if err := u.Validate(); err != nil || u.Number() != 0 {
		t.Errorf("%s: %v", u, err)
	}
}

func TestAManifestThatCannotBeUnpackedIsRefused(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	file := func(path string) deployments.File { return deployments.File{Path: path, Digest: digest} }
	good := deployments.Manifest{Files: []deployments.File{file("a"), file("a.b"), file("b/c"), file("b/d/e")},
		Dir: "b"}
	if err := good.Validate(); err != nil {
		t.Error(err)
	}
	for name, m := range map[string]deployments.Manifest{
		"a file that is a directory, too": {Files: []deployments.File{file("a"), file("a-b"), file("a/b/c")}},
		"a path that climbs":              {Files: []deployments.File{file("../a")}},
		"an absolute path":                {Files: []deployments.File{file("/a")}},
		"the directory itself":            {Files: []deployments.File{file(".")}},
		"a path with a NUL":               {Files: []deployments.File{file("a\x00")}},
		"a path twice":                    {Files: []deployments.File{file("a"), file("a")}},
		"another digest": {Files: []deployments.File{
			{Path: "a", Digest: "sha256:" + strings.Repeat("Z", 64)}}},
		"less than no bytes": {Files: []deployments.File{{Path: "a", Digest: digest, Size: -1}}},
		"a large file": {Files: []deployments.File{
			{Path: "a", Digest: digest, Size: deployments.MaxFile + 1}}},
		"many files":              {Files: make([]deployments.File, deployments.MaxFiles+1)},
		"a directory that climbs": {Dir: "../a"},
	} {
		if err := m.Validate(); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	var large deployments.Manifest
	for i := range 5 {
		large.Files = append(large.Files, deployments.File{Path: fmt.Sprint(i), Digest: digest,
			Size: deployments.MaxFile})
	}
	if err := large.Validate(); err == nil {
		t.Error("1.25 GiB are taken along")
	}
}

func TestATagOfDeployctlHasAValueOfUse(t *testing.T) {
	for value, valid := range map[string]bool{"queue": true, "fail": true, "supersede": false, "wrong": false, "": false} {
		err := deployments.ValidateTags(map[string]string{deployments.TagOnBusy: value, "owner": "wrong"})
		if (err == nil) != valid || err != nil && !strings.Contains(err.Error(), "the tag deployctl:on-busy takes queue") {
			t.Errorf("%q: %v", value, err)
		}
	}
}
