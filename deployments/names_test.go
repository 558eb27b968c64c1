package deployments_test

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestAStackNameIsReadWithItsDefaults(t *testing.T) {
	project := deployments.StackName{Organization: "organization", Project: "shop"}
	for _, c := range []struct {
		text     string
		defaults deployments.StackName
		want     string // empty: it is refused
	}{
		{"acme/shop/dev", deployments.StackName{}, "acme/shop/dev"},
		{"acme/shop/dev", project, "acme/shop/dev"},
		{"dev", project, "organization/shop/dev"},
		{"acme/dev", project, "acme/shop/dev"},
		{"shop/dev", project, "shop/shop/dev"}, // also if the project has that name
		{"shop/dev", deployments.StackName{Organization: "organization"}, ""},
		{"", project, ""},
		{"dev", deployments.StackName{}, ""},
		{"shop/dev", deployments.StackName{}, ""},
		{"a/b/c/d", project, ""},
		{"acme//dev", project, ""},
		{"acme/shop/", project, ""},
		{"../shop/dev", project, ""},
		{"acme/shop/dev ", project, ""},
	} {
		got, err := deployments.ParseStackName(c.text, c.defaults)
		switch {
		case c.want == "" && deployments.CodeOf(err) != deployments.CodeInvalid:
			t.Errorf("%q is read as %s, %v", c.text, got, err)
		case c.want != "" && (err != nil || got.String() != c.want):
			t.Errorf("%q is read as %s, %v; want %s", c.text, got, err, c.want)
		}
	}
}

func TestAPartOfANameBeginsWithALetterOrDigitAndIsShort(t *testing.T) {
	for name, valid := range map[string]bool{
		"a": true, "7": true, "Shop_v1.2-rc": true, strings.Repeat("a", deployments.MaxNameLength): true,
		"": false, ".": false, "..": false, "-a": false, "_a": false, "a/b": false, "a b": false, "a\n": false,
		"ä":     false,
		"a\x00": false, strings.Repeat("a", deployments.MaxNameLength+1): false,
	} {
		if err := deployments.ValidateName("stack", name); (err == nil) != valid ||
			!valid && deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func TestNamesOfUpdatesAreWrittenAndRead(t *testing.T) {
	for _, version := range []string{"1", "2147483646", "p-6f1c2a4e"} {
		u := deployments.UpdateName{StackName: dev, Version: version}
		if got, err := deployments.ParseUpdateName(u.String()); err != nil || got != u {
			t.Errorf("%s is read as %s, %v", u, got, err)
		}
		for _, id := range []string{deployments.UpdateWorkflowID(u), deployments.RunWorkflowID(u)} {
			if got, err := deployments.UpdateOfWorkflow(id); err != nil || got != u {
				t.Errorf("the workflow %s is of %s, %v", id, got, err)
			}
		}
	}
	for _, text := range []string{"", "1", "dev/1", "shop/dev/1", "a/b/c/0", "a/b/c/", "a/b/c/d/1", "a/b//1"} {
		if got, err := deployments.ParseUpdateName(text); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%q is read as %s, %v", text, got, err)
		}
	}
	if _, err := deployments.UpdateOfWorkflow(deployments.StackWorkflowID(dev)); err == nil {
		t.Error("the workflow of a stack is taken for an update's")
	}
}

func TestATaskQueueNamesItsStoreAndItsOrganization(t *testing.T) {
	for _, identity := range []string{"", "f81d4fae"} {
		shared := deployments.StoreTaskQueue(identity)
		own := deployments.OrganizationTaskQueue(shared, "acme")
		for queue, organization := range map[string]string{
			shared: "", own: "acme",
			deployments.ScheduledTaskQueue(shared): "", deployments.ScheduledTaskQueue(own): "acme",
		} {
			got, found := deployments.OrganizationOfTaskQueue(queue)
			if got != organization || found != (organization != "") {
				t.Errorf("%s is of the organization %q", queue, got)
			}
		}
		if got := deployments.SharedOfTaskQueue(own); got != shared {
			t.Errorf("%s is of the store's queue %s, not %s", own, got, shared)
		}
		queues := map[string]bool{shared: true, own: true, deployments.ScheduledTaskQueue(shared): true,
			deployments.ScheduledTaskQueue(own): true, deployments.PrivateTaskQueue("w"): true}
		if len(queues) != 5 {
			t.Errorf("two queues have one name: %v", queues)
		}
	}
	if deployments.StoreTaskQueue("a") == deployments.StoreTaskQueue("b") {
		t.Error("two stores have one queue")
	}
}
