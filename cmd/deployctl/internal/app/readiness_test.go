package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"google.golang.org/grpc/health/grpc_health_v1"
)

func TestAProcessIsReadyWhileItsPartsAnsweredLately(t *testing.T) {
	var away error
	v := newReadiness(func(context.Context) error { return away }, slog.New(slog.DiscardHandler))
	mux := http.NewServeMux()
	v.register(mux)
	is := func(when string, ready bool) {
		t.Helper()
		v.look(t.Context())
		recorder := httptest.NewRecorder()
		mux.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/readyz", nil))
		if got := recorder.Code == http.StatusOK; got != ready {
			t.Errorf("%s it answers %d", when, recorder.Code)
		}
		told, err := v.grpc.Check(t.Context(), &grpc_health_v1.HealthCheckRequest{})
		if err != nil || (told.GetStatus() == grpc_health_v1.HealthCheckResponse_SERVING) != ready {
			t.Errorf("%s gRPC tells %v, %v", when, told, err)
		}
	}
	is("at first", true)
	away = errors.New("S3 answers 503")
	is("when a part has just gone away", true)
	v.answered = time.Now().Add(-readyFor)
	is("when a part is away", false)
	away = nil
	is("when it is back", true)
	var full error
	v.alsoNeeds(func() error { return full })
	is("with a disk that has room", true)
	full, v.answered = errors.New("the disk is full"), time.Now().Add(-readyFor)
	is("with a full disk", false)
	full = nil
	is("when there is room again", true)
	recorder := httptest.NewRecorder()
	mux.ServeHTTP(recorder, httptest.NewRequest(http.MethodGet, "/livez", nil))
	if recorder.Code != http.StatusOK {
		t.Errorf("alive answers %d", recorder.Code)
	}
}
