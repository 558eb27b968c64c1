// Package postgrestest gives tests a real PostgreSQL server, where one is installed. It is for Unix.
package postgrestest
