package servers

import (
	"strings"

	"github.com/deployctl/deployctl/internal/devserver/parts"
	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/s3err"
)

// access says who may do what at the S3 server: the service everything, which the server itself knows, and others
// everything in every bucket but the service's own. Whoever makes a bucket, it is the service's, so that the buckets of
// older releases are as open as new ones.
type access struct {
	auth.IAMService // of the service alone: no user can be added
	service, others auth.Account
	own             string // the ARN of the service's bucket
}

var (
	_ auth.PolicyEvaluator  = access{}
	_ auth.FixedBucketOwner = access{}
)

func newAccess(s parts.S3) access {
	service := auth.Account{Access: s.AccessKey, Secret: s.SecretKey, Role: auth.RoleAdmin}
	return access{
		IAMService: auth.NewIAMServiceSingle(service), service: service,
		others: auth.Account{Access: s.Others.AccessKey, Secret: s.Others.SecretKey, Role: auth.RoleUser},
		own:    auth.ResourceArnPrefix + s.Own,
	}
}

// GetUserAccount implements auth.IAMService.
func (a access) GetUserAccount(key string) (auth.Account, error) {
	if key == a.others.Access && key != "" {
		return a.others, nil
	}
	return a.IAMService.GetUserAccount(key)
}

// ResolveAccounts implements auth.IAMService: it returns the keys that nobody has.
func (a access) ResolveAccounts(keys []string) ([]string, error) {
	var unknown []string
	for _, key := range keys {
		if _, err := a.GetUserAccount(key); err != nil {
			unknown = append(unknown, key)
		}
	}
	return unknown, nil
}

// BucketOwner implements auth.FixedBucketOwner.
func (a access) BucketOwner() auth.Account { return a.service }

// The decisions of package auth, which does not export them.
const (
	allow = 1
	deny  = 2
)

// EvaluatePolicy implements auth.PolicyEvaluator, for others than the service.
func (a access) EvaluatePolicy(
	key, _ string, actions []auth.Action, resources []string, _ map[string][]string,
) (auth.PolicyEvaluation, error) {
	var e auth.PolicyEvaluation
	if key != a.others.Access {
		return e, s3err.GetAPIError(s3err.ErrAccessDenied)
	}
	for i, resource := range resources {
		e.Decisions = append(e.Decisions, nil)
		for range actions {
			if resource == a.own || strings.HasPrefix(resource, a.own+"/") {
				e.Decisions[i] = append(e.Decisions[i], deny)
			} else {
				e.Decisions[i] = append(e.Decisions[i], allow)
			}
		}
	}
	return e, nil
}
