package wire

import (
	"reflect"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// fill sets everything below v to something that is not its zero value.
func fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[time.Time]() {
		v.Set(reflect.ValueOf(time.Unix(1700000000, 5).UTC()))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			fill(v.Field(i))
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(v.Index(0))
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(key)
		fill(value)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(3)
	case reflect.Uint32, reflect.Uint8:
		v.SetUint(3)
	default:
		panic("a field of kind " + v.Kind().String())
	}
}

// travels checks that a value with every field set is the same on the other side.
func travels[T any](t *testing.T, there func(T) T) {
	t.Helper()
	var sent T
	fill(reflect.ValueOf(&sent).Elem())
	if got := there(sent); !reflect.DeepEqual(got, sent) {
		t.Errorf("%T was sent as\n%+v\nand came as\n%+v", sent, sent, got)
	}
}

func TestEveryFieldTravels(t *testing.T) {
	travels(t, func(r deployments.UpdateRequest) deployments.UpdateRequest {
		got := ToRequest(FromRequest(r))
		if got.Authority != nil {
			t.Errorf("a client sent its own authority, %+v", got.Authority)
		}
		got.Authority = r.Authority // set by the service
		return got
	})
	travels(t, func(a deployments.Accepted) deployments.Accepted { return ToAccepted(FromAccepted(a)) })
	travels(t, func(u deployments.UpdateInfo) deployments.UpdateInfo { return ToInfo(FromInfo(u)) })
	travels(t, func(p deployments.Progress) deployments.Progress { return *toProgress(fromProgress(p)) })
	travels(t, func(s deployments.StackInfo) deployments.StackInfo { return ToStackInfo(FromStackInfo(s)) })
	travels(t, func(m deployments.Manifest) deployments.Manifest { return ToManifest(FromManifest(m)) })
	travels(t, func(s deployments.Schedule) deployments.Schedule {
		got := ToSchedule(FromSchedule(s))
		if got.Authority != nil {
			t.Errorf("a client sent its own authority, %+v", got.Authority)
		}
		got.Authority = s.Authority // set by the service
		return got
	})
	travels(t, func(l []deployments.Member) []deployments.Member { return ToMembers(FromMembers(l)) })
	travels(t, func(e deployments.AuditEntry) deployments.AuditEntry { return ToAuditEntry(FromAuditEntry(e)) })
	travels(t, func(q deployments.AuditQuery) deployments.AuditQuery { return ToAuditQuery(FromAuditQuery(q)) })
	travels(t, func(d deployments.Drift) deployments.Drift { return ToDrift(FromDrift(d)) })
	travels(t, func(l []deployments.Token) []deployments.Token { return ToTokens(FromTokens(l)) })
}

func TestThePreviewOfANewStackIsNotNoPreview(t *testing.T) {
	zero := 0
	if got := ToRequest(FromRequest(deployments.UpdateRequest{BaseVersion: &zero})).BaseVersion; got == nil ||
		*got != 0 {
		t.Errorf("version 0 came as %v", got)
	}
	if got := ToRequest(FromRequest(deployments.UpdateRequest{})).BaseVersion; got != nil {
		t.Errorf("no version came as %d", *got)
	}
}
