package s3_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers/s3"
	"github.com/deployctl/deployctl/providers/s3/s3test"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

type props = resource.PropertyMap

func str(s string) resource.PropertyValue { return resource.NewProperty(s) }

// engine plays an engine's part against the provider at an endpoint.
type engine struct {
	t *testing.T
	pulumirpc.ResourceProviderClient
}

func open(t *testing.T, endpoint string) engine {
	t.Helper()
	return openWith(t, s3.Config{Endpoint: endpoint, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey})
}

func openWith(t *testing.T, c s3.Config) engine {
	t.Helper()
	pkg := provider.Package{Name: "deployctl", Version: "0.0.1", Modules: []provider.Module{s3.Module(c)}}
	client, stop, err := provider.Client(provider.Server(pkg))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	if _, err := client.Configure(t.Context(), &pulumirpc.ConfigureRequest{Args: &structpb.Struct{}}); err != nil {
		t.Fatal(err)
	}
	return engine{t, client}
}

func wire(t *testing.T, m props) *structpb.Struct {
	t.Helper()
	s, err := plugin.MarshalProperties(m, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true,
		ComputeAssetHashes: true})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func unwire(t *testing.T, s *structpb.Struct) props {
	t.Helper()
	m, err := plugin.UnmarshalProperties(s, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func urnOf(stack, typ, name string) string {
	return "urn:pulumi:" + stack + "::web::deployctl:s3:" + typ + "::" + name
}

func (e engine) create(urn string, in props) (string, props, error) {
	resp, err := e.Create(e.t.Context(), &pulumirpc.CreateRequest{Urn: urn, Properties: wire(e.t, in)})
	if err != nil {
		return "", nil, err
	}
	return resp.GetId(), unwire(e.t, resp.GetProperties()), nil
}

func (e engine) mustCreate(urn string, in props) (string, props) {
	e.t.Helper()
	id, out, err := e.create(urn, in)
	if err != nil {
		e.t.Fatal(err)
	}
	return id, out
}

func (e engine) update(urn, id string, olds, out, news props) (props, error) {
	resp, err := e.Update(e.t.Context(), &pulumirpc.UpdateRequest{
		Urn: urn, Id: id, OldInputs: wire(e.t, olds), Olds: wire(e.t, out), News: wire(e.t, news)})
	if err != nil {
		return nil, err
	}
	return unwire(e.t, resp.GetProperties()), nil
}

func (e engine) remove(urn, id string, in, out props) error {
	_, err := e.Delete(e.t.Context(), &pulumirpc.DeleteRequest{Urn: urn, Id: id, OldInputs: wire(e.t, in),
		Properties: wire(e.t, out)})
	return err
}

func (e engine) ownership(urn, id string, in, out props) (string, *pulumirpc.ReadResponse) {
	e.t.Helper()
	var trailer metadata.MD
	req := &pulumirpc.ReadRequest{Urn: urn, Id: id}
	if in != nil {
		req.Inputs = wire(e.t, in)
	}
	if out != nil {
		req.Properties = wire(e.t, out)
	}
	resp, err := e.Read(e.t.Context(), req, grpc.Trailer(&trailer))
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.Join(trailer.Get(provider.OwnershipTrailer), ","), resp
}

func get(t *testing.T, url string) (int, string, http.Header) {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(body), resp.Header
}

func text(s string) resource.PropertyValue {
	a, err := asset.FromText(s)
	if err != nil {
		panic(err)
	}
	return resource.NewProperty(a)
}

func TestABucketIsFoundAgainByTheNextAttemptAndReadableByAnyoneWhenAsked(t *testing.T) {
	e := open(t, s3test.Endpoint)
	urn := urnOf("dev", "Bucket", "again")
	in := props{"name": str("again"), "publicRead": resource.NewProperty(true)}
	id, out := e.mustCreate(urn, in)
	if again, _ := e.mustCreate(urn, in); again != id {
		t.Errorf("the second attempt made %s, not %s", again, id)
	}
	e.mustCreate(urnOf("dev", "Object", "o"), props{"bucket": str("again"), "key": str("a b/ü.html"),
		"content": str("<p>hi")})
	objectURL := out["url"].StringValue() + "/a%20b/%C3%BC.html"
	if code, body, header := get(t, objectURL); code != 200 || body != "<p>hi" ||
		header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%s answers %d %q %q", objectURL, code, body, header.Get("Content-Type"))
	}
	private := props{"name": str("again")}
	if _, err := e.update(urn, id, in, out, private); err != nil {
		t.Fatal(err)
	}
	if code, _, _ := get(t, objectURL); code != http.StatusForbidden {
		t.Errorf("a private bucket answers %d", code)
	}
	if err := e.remove(urn, id, private, out); err == nil || !strings.Contains(err.Error(), "not empty") {
		t.Errorf("deleting a bucket with an object: %v", err)
	}
	out["forceDestroy"] = resource.NewProperty(true)
	for range 2 {
		if err := e.remove(urn, id, private, out); err != nil {
			t.Errorf("delete: %v", err)
		}
	}
}

func TestWhatBelongsToAnotherStackIsRefusedAndToAnotherResourceOfTheStackTakenOver(t *testing.T) {
	e := open(t, s3test.Endpoint)
	bucketURN, in := urnOf("dev", "Bucket", "mine"), props{"name": str("contested")}
	id, out := e.mustCreate(bucketURN, in)
	object := props{"bucket": str("contested"), "key": str("k"), "content": str("1")}
	objectURN := urnOf("dev", "Object", "mine")
	objectID, objectOut := e.mustCreate(objectURN, object)

	for _, urn := range []string{urnOf("prod", "Bucket", "mine"), urnOf("prod", "Object", "mine")} {
		inputs := in
		if strings.Contains(urn, "Object") {
			inputs = object
		}
		_, _, err := e.create(urn, inputs)
		if status.Code(err) != codes.AlreadyExists || !strings.Contains(err.Error(), "belongs to stack web/dev") {
			t.Errorf("%s: %v", urn, err)
		}
		if got, _ := e.ownership(urn, "", inputs, nil); got != "unowned" {
			t.Errorf("%s is %s", urn, got)
		}
	}

	renamed := urnOf("dev", "Object", "renamed")
	_, renamedOut := e.mustCreate(renamed, object)
	if err := e.remove(objectURN, objectID, object, objectOut); err != nil {
		t.Fatal(err)
	}
	if got, _ := e.ownership(renamed, objectID, object, renamedOut); got != "owned" {
		t.Errorf("after the old one was deleted, the new one is %s", got)
	}
	if err := e.remove(renamed, objectID, object, renamedOut); err != nil {
		t.Fatal(err)
	}
	if got, _ := e.ownership(renamed, "", object, nil); got != "absent" {
		t.Errorf("a deleted object is %s", got)
	}
	if err := e.remove(bucketURN, id, in, out); err != nil {
		t.Fatal(err)
	}
}

func TestWhatAnotherStackTookOverIsLeftAloneByUpdatesAndByADeleteAfterARefresh(t *testing.T) {
	e := open(t, s3test.Endpoint)
	cases := map[string]props{
		"Bucket": {"name": str("taken")},
		"Object": {"bucket": str("taken"), "key": str("k"), "content": str("1")},
	}
	for _, typ := range []string{"Bucket", "Object"} {
		in, ours, theirs := cases[typ], urnOf("dev", typ, "mine"), urnOf("prod", typ, "theirs")
		id, out := e.mustCreate(ours, in)

		_, imported := e.ownership(theirs, id, nil, nil)
		takenOut, err := e.update(theirs, id, in, unwire(t, imported.GetProperties()), in)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.update(ours, id, in, out, in); status.Code(err) != codes.AlreadyExists ||
			!strings.Contains(err.Error(), "belongs to stack web/prod") {
			t.Errorf("an update by the first stack: %v", err)
		}
		for range 2 {
			got, refreshed := e.ownership(ours, id, in, out)
			if got != "unowned" {
				t.Errorf("to the first stack, the %s is %s", typ, got)
			}
			out = unwire(t, refreshed.GetProperties())
		}
		if err := e.remove(ours, id, in, out); err != nil {
			t.Fatal(err)
		}
		if got, _ := e.ownership(theirs, id, in, takenOut); got != "owned" {
			t.Errorf("after the first stack's delete, the %s of the other is %s", typ, got)
		}
		takenOut["forceDestroy"] = resource.NewProperty(true)
		defer func() { _ = e.remove(theirs, id, in, takenOut) }()
	}
}

func TestWhatLostItsMarkIsMarkedAgainByTheNextUpdate(t *testing.T) {
	p := newProxy(t)
	e := open(t, p.URL)
	urn, in := urnOf("dev", "Bucket", "wiped"), props{"name": str("wiped")}
	id, out := e.mustCreate(urn, in)
	before := p.puts.Load()
	wiped := func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodGet || !r.URL.Query().Has("tagging") || p.puts.Load() > before {
			return false
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchTagSet</Code></Error>")
		return true
	}
	p.spoil.Store(&wiped)
	if _, err := e.update(urn, id, in, out, in); err != nil || p.puts.Load() == before {
		t.Errorf("it was written %d times: %v", p.puts.Load()-before, err)
	}
}

func TestWhatIsImportedIsDeletedWithTheMarkThatItHad(t *testing.T) {
	e := open(t, s3test.Endpoint)
	in := props{"name": str("imported")}
	id, _ := e.mustCreate(urnOf("dev", "Bucket", "first"), in)
	urn := urnOf("prod", "Bucket", "second")
	var out props
	for range 2 { // an import, then a refresh
		_, found := e.ownership(urn, id, in, out)
		out = unwire(t, found.GetProperties())
	}
	if err := e.remove(urn, id, in, out); err != nil {
		t.Fatal(err)
	}
	if got, _ := e.ownership(urn, id, in, out); got != "absent" {
		t.Errorf("the deleted bucket is %s", got)
	}
}

func TestWhatCarriesTheMarkOfItsNewNameIsOursThoughTheStateRemembersTheOldOne(t *testing.T) {
	e := open(t, s3test.Endpoint)
	in := props{"name": str("renamed")}
	was, now := urnOf("dev", "Bucket", "was"), urnOf("dev", "Bucket", "now")
	id, out := e.mustCreate(was, in)
	if _, err := e.update(now, id, in, out, in); err != nil { // and nobody hears of it
		t.Fatal(err)
	}
	if got, _ := e.ownership(now, id, in, out); got != "owned" {
		t.Errorf("under its new name it is %s", got)
	}
	if err := e.remove(now, id, in, out); err != nil {
		t.Fatal(err)
	}
	if got, _ := e.ownership(now, id, in, out); got != "absent" {
		t.Errorf("the deleted bucket is %s", got)
	}
}

func TestWhatMayNotBeLookedAtIsAnErrorWhereItIsKnownAndSomebodyElsesWhereItIsNot(t *testing.T) {
	p := newProxy(t)
	e := open(t, p.URL)
	forbid := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	}
	p.spoil.Store(&forbid)
	object := props{"bucket": str("walled"), "key": str("k"), "content": str("1")}
	for id, in := range map[string]props{"walled": {"name": str("walled")}, "walled/k": object} {
		typ := "Bucket"
		if in.HasValue("key") {
			typ = "Object"
		}
		resp, err := e.Read(t.Context(), &pulumirpc.ReadRequest{Urn: urnOf("dev", typ, "walled"), Id: id,
			Inputs: wire(t, in), Properties: wire(t, in)})
		if err == nil || !strings.Contains(err.Error(), "StatusCode: 403") {
			t.Errorf("the %s that is known reads as %v, %v", typ, resp, err)
		}
		if _, err := e.update(urnOf("dev", typ, "walled"), id, in, in, in); status.Code(err) != codes.Unknown {
			t.Errorf("an update of the %s that is known: %v", typ, err)
		}
	}
	if got, _ := e.ownership(urnOf("dev", "Bucket", "walled"), "", props{"name": str("walled")},
		nil); got != "unowned" {
		t.Errorf("the bucket that is not known is %s", got)
	}
}

