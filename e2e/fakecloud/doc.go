// Package fakecloud is a cloud for tests: an HTTP server of its own process that keeps objects, logs every effect on
// them, and does at chosen moments what real clouds do: answer late, refuse, hang, or drop the connection before or
// after the effect.
//
// Two APIs share one address. The cloud's own is what a provider talks to:
//
//	POST   /v1/objects/{kind}       create; 409 when an object of the kind already has the name or the id
//	GET    /v1/objects/{kind}       list; ?name= and ?tag.KEY=VALUE narrow it
//	GET    /v1/objects/{kind}/{id}  read; 404 when absent
//	PUT    /v1/objects/{kind}/{id}  update: properties and tags are replaced as wholes; 404 when absent
//	DELETE /v1/objects/{kind}/{id}  delete; 404 when absent
//	POST   /v1/cancel               a provider tells that it was asked to give up; it is in the log of requests
//
// The other, under /admin/, belongs to the test that owns the cloud: it sets [Fault]s and gates, makes changes behind
// everyone's back and reads the log. [Client] is its Go client. Faults never apply to it.
//
// Nothing here is idempotent on the caller's behalf: a create sent twice makes two objects, unless a name stands in its
// way. That is what makes duplicates visible; see [Client.Duplicates].
package fakecloud
