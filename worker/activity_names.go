package worker

import (
	"reflect"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
)

// registerActivities registers the methods of a struct as activities, also under their former names: a workflow that an
// earlier revision has begun calls them by these.
func registerActivities(r worker.ActivityRegistry, all any) {
	r.RegisterActivity(all)
	methods := reflect.ValueOf(all)
	for i := range methods.NumMethod() {
		name := methods.Type().Method(i).Name
		if former := deployments.FormerName(name); former != name {
			r.RegisterActivityWithOptions(methods.Method(i).Interface(), activity.RegisterOptions{Name: former})
		}
	}
}