func TestAStackThatIsCalledLikeAnotherTakesNothingOfItsAndKeepsItsOwnUnderANewName(t *testing.T) {
	of := func(stack string) engine {
		t.Setenv(provider.StackVariable, stack)
		return open(t, s3test.Endpoint)
	}
	one, two, nameless := of("one"), of("two"), of("")
	bucketURN, bucket := urnOf("dev", "Bucket", "b"), props{"name": str("namesakes")}
	objectURN, object := urnOf("dev", "Object", "o"), props{"bucket": str("namesakes"), "key": str("k"),
		"content": str("1")}
	bucketID, bucketOut := one.mustCreate(bucketURN, bucket)
	objectID, objectOut := one.mustCreate(objectURN, object)
	one.mustCreate(bucketURN, bucket)
	one.mustCreate(objectURN, object)

	for urn, in := range map[string]props{bucketURN: bucket, objectURN: object} {
		for name, other := range map[string]engine{"two": two, "without an id": nameless} {
			_, _, err := other.create(urn, in)
			if status.Code(err) != codes.AlreadyExists || !strings.Contains(err.Error(), "belongs to stack web/dev;") {
				t.Errorf("stack %s, %s: %v", name, urn, err)
			}
			if got, _ := other.ownership(urn, "", in, nil); got != "unowned" {
				t.Errorf("to stack %s, %s is %s", name, urn, got)
			}
		}
	}

	// what its state says once the stack is called so
	bucketURN, objectURN = urnOf("prod", "Bucket", "b"), urnOf("prod", "Object", "o")
	if got, _ := one.ownership(bucketURN, bucketID, bucket, bucketOut); got != "owned" {
		t.Errorf("in the renamed stack the bucket is %s", got)
	}
	if got, _ := one.ownership(objectURN, objectID, object, objectOut); got != "owned" {
		t.Errorf("in the renamed stack the object is %s", got)
	}
	taken, takenOut := one.mustCreate(urnOf("prod", "Object", "other"), object)
	if err := one.remove(urnOf("prod", "Object", "other"), taken, object, takenOut); err != nil {
		t.Error(err)
	}
	if err := one.remove(bucketURN, bucketID, bucket, bucketOut); err != nil {
		t.Error(err)
	}
	if got, _ := one.ownership(bucketURN, "", bucket, nil); got != "absent" {
		t.Errorf("the bucket is %s after it was deleted", got)
	}
}

