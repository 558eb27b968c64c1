// Package valuediff finds how two values differ, for people who approve a change. Values are what JSON decodes to.
// Objects are compared by key, lists by their longest common subsequence, texts line by line, and texts that hold JSON
// or YAML by what they hold. Nothing that differs is left out: what a form of output cannot show, it counts.
package valuediff
