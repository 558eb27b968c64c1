package worker

import (
	"context"
	"crypto/md5"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// whole is a Temporal server of a version, with search attributes, which may be added to, or not.
type whole struct {
	frontend
	operatorservice.UnimplementedOperatorServiceServer
	version string
	guarded bool // attributes are made by administrators
	updates []string
	queue   string // of the updates
	// withdrawn are those that did not succeed.
	withdrawn []string
	own       bool // there are some on each queue that is asked for, too, though not the latest

	mu         sync.Mutex
	attributes map[string]enums.IndexedValueType
}

func keywords(names ...string) map[string]enums.IndexedValueType {
	all := map[string]enums.IndexedValueType{}
	for _, name := range names {
		all[name] = enums.INDEXED_VALUE_TYPE_KEYWORD
	}
	return all
}

func (w *whole) GetSystemInfo(
	context.Context, *workflowservice.GetSystemInfoRequest,
) (*workflowservice.GetSystemInfoResponse, error) {
	return &workflowservice.GetSystemInfoResponse{ServerVersion: w.version}, nil
}

func (w *whole) ListSearchAttributes(
	context.Context, *operatorservice.ListSearchAttributesRequest,
) (*operatorservice.ListSearchAttributesResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.guarded {
		return nil, serviceerror.ToStatus(serviceerror.NewPermissionDenied("Request unauthorized.", "")).Err()
	}
	return &operatorservice.ListSearchAttributesResponse{CustomAttributes: w.attributes}, nil
}

func (w *whole) AddSearchAttributes(
	_ context.Context, r *operatorservice.AddSearchAttributesRequest,
) (*operatorservice.AddSearchAttributesResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, kind := range r.SearchAttributes {
		w.attributes[name] = kind
	}
	return &operatorservice.AddSearchAttributesResponse{}, nil
}

func (w *whole) CountWorkflowExecutions(
	_ context.Context, r *workflowservice.CountWorkflowExecutionsRequest,
) (*workflowservice.CountWorkflowExecutionsResponse, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name, _, _ := strings.Cut(r.Query, " ")
	if _, ok := w.attributes[name]; !ok {
		return nil, serviceerror.ToStatus(serviceerror.NewInvalidArgument("invalid search attribute: " + name)).Err()
	}
	return &workflowservice.CountWorkflowExecutionsResponse{}, nil
}

func (w *whole) ListWorkflowExecutions(
	_ context.Context, r *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	answer := &workflowservice.ListWorkflowExecutionsResponse{}
	if _, queue, found := strings.Cut(r.GetQuery(), "TaskQueue STARTS_WITH '"); found && w.own {
		answer.Executions = append(answer.Executions, &workflow.WorkflowExecutionInfo{
			Execution: &common.WorkflowExecution{WorkflowId: "stack/o/p/own"}, TaskQueue: strings.Trim(queue, "'"),
		})
	}
	updates := w.updates
	if !strings.Contains(r.GetQuery(), "ExecutionStatus = 'Completed'") {
		updates = append(updates, w.withdrawn...)
	}
	for _, id := range updates {
		answer.Executions = append(answer.Executions, &workflow.WorkflowExecutionInfo{
			Execution: &common.WorkflowExecution{WorkflowId: id}, TaskQueue: w.queue,
		})
	}
	return answer, nil
}

func (w *whole) serve(t *testing.T) (address string) {
	t.Helper()
	listener := listen(t)
	server := grpc.NewServer()
	workflowservice.RegisterWorkflowServiceServer(server, w)
	operatorservice.RegisterOperatorServiceServer(server, w)
	t.Cleanup(server.Stop)
	go func() { _ = server.Serve(listener) }() // until it is stopped
	return listener.Addr().String()
}

// objectServer is as much of an S3 server as is asked at a start. Its clock may be wrong, and it may ignore conditions.
type objectServer struct {
	ahead    time.Duration
	careless bool

	mu      sync.Mutex
	objects map[string][]byte
}

func (s *objectServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Date", time.Now().Add(s.ahead).UTC().Format(http.TimeFormat))
	have, there := s.objects[r.URL.Path]
	tag := func(data []byte) string { return fmt.Sprintf(`"%x"`, md5.Sum(data)) }
	switch {
	case r.URL.Query().Has("list-type"):
		prefix, listed := r.URL.Query().Get("prefix"), ""
		for path := range s.objects {
			if key := strings.TrimPrefix(path, "/b/"); strings.HasPrefix(key, prefix) {
				listed += "<Contents><Key>" + key + "</Key></Contents>"
			}
		}
		_, _ = w.Write([]byte("<ListBucketResult>" + listed + "</ListBucketResult>"))
	case r.Method == http.MethodPut:
		absent, match := r.Header.Get("If-None-Match") != "", r.Header.Get("If-Match")
		if !s.careless && (absent && there || match != "" && (!there || match != tag(have))) {
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = w.Write([]byte("<Error><Code>PreconditionFailed</Code></Error>"))
			return
		}
		s.objects[r.URL.Path], _ = io.ReadAll(r.Body)
		w.Header().Set("ETag", tag(s.objects[r.URL.Path]))
	case !there:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte("<Error><Code>NoSuchKey</Code></Error>"))
	default:
		w.Header().Set("ETag", tag(have))
		_, _ = w.Write(have)
	}
}

func (s *objectServer) serve(t *testing.T) bucket.S3Options {
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return bucket.S3Options{Endpoint: server.URL, Region: "us-east-1", Bucket: "b", AccessKey: "a", SecretKey: "s"}
}

