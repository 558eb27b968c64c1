// Package providertest plays the life of a resource against a provider that is written with package provider, and
// disturbs it wherever it can be disturbed: each call that the provider makes is cut off once, two creates run at once,
// properties are changed from outside, and another owner's things are in the way. What is left in the service must be
// the same as if nothing had happened.
//
//	func TestRecordsConverge(t *testing.T) {
//		providertest.Run(t, func(t *testing.T, calls *providertest.Calls) providertest.Setup {
//			s := newService() // an http.Handler
//			return providertest.Setup{
//				Package: zone, // func() provider.Package
//				Config:  providertest.Inputs{"endpoint": calls.Serve(t, s)},
//				Things:  s.things,
//			}
//		}, providertest.Case{
//			Type:    "zone:index:Record",
//			Inputs:  providertest.Inputs{"address": "192.0.2.7"},
//			Change:  providertest.Inputs{"address": "192.0.2.8", "ttl": 60},
//			Replace: providertest.Inputs{"name": "other"},
//		})
//	}
//
// The provider runs in the test's process and is called over the real protocol. The part of the engine is played by a
// small driver: it repeats calls, looks before it creates, refreshes and adopts as the engine does, and decides nothing
// else. docs/providers.md says what each check means for the provider.
package providertest
