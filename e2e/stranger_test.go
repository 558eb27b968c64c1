//go:build linux

package e2e

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	refusal "google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// strangerTask, in the environment of this test's binary, makes it another user's program that tries to get in.
const strangerTask = "DEPLOYCTL_E2E_STRANGER"

// task is what a stranger tries: every address in every way, and every file; or where it listens.
type task struct{ Addresses, Files, Listen []string }

func init() {
	if text := os.Getenv(strangerTask); text != "" {
		var todo task
		if err := json.Unmarshal([]byte(text), &todo); err != nil {
			panic(err)
		}
		if todo.try(); todo.Listen != nil {
			todo.listen()
		}
		os.Exit(0)
	}
}

// as runs the task as another user, and gives what that one got, a line each.
func (todo task) as(t *testing.T, uid uint32) []string {
	t.Helper()
	text, err := json.Marshal(todo)
	must(t, err)
	self, err := os.Open("/proc/self/exe")
	must(t, err)
	defer func() { _ = self.Close() }()
	cmd := exec.Command("/proc/self/fd/3") // where the binary is, others may not go
	cmd.ExtraFiles = []*os.File{self}
	cmd.Env, cmd.Dir, cmd.Stderr = []string{strangerTask + "=" + string(text)}, "/", os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.Output()
	must(t, err)
	return slices.DeleteFunc(strings.Split(string(out), "\n"), func(line string) bool { return line == "" })
}

func (todo task) try() {
	for _, path := range todo.Files {
		if _, err := os.ReadFile(path); err == nil {
			fmt.Println(path, "is readable")
		}
	}
	for _, address := range todo.Addresses {
		stay(address)
		for how, security := range map[string]credentials.TransportCredentials{
			"in clear": insecure.NewCredentials(), "without a certificate": credentials.NewTLS(
				&tls.Config{InsecureSkipVerify: true}),
			"with a certificate of its own": credentials.NewTLS(&tls.Config{InsecureSkipVerify: true,
				Certificates: []tls.Certificate{ownCertificate()}}),
		} {
			call(address, how, security)
		}
		for _, path := range []string{"/", "/api/v1/namespaces", "/api/v1/settings", "/metrics",
			"/deployctl?list-type=2", "/codec/decode", "/open"} {
			get(address, path)
		}
	}
}

// stay connects and says nothing, and tells if it is not hung up on.
func stay(address string) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(waittest.Patience))
	if n, err := conn.Read(make([]byte, 1)); n > 0 || errors.Is(err, os.ErrDeadlineExceeded) {
		fmt.Println(address, "keeps a connection")
	}
}

// call calls what servers of this service and of its parts have, and tells which answered other than by a refusal.
func call(address, how string, security credentials.TransportCredentials) {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(security))
	if err != nil {
		panic(err)
	}
	defer func() { _ = conn.Close() }()
	for _, method := range []string{
		"/temporal.api.workflowservice.v1.WorkflowService/GetSystemInfo",
		"/temporal.api.workflowservice.v1.WorkflowService/ListNamespaces",
		"/temporal.api.workflowservice.v1.WorkflowService/StartWorkflowExecution",
		"/temporal.api.workflowservice.v1.WorkflowService/TerminateWorkflowExecution",
		"/temporal.api.workflowservice.v1.WorkflowService/SignalWorkflowExecution",
		"/temporal.api.operatorservice.v1.OperatorService/ListSearchAttributes",
		"/temporal.server.api.adminservice.v1.AdminService/DescribeCluster",
		"/temporal.server.api.historyservice.v1.HistoryService/DescribeHistoryHost",
		"/temporal.server.api.matchingservice.v1.MatchingService/ListTaskQueuePartitions",
		"/deployctl.v1.Deployments/ListStacks",
		"/pulumirpc.ResourceMonitor/GetDeploymentInfo", "/pulumirpc.Engine/GetRootResource",
		"/pulumirpc.LanguageRuntime/GetPluginInfo",
		"/pulumirpc.ResourceProvider/GetPluginInfo", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
		"/nobody.Knows/This",
	} {
		ctx, cancel := context.WithTimeout(context.Background(), waittest.Patience)
		err := conn.Invoke(ctx, method, &emptypb.Empty{}, &emptypb.Empty{})
		cancel()
		switch code := refusal.Code(err); code {
		case codes.Unauthenticated, codes.PermissionDenied:
		case codes.Unavailable:
			return // nobody speaks gRPC in this way there
		default:
			fmt.Println(address, how, "answers", method, "with", code, refusal.Convert(err).Message())
		}
	}
}

// get asks a web server for a page.
func get(address, path string) {
	client := &http.Client{Timeout: 10 * time.Second, CheckRedirect: func(*http.Request,
		[]*http.Request) error {
		return http.ErrUseLastResponse
	}}
	res, err := client.Get("http://" + address + path)
	if err != nil {
		return
	}
	_ = res.Body.Close()
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusMisdirectedRequest:
	default:
		fmt.Println(address, "answers GET", path, "with", res.Status)
	}
}

func ownCertificate() tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"localhost"}}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		panic(err)
	}
	return tls.Certificate{Certificate: [][]byte{certificate}, PrivateKey: key}
}

func TestAnotherUserOfTheMachineGetsNothingFromAnyPortOfTheService(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("only root can play another user")
	}
	h := newHome(t)
	h.in(t.TempDir()).must(t, "dev", "--background")
	s := h.status(t)
	addresses := listening(t, s.PID)
	for _, known := range []string{s.TemporalAddress, porttest.Resolved(strings.TrimPrefix(s.UIURL, "http://")),
		strings.TrimPrefix(s.S3Endpoint, "http://"), s.APIAddress,
		strings.Replace(s.PulumiAddress, "localhost", "127.0.0.1", 1)} {
		if !slices.Contains(addresses, known) {
			t.Errorf("the service does not listen on %s but on %v", known, addresses)
		}
	}
	todo := task{Addresses: addresses, Files: []string{s.TemporalCredentials, s.TokenFile,
		filepath.Join(h.state(), "data", "keys.json")}}
	for _, uid := range []uint32{65534, 12345} {
		for _, got := range todo.as(t, uid) {
			t.Errorf("user %d: %s", uid, got)
		}
	}

	open, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	server := grpc.NewServer()
	go func() { _ = server.Serve(open) }()
	defer server.Stop()
	if got := (task{Addresses: []string{open.Addr().String()}}).as(t, 12345); len(got) == 0 {
		t.Error("a server that lets everybody in is not noticed")
	}
}

// listening gives every address that a process or one below it listens on.
func listening(t *testing.T, pid int) (addresses []string) {
	t.Helper()
	sockets := map[string]bool{}
	parents, _ := processTable(t)
	for process := range parents {
		for at := process; at > 1; at = parents[at] {
			if at != pid {
				continue
			}
			files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", process))
			must(t, err)
			for _, file := range files {
				if target, err := os.Readlink(file); err == nil { // else it was closed
					sockets[target] = true
				}
			}
			break
		}
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		file, err := os.Open(table)
		must(t, err)
		for lines := bufio.NewScanner(file); lines.Scan(); {
			// sl local_address rem_address st tx:rx tr:when retrnsmt uid timeout inode
			x := strings.Fields(lines.Text())
			if len(x) > 9 && x[3] == "0A" && sockets["socket:["+x[9]+"]"] {
				_, hex, _ := strings.Cut(x[1], ":")
				port, err := strconv.ParseUint(hex, 16, 16)
				must(t, err)
				addresses = append(addresses, fmt.Sprintf("127.0.0.1:%d", port))
			}
		}
		must(t, file.Close())
	}
	return addresses
}
