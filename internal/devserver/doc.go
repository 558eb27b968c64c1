// Package devserver is what the service needs on one machine: a Temporal server (SQLite) and its Web UI inside this
// process, and an S3 server as a child process of the same binary, all on loopback and all below one home directory.
// The servers themselves are in the module of deployctl-embedded; a program without it can still find, stop and reset a
// service.
//
// The home belongs to one user (directories 0700, files 0600) and to one service at a time, which a file lock decides:
//
//	locks/        service, temporal, s3: who runs; home: who is making data/
//	service.json  the service that holds locks/service, or the one that died holding it
//	logs/         service.log, temporal.log, s3.log; rotated at every start and at 16 MiB
//	data/         everything that Reset removes, as one rename: keys.json, ports.json, temporal.pem,
//	              certificate.pem, temporal/, s3/, and s3meta/
//	              where the file system has no extended attributes
//
// Loopback is open to every user of the machine, so every port accepts connections of this user and root alone, where
// the system tells (openPort is the only way to open one), and asks who calls: Temporal's, those between its own parts
// included, for the certificate in temporal.pem; the S3 server for signatures with keys.json; the Web UI for a session
// that a link of this start has opened. And clients ask who answers: Temporal and the API show the certificate, and the
// service looks up whose its S3 server is.
//
// Invariant: whatever moment a process of the service is killed at, the next Start succeeds and nothing acknowledged is
// lost. Every file appears whole, by rename, and the S3 server never outlives its parent.
//
// Below it:
//
//   - parts: what the embedded service asks of its servers, which are slow to compile and to start, so that
//     only cmd/deployctl/deployctl-embedded/servers has them, and the tests that start them
package devserver
