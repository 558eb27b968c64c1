// Package wire translates between package deployments and the API's messages. Both ends use it, so that what one writes
// the other reads; each pair of functions is an inverse. Zero times, empty maps and absent messages stay what they are.
package wire
