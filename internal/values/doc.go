// Package values is the room of work on values and texts alone: properties, secrets, tokens, patterns, JSON.
//
// Nothing here does I/O.
//
//   - bags: turns values into bags and back
//   - glob: matches texts and paths with patterns of users, in bounded time
//   - pack: compresses texts that are in parts
//   - pcl: declarations of resources as PCL, from which language hosts write programs
//   - properties: transforms property values of resources
//   - rawjson: takes JSON apart without copies, says what values of it would cost, and what is wrong in it
//   - redaction: replaces secrets and control sequences in what leaves a worker
//   - safetext: makes untrusted text safe for a terminal
//   - token: parses type tokens, function tokens and provider references of programs and plugins
//   - valuediff: compares two values, for display
//   - workload: the tokens by which updates are known to clouds, and the keys that sign them
package values
