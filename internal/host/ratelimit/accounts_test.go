package ratelimit

import (
	"fmt"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

func TestTheLimitersOfCredentialsThatAreNotUsedAnyMoreAreEvicted(t *testing.T) {
	accounts := NewAccounts()
	old := time.Now().Add(-2 * forgetAfter)
	var slowed *Limiter
	for n := range 1000 {
		l, err := accounts.Limiter("cloud", resource.PropertyMap{"token": resource.NewProperty(fmt.Sprint(n))})
		if err != nil {
			t.Fatal(err)
		}
		l.created = old
		if n == 0 {
			slowed = l
			slowed.prompt.lastDecrease = time.Now()
		}
	}
	if len(accounts.all) > 2 {
		t.Errorf("%d limiters are kept", len(accounts.all))
	}
	again, err := accounts.Limiter("cloud", resource.PropertyMap{"token": resource.NewProperty("0")})
	if err != nil || again != slowed {
		t.Errorf("the limiter of an account that was slowed down just now is lost: %v", err)
	}
}
