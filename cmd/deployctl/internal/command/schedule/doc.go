// Package schedule has the commands for the schedules of a stack.
package schedule