func TestReadReportsWhatWasChangedFromOutside(t *testing.T) {
	e := open(t, s3test.Endpoint)
	bucketURN, bucket := urnOf("dev", "Bucket", "drift"), props{"name": str("drift"),
		"publicRead": resource.NewProperty(true)}
	_, bucketOut := e.mustCreate(bucketURN, bucket)
	urn, in := urnOf("dev", "Object", "drift"), props{"bucket": str("drift"), "key": str("k.txt"),
		"source": text("one")}
	id, out := e.mustCreate(urn, in)
	if _, resp := e.ownership(urn, id, in, out); !unwire(t, resp.GetInputs()).DeepEquals(unwire(t, wire(t, in))) {
		t.Errorf("unchanged, it reads %v", resp.GetInputs())
	}

	// The other one is an update with another content that our state does not know of.
	if _, err := e.update(urn, id, in, out, props{"bucket": str("drift"), "key": str("k.txt"),
		"source": text("two")}); err != nil {
		t.Fatal(err)
	}
	_, resp := e.ownership(urn, id, in, out)
	seen := unwire(t, resp.GetInputs())
	if _, has := seen["source"]; has {
		t.Errorf("changed content reads as %v", seen)
	}
	if _, err := e.update(urn, id, seen, unwire(t, resp.GetProperties()), in); err != nil {
		t.Fatal(err)
	}
	if _, body, _ := get(t, out["url"].StringValue()); body != "one" {
		t.Errorf("after the repair it holds %q", body)
	}

	other := bucket.Copy()
	other["publicRead"] = resource.NewProperty(false)
	if _, err := e.update(bucketURN, "drift", bucket, bucketOut, other); err != nil {
		t.Fatal(err)
	}
	if _, resp := e.ownership(bucketURN, "drift", bucket, bucketOut); unwire(t,
		resp.GetInputs())["publicRead"].IsBool() {
		t.Errorf("a policy that was removed reads as %v", resp.GetInputs())
	}
}

