package organizations_test

import (
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/storetest"
)

var put, get = storetest.Put, storetest.Get

var dev = deployments.StackName{Organization: "organization", Project: "web", Stack: "dev"}
