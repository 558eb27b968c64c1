// Package fakeprovider is the provider plugin of the fake cloud: the package "fake", a real plugin process over real
// gRPC, for tests of engines.
//
// Its resources differ in how a thing in the cloud gets its name, which is what decides whether a create whose answer
// was lost can be settled:
//
//	fake:index:Named      the program gives the name, which is the id: Read by it answers
//	fake:index:Exclusive  as Named, but a replacement deletes first
//	fake:index:Fleet      as Named; each of its settings is a view
//	fake:index:Auto       autonaming makes the name from the engine's seed: the same seed asks for the same name
//	fake:index:Scoped     as Auto, but the id is made of the account, the zone and the name
//	fake:index:Filed      the cloud makes the id; fake:index:search finds it by a setting
//	fake:index:Tagged     the cloud makes the id; the thing carries the URN as a tag and is found
//	                      by List or fake:index:find
//	fake:index:Server     the cloud makes the id and nothing else leads to it: a lost answer is lost
//	fake:index:Opaque     as Server; Diff leaves the comparison to the engine
//	fake:index:Renamed    as Auto, whose things it names, too: for a program that gives a resource another type
//	fake:index:Group      a component of one Named and one Auto
//	fake:index:NAME       as Named, once the package is extended by a package whose value is NAME
//
// With a parameter whose value is "instead", the process serves the package of the parameter, which has the same types.
//
// The provider never retries, never adopts and never hides an error: each of the cloud's answers becomes the gRPC
// status that says honestly whether the request was carried out (see errors.go). With the configuration errors, and
// more so with habits, it behaves as providers do that people use instead (see plain.go and habits.go).
package fakeprovider