// proxy is between the provider and the server, and spoils answers.
type proxy struct {
	*httptest.Server
	puts  atomic.Int64
	spoil atomic.Pointer[func(http.ResponseWriter, *http.Request, http.Handler) bool]
}

func newProxy(t *testing.T) *proxy {
	target, err := url.Parse(s3test.Endpoint)
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{}
	forward := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(target)
		r.Out.Host = r.In.Host // it is signed
	}}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut {
			p.puts.Add(1)
		}
		if spoil := p.spoil.Load(); spoil == nil || !(*spoil)(w, r, forward) {
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(p.Close)
	return p
}

func TestAnObjectThatIsThereAsDeclaredIsNotWrittenAgain(t *testing.T) {
	p := newProxy(t)
	e := open(t, p.URL)
	e.mustCreate(urnOf("dev", "Bucket", "same"), props{"name": str("same")})
	urn, in := urnOf("dev", "Object", "same"), props{"bucket": str("same"), "key": str("k"), "source": text("same")}
	id, out := e.mustCreate(urn, in)
	before := p.puts.Load()
	e.mustCreate(urn, in)
	if _, err := e.update(urn, id, in, out, in); err != nil {
		t.Fatal(err)
	}
	if wrote := p.puts.Load() - before; wrote != 0 {
		t.Errorf("it was written %d times", wrote)
	}
	typed := in.Copy()
	typed["contentType"] = str("text/x-other")
	if _, err := e.update(urn, id, in, out, typed); err != nil || p.puts.Load() == before {
		t.Errorf("another media type was not written: %v", err)
	}
}

