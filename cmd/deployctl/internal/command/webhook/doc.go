// Package webhook has the commands for the webhooks of a stack or of all stacks of an organization.
package webhook
