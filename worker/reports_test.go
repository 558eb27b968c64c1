package worker

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
)

func TestItIsToldWhetherTemporalHasAcceptedTheEndOfAnActivity(t *testing.T) {
	r, told := &reports{}, []string{}
	report := func(request any, answer error) {
		t.Helper()
		invoke := func(context.Context, string, any, any, *grpc.ClientConn, ...grpc.CallOption) error { return answer }
		if err := r.intercept(t.Context(), "", request, nil, nil, invoke); !errors.Is(err, answer) {
			t.Errorf("the SDK is told %v, not %v", err, answer)
		}
	}
	late := errors.New("it has timed out")
	completed := &workflowservice.RespondActivityTaskCompletedRequest{TaskToken: []byte("one")}
	report(completed, late) // there is no worker yet
	r.to(func(token []byte, err error) { told = append(told, fmt.Sprint(string(token), " ", err)) })
	report(completed, late)
	report(completed, nil)
	report(&workflowservice.RespondActivityTaskFailedRequest{TaskToken: []byte("two")}, late)
	report(&workflowservice.RecordActivityTaskHeartbeatRequest{TaskToken: []byte("three")}, late)
	if got, want := fmt.Sprint(told), "[one it has timed out one <nil> two it has timed out]"; got != want {
		t.Errorf("told %s, want %s", got, want)
	}
}