// Under ignoreChanges an asset stays declared whose file is gone.
func TestAnObjectWhoseFileIsGoneKeepsItsContentWhileTheRestChanges(t *testing.T) {
	e := open(t, s3test.Endpoint)
	e.mustCreate(urnOf("dev", "Bucket", "ignored"), props{"name": str("filegone")})
	path := filepath.Join(t.TempDir(), "a.bin")
	if err := os.WriteFile(path, []byte("kept"), 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := asset.FromPath(path)
	if err != nil {
		t.Fatal(err)
	}
	urn, in := urnOf("dev", "Object", "ignored"), props{"bucket": str("filegone"), "key": str("k"),
		"source": resource.NewProperty(file), "cacheControl": str("max-age=60")}
	id, out := e.mustCreate(urn, in)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	changed := in.Copy()
	changed["cacheControl"] = str("no-store")
	after, err := e.update(urn, id, in, out, changed)
	if err != nil {
		t.Fatal(err)
	}
	if after["sha256"] != out["sha256"] || after["contentType"] != out["contentType"] ||
		after["cacheControl"].StringValue() != "no-store" {
		t.Errorf("%v has become %v", out, after)
	}
	e.reads(urn, id, changed, after)
	if _, err := e.update(urn, id, changed, after, in); err != nil { // the headers of before
		t.Fatal(err)
	}

	other := in.Copy()
	other["key"] = str("other") // a new object has nothing to keep
	if _, _, err := e.create(urnOf("dev", "Object", "new"), other); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("an object without content was made: %v", err)
	}
}

