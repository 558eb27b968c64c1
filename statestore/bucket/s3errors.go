package bucket

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/aws/smithy-go"

	"github.com/deployctl/deployctl/deployments"
)

// translate classifies an error of the SDK. After rejected credentials, the next call searches for new ones.
func (s *S3) translate(err error) error {
	translated := s.classify(err)
	if credentialsRefused(translated) && s.credentials != nil {
		s.credentials.refuse()
	}
	return translated
}

// CredentialsRefused reports whether an error is a rejection of the credentials, in general or for this call.
func CredentialsRefused(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if credentialsRefused(err) {
			return true
		}
	}
	return false
}

// credentialsRefused reports whether the server rejected the credentials, in general or for this call.
func credentialsRefused(err error) bool {
	code := deployments.CodeOf(err)
	return err != nil && (code == deployments.CodeUnauthorized || code == deployments.CodeForbidden)
}

func (s *S3) classify(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, context.Canceled):
		return err
	case errors.Is(err, errNoCredentials):
		return deployments.Errorf(deployments.CodeInvalid, "there are no credentials for the %s: set "+
			"s3.access-key-id and s3.secret-access-key "+
			"(DEPLOYCTL_S3_ACCESS_KEY_ID, DEPLOYCTL_S3_SECRET_ACCESS_KEY), or what the AWS SDK looks for "+
			"(AWS_ACCESS_KEY_ID, AWS_PROFILE, a role)", s)
	case errors.Is(err, errRenewalFailed):
		return fmt.Errorf("%w: %w", ErrTransient, err)
	}
	var api smithy.APIError
	code := ""
	if errors.As(err, &api) {
		code = api.ErrorCode()
	}
	switch code {
	case "NoSuchKey", "NotFound": // not any 404: a server may use that for an unknown user
		return ErrAbsent
	case "PreconditionFailed":
		return ErrChanged
	case "NoSuchBucket":
		return deployments.Errorf(deployments.CodeInvalid, "there is no %s: create it, or name another one in the "+
			"settings", s)
	case "InvalidBucketName":
		return deployments.Errorf(deployments.CodeInvalid, "no bucket can have the name of the %s: names have 3 to "+
			"63 lower-case letters, digits, dots and hyphens; "+
			"correct s3.bucket in the settings", s)
	case "InvalidAccessKeyId", "SignatureDoesNotMatch", "AuthorizationHeaderMalformed", "XAdminUserNotFound",
		"ExpiredToken", "InvalidToken",
		"TokenRefreshRequired", "RequestTimeTooSkewed":
		return deployments.Errorf(deployments.CodeUnauthorized,
			"the %s does not accept the credentials (%s): check the access key, the secret key and the region", s, code)
	case "AccessDenied", "Forbidden":
		return deployments.Errorf(deployments.CodeForbidden,
			"the %s may not be used with these credentials: they need to get, put, delete and list its objects", s)
	}
	switch st := status(err); {
	case st == http.StatusPreconditionFailed:
		return ErrChanged
	case st == http.StatusUnauthorized, st == http.StatusForbidden:
		return deployments.Errorf(deployments.CodeForbidden, "the %s does not accept the credentials (HTTP %d)", s, st)
	case st >= 400 && st < 500 && st != http.StatusConflict && st != http.StatusRequestTimeout &&
		st != http.StatusTooManyRequests &&
		code != "RequestTimeout" && code != "SlowDown":
		return deployments.Errorf(deployments.CodeInternal, "the %s refused a request: %w", s, withoutSDKText(err))
	}
	return fmt.Errorf("%w: %w", ErrTransient, withoutSDKText(err))
}

// status returns the HTTP status of the reply that caused an error; 0 when there was no reply.
func status(err error) int {
	var r interface{ HTTPStatusCode() int }
	if errors.As(err, &r) {
		return r.HTTPStatusCode()
	}
	return 0
}

// withoutSDKText returns the server's error, or the network's, without the text that the SDK adds.
func withoutSDKText(err error) error {
	var api smithy.APIError
	var sent *url.Error
	switch {
	case errors.As(err, &api) && api.ErrorMessage() != "":
		return fmt.Errorf("%s: %s (HTTP %d)", api.ErrorCode(), api.ErrorMessage(), status(err))
	case errors.As(err, &sent):
		return sent.Err
	case status(err) != 0:
		return fmt.Errorf("it answered with HTTP %d", status(err))
	}
	return err
}