func TestAStartExaminesTemporalAndTheBucket(t *testing.T) {
	all := func() *whole { return &whole{version: "1.30.0", attributes: keywords(deployments.SearchAttributes...)} }
	for _, c := range []struct {
		name     string
		temporal func(*whole)
		objects  func(*objectServer)
		what     string   // the only thing that is wrong
		says     []string // of it
		goesOn   bool
	}{
		{name: "everything is whole", temporal: func(w *whole) {
			w.updates = []string{"update/o/p/gone/7",
				"update/o/p/s/p-x", "?"}
			w.withdrawn = []string{"update/o/p/s/8"}
		}, goesOn: true},
		{name: "a cluster of somebody's own build", temporal: func(w *whole) { w.version = "ours" }, goesOn: true},
		{name: "an old cluster", temporal: func(w *whole) { w.version = "1.9.2" }, what: "Temporal",
			says: []string{"version 1.9.2", "too old", "1.28"}},
		{name: "missing attributes that may be made", temporal: func(w *whole) { w.attributes = keywords("Org") },
			goesOn: true},
		{name: "missing attributes that somebody else makes", temporal: func(w *whole) {
			w.attributes,
				w.guarded = keywords("Org", "Kind"), true
		}, what: "search attributes",
			says: []string{"lacks the search attributes Project, Stack, Result, Initiator, Drift;",
				"temporal operator search-attribute create --address",
				"--name Project --type Keyword", "tcld namespace search-attributes add --namespace ours " +
					"--search-attribute Project=Keyword"}},
		{name: "attributes that cannot be listed and are all there", temporal: func(w *whole) { w.guarded = true },
			goesOn: true},
		{name: "an attribute of another kind",
			temporal: func(w *whole) { w.attributes["Kind"] = enums.INDEXED_VALUE_TYPE_TEXT },
			what:     "search attributes",
			says:     []string{"the search attribute Kind", "must be a Keyword"}},
		{name: "a bucket that ignores conditions", objects: func(s *objectServer) { s.careless = true },
			what: "conditional writes",
			says: []string{"If-None-Match", "conditional writes"}},
		{name: "a clock that is behind", objects: func(s *objectServer) { s.ahead = 40 * time.Second }, what: "clocks",
			says: []string{"behind", "NTP"}, goesOn: true},
		{name: "a clock that is ahead", objects: func(s *objectServer) { s.ahead = -time.Hour }, what: "clocks",
			says: []string{"ahead of", "NTP"}, goesOn: true},
		{name: "a clock that is a little ahead", objects: func(s *objectServer) { s.ahead = -20 * time.Second },
			goesOn: true},
		{name: "a bucket from an older backup", temporal: func(w *whole) { w.updates = []string{"update/o/p/s/8"} },
			what: "age of the bucket",
			says: []string{"o/p/s (Temporal has its update 8)", "backup", "deployctl refresh"}, goesOn: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cluster, objects := all(), &objectServer{objects: map[string][]byte{}}
			if c.temporal != nil {
				c.temporal(cluster)
			}
			if c.objects != nil {
				c.objects(objects)
			}
			config := Temporal{Address: cluster.serve(t), Namespace: "ours"}.config(objects.serve(t), ample)
			store, err := OpenStore(t.Context(), config)
			must(t, err)
			cluster.queue = store.Organizations.SharedTaskQueue()
			must(t, store.CreateStack(t.Context(), deployments.StackName{Organization: "o", Project: "p", Stack: "s"},
				nil))
			connection, found := Examine(t.Context(), config)
			if connection != nil {
				connection.Close()
			}
			if (connection != nil) != c.goesOn || (Fatal(found) == nil) != c.goesOn {
				t.Errorf("it starts: %t; %v", connection != nil, Fatal(found))
			}
			for _, f := range found {
				if (f.Err != nil) != (f.What == c.what) {
					t.Errorf("%s: %v", f.What, f.Err)
				}
				for _, says := range c.says {
					if f.What == c.what && !strings.Contains(fmt.Sprint(f.Err), says) {
						t.Errorf("%s: %v does not say %q", f.What, f.Err, says)
					}
				}
			}
			if !slices.ContainsFunc(found, func(f Finding) bool { return f.What == "age of the bucket" }) {
				t.Errorf("it looks at %v", found)
			}
		})
	}
}

func TestEveryUnreachablePartIsNamed(t *testing.T) {
	gone := func() net.Addr {
		l := listen(t)
		defer func() { must(t, l.Close()) }()
		return l.Addr()
	}
	config := Temporal{Address: gone().String(), Namespace: "ours"}.config(bucket.S3Options{
		Endpoint: "http://" + gone().String(), Region: "us-east-1", Bucket: "b", AccessKey: "a", SecretKey: "s",
	}, time.Second)
	unanswered := Temporal{Address: gone().String(), Namespace: "ours"}.config(
		(&objectServer{objects: map[string][]byte{}}).serve(t), ample)
	unanswered.Patience = time.Second
	_, err := OpenStore(t.Context(), unanswered)
	must(t, err)
	for _, c := range []struct {
		config Config
		failed []string
	}{{config, []string{"bucket", "Temporal"}}, {unanswered, []string{"Temporal"}}} {
		connection, found := Examine(t.Context(), c.config)
		var whats, failed []string
		for _, f := range found {
			whats = append(whats, f.What)
			if f.Err == nil {
				continue
			}
			failed = append(failed, f.What)
			if deployments.CodeOf(f.Err) != deployments.CodeUnavailable {
				t.Errorf("%s: %v", f.What, f.Err)
			}
		}
		want := append([]string{"bucket", "conditional writes", "clocks", "Temporal"}, ofTemporal...)
		if connection != nil || !slices.Equal(whats, want) || !slices.Equal(failed, c.failed) {
			t.Errorf("it looks at %q, of which %q is wrong", whats, failed)
		}
	}
}