func TestALostAnswerIsUnknownAndTheNextAttemptGoesOn(t *testing.T) {
	p := newProxy(t)
	e := open(t, p.URL)
	lose := func(w http.ResponseWriter, r *http.Request, forward http.Handler) bool {
		if r.Method != http.MethodPut {
			return false
		}
		forward.ServeHTTP(httptest.NewRecorder(), r) // the effect
		connection, _, err := w.(http.Hijacker).Hijack()
		if err == nil {
			_ = connection.Close() // and no answer
		}
		return true
	}
	p.spoil.Store(&lose)
	urn, in := urnOf("dev", "Bucket", "lost"), props{"name": str("lost-bucket")}
	object, objectIn := urnOf("dev", "Object", "lost"), props{"bucket": str("lost-bucket"), "key": str("k"),
		"content": str("x")}
	if _, _, err := e.create(urn, in); status.Code(err) != codes.Unavailable {
		t.Errorf("a lost create of a bucket is %v", err)
	}
	if _, _, err := e.create(object, objectIn); status.Code(err) != codes.Unavailable {
		t.Errorf("a lost create of an object is %v", err)
	}
	p.spoil.Store(nil)
	e.mustCreate(urn, in)
	before := p.puts.Load()
	e.mustCreate(object, objectIn)
	if p.puts.Load() != before {
		t.Error("the object was written a second time")
	}
	if err := e.remove(urn, "lost-bucket", in, props{"name": str("lost-bucket"),
		"forceDestroy": resource.NewProperty(true)}); err != nil {
		t.Error(err)
	}
}

func TestALostAnswerIsUnknownThoughNobodyListensAfterIt(t *testing.T) {
	e := open(t, s3test.Endpoint)
	e.mustCreate(urnOf("dev", "Bucket", "last"), props{"name": str("last-bucket")})
	for typ, in := range map[string]props{
		"Bucket": {"name": str("last-words")},
		"Object": {"bucket": str("last-bucket"), "key": str("k"), "content": str("x")},
	} {
		p := newProxy(t)
		loseAll := func(_ http.ResponseWriter, r *http.Request, forward http.Handler) bool {
			if r.Method != http.MethodPut {
				return false
			}
			forward.ServeHTTP(httptest.NewRecorder(), r) // the effect
			_ = p.Listener.Close()
			panic(http.ErrAbortHandler) // and no answer
		}
		p.spoil.Store(&loseAll)
		if _, _, err := open(t, p.URL).create(urnOf("dev", typ, "last"),
			in); status.Code(err) != codes.Unavailable {
			t.Errorf("the create of the %s is %v", typ, err)
		}
		id, out := e.mustCreate(urnOf("dev", typ, "last"), in)
		if err := e.remove(urnOf("dev", typ, "last"), id, in, out); err != nil {
			t.Error(err)
		}
	}
}

func TestABriefRefusalIsTriedAgainAtOnce(t *testing.T) {
	p := newProxy(t)
	var refusals atomic.Int64
	busyOnce := func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if r.Method != http.MethodPut || refusals.Add(1) > 1 {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	p.spoil.Store(&busyOnce)
	open(t, p.URL).mustCreate(urnOf("dev", "Bucket", "brief"), props{"name": str("brief")})
}

func TestAServerThatIsBusyOrNotThereHasDoneNothing(t *testing.T) {
	p := newProxy(t)
	e := open(t, p.URL)
	busy := func(w http.ResponseWriter, _ *http.Request, _ http.Handler) bool {
		w.Header().Set("Retry-After", "7")
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	p.spoil.Store(&busy)
	_, _, err := e.create(urnOf("dev", "Bucket", "busy"), props{"name": str("busy")})
	if s := status.Convert(err); s.Code() != codes.ResourceExhausted || len(s.Details()) != 1 {
		t.Errorf("a busy server: %v", err)
	}
	p.Close()
	if _, _, err := e.create(urnOf("dev", "Bucket", "busy"), props{"name": str("busy")}); status.Code(
		err) != codes.ResourceExhausted {
		t.Errorf("a server that is not there: %v", err)
	}
}

func TestABucketWhoseRestIsTurnedAwayExists(t *testing.T) {
	p := newProxy(t)
	e := open(t, p.URL)
	busy := func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !r.URL.Query().Has("policy") {
			return false
		}
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	}
	p.spoil.Store(&busy)
	urn, in := urnOf("dev", "Bucket", "half"), props{"name": str("half-bucket")}
	_, _, err := e.create(urn, in)
	details := status.Convert(err).Details()
	if len(details) != 1 {
		t.Fatalf("the create is %v", err)
	}
	half, ok := details[0].(*pulumirpc.ErrorResourceInitFailed)
	if !ok || half.GetId() != "half-bucket" {
		t.Fatalf("the create is %v with %v", err, details[0])
	}
	out := unwire(t, half.GetProperties())
	if _, err := e.update(urn, half.GetId(), in, out, in); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("an update is %v", err)
	}
	p.spoil.Store(nil)
	if _, err := e.update(urn, half.GetId(), in, out, in); err != nil {
		t.Error(err)
	}
}

