package command

import (
	"strings"
	"testing"
)

func TestAProfileIsSetShownAndRemoved(t *testing.T) {
	d := busy(t)
	shows := func(text string, args ...string) string {
		t.Helper()
		got := d.run(args...)
		if got.code != 0 || !strings.Contains(strings.Join(strings.Fields(got.out), " "), text) {
			t.Errorf("%v does not show %q but\n%s%s", args, text, got.out, got.err)
		}
		if strings.Contains(got.out+got.err, "hush") {
			t.Errorf("%v shows a secret:\n%s%s", args, got.out, got.err)
		}
		return got.out
	}
	shows("has version 1 now. No stack may use it yet", "profile", "set", "aws", "REGION=eu", "EMPTY=", "--secret",
		"KEY=hush-hush", "--description", "of the shop")
	shows("stacks: none (deployctl profile set aws --stacks PROJECT/STACK)", "profile", "show", "aws")
	d.input = "hush-from-input\n"
	shows("has version 2 now.", "profile", "set", "aws", "--secret", "TOKEN", "--stacks", "shop/*", "--stacks", "*/prod",
		"--if-version", "1")
	shows("of the shop stacks: shop/* */prod VARIABLE VALUE EMPTY KEY [secret] REGION eu TOKEN [secret]",
		"profile", "show", "aws")
	shows("aws 2 ", "profile", "ls")
	shows("shop/* */prod of the shop", "profile", "ls")
	shows(`"name": "KEY", "secret": true`, "profile", "show", "aws", "--json")
	shows(`"version": 2`, "profile", "ls", "--json")
	shows("has version 3 now. No stack", "profile", "set", "aws", "--stacks", "none")
	shows("has version 4 now.", "profile", "unset", "aws", "EMPTY", "KEY")
	for text, args := range map[string][]string{
		"has version 4, and the change is of version 1": {"set", "aws", "A=b", "--if-version", "1"},
		"has no variable \"NO\"":                        {"unset", "aws", "NO"},
		"there is no profile gcp":                       {"unset", "gcp", "NO"},
		"a variable is set by KEY=VALUE, not \"A\"":     {"set", "aws", "A"},
		"a profile cannot set PATH":                     {"set", "aws", "PATH=/bin"},
		"nothing of the profile aws would change":       {"set", "aws"},
		"only one --secret can be without a value":      {"set", "aws", "--secret", "A", "--secret", "B"},
		"is not a glob of stacks":                       {"set", "aws", "--stacks", "*"},
	} {
		if got := d.run(append([]string{"profile"}, args...)...); got.code == 0 ||
			!strings.Contains(strings.Join(strings.Fields(got.err), " "), text) {
			t.Errorf("%v says %s, not %q", args, got.err, text)
		}
	}
	d.must("profile", "rm", "aws")
	if got := d.run("profile", "show", "aws"); got.code == 0 || !strings.Contains(got.err, "there is no profile aws") {
		t.Errorf("one that is gone: %+v", got)
	}
	d.person, d.hidden = true, []string{"hush-typed"}
	shows("has version 1 now.", "profile", "set", "typed", "--secret", "KEY")
	p, err := d.service.Profile(t.Context(), "organization", "typed")
	if err != nil || len(p.Variables) != 1 || !p.Variables[0].Secret {
		t.Errorf("it is %+v, %v", p, err)
	}
}

func TestAProfileHasClouds(t *testing.T) {
	d := busy(t)
	says := func(want string, code bool, args ...string) {
		t.Helper()
		got := d.run(append([]string{"profile"}, args...)...)
		said := strings.Join(strings.Fields(got.out+got.err), " ")
		if got.code == 0 != code || !strings.Contains(said, want) {
			t.Errorf("%v says %d %q, not %q", args, got.code, said, want)
		}
	}
	const (
		role     = "arn:aws:iam::123456789012:role/ci/deploy"
		provider = "projects/12/locations/global/workloadIdentityPools/pool/providers/deployctl"
		account  = "deploy@shop.iam.gserviceaccount.com"
		id       = "01234567-89ab-cdef-0123-456789abcdef"
	)
	says("has version 1 now.", true, "set", "clouds", "--aws-role", role, "--stacks", "*/*")
	says("has version 2 now.", true, "set", "clouds", "--google-provider", "//iam.googleapis.com/"+provider,
		"--google-service-account", account)
	says("has version 3 now.", true, "set", "clouds", "AWS_REGION=eu", "--azure-tenant", id, "--azure-client", id,
		"--azure-subscription", id)
	says("stacks: */* AWS: "+role+" Google: "+provider+" as "+account+" Azure: client "+id+" of the tenant "+id+
		", subscription "+id+" VARIABLE VALUE AWS_REGION eu", true, "show", "clouds")
	says(`"role": "`+role+`"`, true, "show", "clouds", "--json")
	for want, args := range map[string][]string{
		"is not the ARN of a role":                      {"set", "clouds", "--aws-role", "deploy"},
		"is not a provider of a workload identity pool": {"set", "clouds", "--google-provider", "pool"},
		"is not a service account": {"set", "clouds", "--google-provider", provider,
			"--google-service-account", "me"},
		"--google-service-account needs --google-provider": {"set", "clouds", "--google-service-account", account},
		"--azure-client needs --azure-tenant":              {"set", "clouds", "--azure-client", id},
		"is not the id of a tenant": {"set", "clouds", "--azure-client", id,
			"--azure-tenant", "mine"},
		"variable AWS_ACCESS_KEY_ID beside the role of AWS": {"set", "clouds", "AWS_ACCESS_KEY_ID=AKIA"},
		"variable ARM_CLIENT_SECRET beside the client of":   {"set", "clouds", "--secret", "ARM_CLIENT_SECRET=x"},
		"variable GOOGLE_CREDENTIALS beside the workload":   {"set", "clouds", "GOOGLE_CREDENTIALS=x"},
	} {
		says(want, false, args...)
	}
	says("has version 4 now.", true, "unset", "clouds", "--google", "--azure")
	says("has nothing of the cloud google", false, "unset", "clouds", "--google")
	says("has version 5 now.", true, "unset", "clouds", "AWS_REGION", "--aws")
	says("has version 6 now.", true, "set", "clouds", "AWS_ACCESS_KEY_ID=AKIA")
}