func TestCredentialsForOneEndpointNeverReachAnother(t *testing.T) {
	var seen atomic.Value
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen.Store(r.Header.Get("Authorization"))
		w.WriteHeader(http.StatusForbidden)
	}))
	defer other.Close()
	e := open(t, s3test.Endpoint)
	_, err := e.Configure(t.Context(), &pulumirpc.ConfigureRequest{Args: wire(t, props{"s3Endpoint": str(other.URL)})})
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := e.create(urnOf("dev", "Bucket", "x"), props{"name": str("elsewhere")}); err == nil {
		t.Error("it succeeded without credentials")
	}
	if auth, _ := seen.Load().(string); strings.Contains(auth, s3test.AccessKey) {
		t.Errorf("the other endpoint saw %q", auth)
	}
}

func TestBadInputsAreAllReported(t *testing.T) {
	e := open(t, s3test.Endpoint)
	resp, err := e.Check(context.Background(), &pulumirpc.CheckRequest{Urn: urnOf("dev", "Object", "x"),
		News: wire(t, props{"key": str("/k"), "contnet": str("x")})})
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, f := range resp.GetFailures() {
		failed = append(failed, f.GetProperty())
	}
	slices.Sort(failed)
	if want := []string{"bucket", "contnet", "key", "source"}; !slices.Equal(failed, want) {
		t.Errorf("failures %v, want %v", failed, want)
	}
}

// list returns what the provider lists of a type, and the error at the end.
func (e engine) list(typ string) (ids []string, err error) {
	e.t.Helper()
	stream, err := e.List(e.t.Context(), &pulumirpc.ListRequest{Token: "deployctl:s3:" + typ})
	for err == nil {
		var item *pulumirpc.ListResponse
		if item, err = stream.Recv(); err == nil {
			ids = append(ids, item.GetResult().GetId())
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return ids, err
}

func TestAListHasWhatBearsTheMarkOfTheStack(t *testing.T) {
	p := newProxy(t)
	e := map[string]engine{}
	for _, stack := range []string{"listed-one", "listed-two", ""} {
		t.Setenv(provider.StackVariable, stack)
		e[stack] = open(t, p.URL)
		e[stack].mustCreate(urnOf("dev", "Bucket", "b"), props{"name": str("of-" + stack + "-x")})
	}
	if ids, err := e["listed-one"].list("Bucket"); err != nil || !slices.Equal(ids, []string{"of-listed-one-x"}) {
		t.Errorf("%q %v", ids, err)
	}
	if ids, err := e[""].list("Bucket"); err != nil || len(ids) != 0 {
		t.Errorf("whose stack is not known lists %q %v", ids, err)
	}
	if _, err := e["listed-one"].list("Object"); status.Code(err) != codes.Unimplemented {
		t.Errorf("objects are listed: %v", err)
	}
	closed := func(w http.ResponseWriter, r *http.Request, _ http.Handler) bool {
		if !r.URL.Query().Has("tagging") || !strings.Contains(r.URL.Path, "listed-two") {
			return false
		}
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, "<Error><Code>AccessDenied</Code></Error>")
		return true
	}
	p.spoil.Store(&closed)
	if ids, err := e["listed-one"].list("Bucket"); err == nil || !strings.Contains(err.Error(), "tags of 1 of ") ||
		!slices.Equal(ids, []string{"of-listed-one-x"}) {
		t.Errorf("a list that is not whole: %q %v", ids, err)
	}
}
